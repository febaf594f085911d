// Reading by index: compiled against the reference, negative indices, and indices that are not there.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

import lyo.base;
import lyo.artifact;
import lyo.graph;
import lyo.compiler;
import lyo.hydration;

namespace {

using lyo::DType;
using lyo::Sym;
using lyo::Tensor;
using lyo::ValueId;
using Indices = std::vector<std::optional<ValueId>>;

Tensor counting(const lyo::Dims& shape, DType dtype = DType::f32) {
    auto tensor = Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    for (std::int64_t i = 0; i < tensor->numel(); ++i)
        lyo::store_double(
            static_cast<std::byte*>(tensor->mutable_data()) + static_cast<std::size_t>(i) * lyo::size_of(dtype), dtype,
            static_cast<double>(i));
    return *tensor;
}

Tensor indices(const lyo::Dims& shape, const std::vector<std::int64_t>& values, DType dtype = DType::i64) {
    auto tensor = Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    EXPECT_EQ(static_cast<std::size_t>(tensor->numel()), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        lyo::store_int(static_cast<std::byte*>(tensor->mutable_data()) + i * lyo::size_of(dtype), dtype, values[i]);
    return *tensor;
}

struct Outcome {
    lyo::Result<std::vector<Tensor>> expected, got;
};

Outcome run(const std::function<ValueId(lyo::Builder&, const std::vector<ValueId>&)>& body,
            const std::vector<Tensor>& inputs) {
    lyo::Builder builder;
    std::vector<ValueId> ids;
    for (const Tensor& t : inputs) ids.push_back(builder.input("t", t.dtype(), lyo::to_shape(t.shape())));
    builder.output(body(builder, ids));
    const auto graph = builder.finish();
    EXPECT_TRUE(graph.has_value()) << graph.error().to_string();
    const auto bytes = lyo::compile(*graph);
    EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string() << "\n" << graph->to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    EXPECT_TRUE(artifact.has_value()) << artifact.error().to_string();
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    EXPECT_TRUE(function.has_value()) << function.error().to_string();
    return {lyo::interpret(*graph, inputs), function->call(inputs)};
}

void expect_same(const std::function<ValueId(lyo::Builder&, const std::vector<ValueId>&)>& body,
                 const std::vector<Tensor>& inputs) {
    const auto [expected, got] = run(body, inputs);
    ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
    ASSERT_TRUE(got.has_value()) << got.error().to_string();
    ASSERT_EQ(got->front().shape(), expected->front().shape());
    for (std::int64_t i = 0; i < got->front().numel(); ++i) ASSERT_EQ(got->front().at(i), expected->front().at(i)) << i;
}

TEST(Indexing, EmbeddingsAndSelections) {
    expect_same([](lyo::Builder& b, const auto& t) { return b.call("embedding", {t[0], t[1]}); },
                {counting({5, 3}), indices({2, 4}, {0, 4, 2, 2, 1, 3, 0, 4})});
    expect_same([](lyo::Builder& b,
                   const auto& t) { return b.call("relu", {b.call("embedding", {b.call("neg", {t[0]}), t[1]})}); },
                {counting({5, 3}, DType::bf16), indices({3}, {1, 0, 2}, DType::i32)});
    expect_same([](lyo::Builder& b, const auto& t) { return b.call("index_select", {t[0], Sym(1), t[1]}); },
                {counting({2, 4, 3}), indices({5}, {3, 0, 0, -1, 2})});
    expect_same([](lyo::Builder& b, const auto& t) { return b.call("gather", {t[0], Sym(-1), t[1]}); },
                {counting({2, 4}), indices({2, 3}, {3, 0, 1, -4, 2, 2})});
    expect_same([](lyo::Builder& b, const auto& t) { return b.call("embedding", {b.call("t", {t[0]}), t[1]}); },
                {counting({3, 5}), indices({2}, {4, 0})});
}

TEST(Indexing, SeveralDimensionsWithHolesAndBroadcasts) {
    const std::vector<Tensor> inputs{counting({3, 4, 5, 2}), indices({2, 1}, {0, -1}), indices({3}, {1, 3, 2})};
    expect_same([](lyo::Builder& b, const auto& t) { return b.call("index.Tensor", {t[0], Indices{t[1], t[2]}}); },
                inputs);
    expect_same([](lyo::Builder& b,
                   const auto& t) { return b.call("index.Tensor", {t[0], Indices{std::nullopt, t[1], t[2]}}); },
                inputs);
    expect_same([](lyo::Builder& b,
                   const auto& t) { return b.call("index.Tensor", {t[0], Indices{t[1], std::nullopt, t[2]}}); },
                inputs);
    expect_same(
        [](lyo::Builder& b, const auto& t) {
            return b.call("index.Tensor", {t[0], Indices{std::nullopt, std::nullopt, std::nullopt, t[1]}});
        },
        inputs);
}

TEST(Indexing, AnIndexThatIsNotThereIsATypedError) {
    for (const std::int64_t wrong : {5, -6, 1'000'000'000}) {
        const auto [expected, got] =
            run([](lyo::Builder& b, const auto& t) { return b.call("embedding", {t[0], t[1]}); },
                {counting({5, 3}), indices({2}, {1, wrong})});
        ASSERT_FALSE(expected.has_value());
        EXPECT_EQ(expected.error().code, lyo::ErrorCode::index_out_of_range);
        ASSERT_FALSE(got.has_value());
        EXPECT_EQ(got.error().code, lyo::ErrorCode::index_out_of_range);
    }
}

TEST(Cumulative, SumsAndDifferences) {
    for (const DType dtype : {DType::f32, DType::i32, DType::boolean})
        for (const int axis : {0, 1, 2}) {
            expect_same([&](lyo::Builder& b, const auto& t) { return b.call("cumsum", {t[0], Sym(axis)}); },
                        {counting({3, 1, 4}, dtype)});
            expect_same([&](lyo::Builder& b, const auto& t) { return b.call("diff", {t[0], Sym(1), Sym(axis)}); },
                        {counting({3, 2, 4}, dtype)});
        }
    expect_same([](lyo::Builder& b, const auto& t) { return b.call("diff", {t[0], Sym(2), Sym(0), t[1], t[1]}); },
                {counting({5}), counting({2})});
}

}  // namespace
