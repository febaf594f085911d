// What the differential fuzzer found: graphs of which the compiled function and the interpreter, or either and PyTorch,
// gave different things.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <expected>
#include <limits>
#include <vector>

#include "../support/graphs.h"

import lyo.base;
import lyo.artifact;
import lyo.graph;
import lyo.compiler;
import lyo.hydration;

namespace {

using lyo::DType;
using lyo::Sym;
using lyo::Tensor;
using lyo_test::built;
using lyo_test::filled;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor of(const lyo::Dims& shape, DType dtype, const std::vector<double>& values) {
    auto tensor = Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    for (std::size_t i = 0; i < values.size(); ++i)
        lyo::store_double(static_cast<std::byte*>(tensor->mutable_data()) + i * lyo::size_of(dtype), dtype, values[i]);
    return *tensor;
}

lyo::Result<std::vector<Tensor>> compiled(const lyo::Graph& graph, const std::vector<Tensor>& inputs) {
    const auto bytes = lyo::compile(graph);
    if (!bytes) return std::unexpected(bytes.error());
    const auto artifact = lyo::Artifact::check(*bytes);
    if (!artifact) return std::unexpected(artifact.error());
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    if (!function) return std::unexpected(function.error());
    return function->call(inputs);
}

/// Both give these values.
void expect_both(const lyo::Graph& graph, const std::vector<Tensor>& inputs, const std::vector<double>& values) {
    const auto a = compiled(graph, inputs), b = lyo::interpret(graph, inputs);
    ASSERT_TRUE(a.has_value()) << a.error().to_string();
    ASSERT_TRUE(b.has_value()) << b.error().to_string();
    for (const Tensor& out : {(*a)[0], (*b)[0]}) {
        ASSERT_EQ(out.numel(), static_cast<std::int64_t>(values.size()));
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double got = out.at(static_cast<std::int64_t>(i));
            EXPECT_TRUE(got == values[i] || (std::isnan(got) && std::isnan(values[i]))) << i << ": " << got;
        }
    }
}

TEST(Found, AnyOfNothingIsFalseAndAllOfNothingTrue) {
    for (const DType dtype : {DType::f32, DType::boolean, DType::u8, DType::i64})
        for (const bool any : {true, false})
            expect_both(
                built([&](lyo::Builder& b) { b.output(b.call(any ? "any" : "all", {b.input("x", dtype, {Sym(0)})})); }),
                {filled({0}, dtype, 1)}, {any ? 0.0 : 1.0});
}

TEST(Found, DiffOfAnEmptySymbolicDimensionIsEmpty) {
    const auto graph = built([](lyo::Builder& b) {
        const Sym n = b.symbol("n", 0, 4);
        b.output(b.call("diff", {b.input("x", DType::f32, {n})}));
    });
    expect_both(graph, {filled({0}, DType::f32, 1)}, {});
    expect_both(graph, {of({2}, DType::f32, {1, 4})}, {3});
}

TEST(Found, AnIndexIntoNothingIsOutOfRange) {
    const auto embedding = built([](lyo::Builder& b) {
        b.output(b.call("embedding", {b.input("w", DType::f32, {Sym(0), Sym(1)}), b.input("i", DType::i64, {Sym(1)})}));
    });
    const std::vector<Tensor> inputs{filled({0, 1}, DType::f32, 1), of({1}, DType::i64, {0})};
    const auto a = compiled(embedding, inputs), b = lyo::interpret(embedding, inputs);
    ASSERT_FALSE(a.has_value());
    ASSERT_FALSE(b.has_value());
    EXPECT_EQ(a.error().code, lyo::ErrorCode::index_out_of_range) << a.error().to_string();
    EXPECT_EQ(b.error().code, lyo::ErrorCode::index_out_of_range) << b.error().to_string();
}

TEST(Found, AConvolutionWiderThanItsInputIsRefusedWhenBuilt) {
    lyo::Builder b;
    b.output(b.call("conv1d", {b.input("x", DType::f32, {Sym(1), Sym(1), Sym(2)}),
                               b.input("w", DType::f32, {Sym(1), Sym(1), Sym(3)})}));
    const auto graph = b.finish();
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, lyo::ErrorCode::bad_graph) << graph.error().to_string();
}

TEST(Found, FactorsOfIntegerProductsAreTruncated) {
    const auto graph = built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::i64, {Sym(1), Sym(1)});
        b.output(b.call("addmm", {x, x, x}, {{"beta", 1.5}, {"alpha", 0.5}}));
    });
    expect_both(graph, {of({1, 1}, DType::i64, {3})}, {3});
}

TEST(Found, AConversionLikeAnotherTensorDoesNotReadIt) {
    for (const char* op : {"to.other", "type_as"})
        expect_both(built([&](lyo::Builder& b) {
                        const auto x = b.input("x", DType::f32, {Sym(2)});
                        b.output(b.call(op, {x, b.input("y", DType::i32, {Sym(3), Sym(0)})}));
                    }),
                    {of({2}, DType::f32, {1.5, -2.5}), filled({3, 0}, DType::i32, 1)}, {1, -2});
}

TEST(Found, BatchNormIsALineOfEachChannelWhoseInfinitiesShow) {
    const auto graph = built([](lyo::Builder& b) {
        const auto input = [&](const char* name, lyo::Shape shape) {
            return b.input(name, DType::f32, std::move(shape));
        };
        const auto x = input("x", {Sym(1), Sym(1), Sym(1)});
        b.output(b.call("batch_norm", {x, input("w", {Sym(1)}), std::monostate{}, input("m", {Sym(1)}),
                                       input("v", {Sym(1)}), false, 1.0, 1.0, false}));
    });
    const auto one = [](double v) { return of({1}, DType::f32, {v}); };
    expect_both(graph, {of({1, 1, 1}, DType::f32, {0}), one(infinity), one(1), one(0)},
                {std::numeric_limits<double>::quiet_NaN()});
}

}  // namespace
