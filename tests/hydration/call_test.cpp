// Compiled functions against the reference interpreter, over shapes and strides that callers really bring.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
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

lyo::Function live(const lyo::Graph& graph) {
    auto bytes = lyo::compile(graph);
    EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string() << "\n" << graph.to_string();
    auto artifact = lyo::Artifact::check(*bytes);
    EXPECT_TRUE(artifact.has_value()) << artifact.error().to_string();
    auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    EXPECT_TRUE(function.has_value()) << function.error().to_string();
    return *function;
}

void expect_same(const lyo::Graph& graph, const lyo::Function& function, const std::vector<Tensor>& inputs,
                 double tolerance = 1e-5) {
    const auto expected = lyo::interpret(graph, inputs);
    ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
    const auto got = function.call(inputs);
    ASSERT_TRUE(got.has_value()) << got.error().to_string();
    ASSERT_EQ(got->size(), expected->size());
    for (std::size_t o = 0; o < got->size(); ++o) {
        ASSERT_EQ((*got)[o].shape(), (*expected)[o].shape());
        ASSERT_EQ((*got)[o].dtype(), (*expected)[o].dtype());
        for (std::int64_t i = 0; i < (*got)[o].numel(); ++i) {
            const double a = (*got)[o].at(i), b = (*expected)[o].at(i);
            if (std::isnan(a) && std::isnan(b)) continue;
            ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b))) << "output " << o << " element " << i << "\n"
                                                                      << graph.to_string();
        }
    }
}

lyo::Graph mlp(Sym batch) {
    return built([&](lyo::Builder& b) {
        if (!batch.is_constant()) batch = b.symbol("s0", 1, 4096);
        const auto x = b.input("x", DType::f32, {batch, 5});
        const auto h = b.call("relu", {b.call("linear", {x, b.constant("w1", filled({7, 5}, DType::f32, 1)),
                                                         b.constant("b1", filled({7}, DType::f32, 2))})});
        b.output(b.call("linear", {h, b.constant("w2", filled({3, 7}, DType::f32, 3)),
                                   b.constant("b2", filled({3}, DType::f32, 4))}));
    });
}

TEST(Call, ATwoLayerNetworkGivesWhatTheInterpreterGives) {
    const auto graph = mlp(4);
    expect_same(graph, live(graph), {filled({4, 5}, DType::f32, 9)});
}

TEST(Call, OneArtifactServesEveryBatchInRange) {
    const auto graph = mlp(Sym::symbol("s0"));
    const auto function = live(graph);
    for (const std::int64_t batch : {1, 2, 33, 7, 33, 1, 4096})
        expect_same(graph, function, {filled({batch, 5}, DType::f32, 9)});
    for (const std::int64_t batch : {0, 4097}) {
        const auto refused = function.call({filled({batch, 5}, DType::f32, 9)});
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, lyo::ErrorCode::guard_failed);
        EXPECT_NE(refused.error().to_string().find("s0 in [1, 4096]"), std::string::npos)
            << refused.error().to_string();
    }
}

TEST(Call, AnyStridesOfAnInputAreRight) {
    const auto graph = built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {3, 4, 5});
        b.output(b.call("softmax.int", {b.call("exp", {x}), Sym(1)}));
        b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0, 2}}));
    });
    const auto function = live(graph);
    const Tensor memory = filled({4096}, DType::f32, 5);
    const auto* middle = static_cast<const float*>(memory.data()) + 2048;
    const std::vector<lyo::Dims> strides = {{20, 5, 1},    {1, 3, 12},  {0, 0, 0},  {0, 5, 1},
                                            {-20, -5, -1}, {40, 10, 2}, {20, -5, 0}};
    for (const auto& s : strides) expect_same(graph, function, {Tensor::borrow(middle, {3, 4, 5}, s, DType::f32)});
}

TEST(Call, MisalignedInputsAreRight) {
    const auto graph = built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {1001});
        b.output(b.call("add.Tensor", {b.call("sin", {x}), b.call("cos", {x})}));
    });
    const auto function = live(graph);
    const Tensor memory = filled({2048}, DType::f32, 6);
    const auto* base = static_cast<const std::byte*>(memory.data());
    for (const int offset : {0, 4, 8, 12, 20})
        expect_same(graph, function, {Tensor::borrow(base + offset, {1001}, DType::f32)});
}

TEST(Call, EmptyAndScalarTensorsAreRight) {
    const auto graph = built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {0, 4});
        const auto s = b.input("s", DType::f32, {});
        b.output(b.call("relu", {x}));
        b.output(b.call("sum", {x}));
        b.output(b.call("mul.Tensor", {b.call("sum.dim_IntList", {x, std::vector<Sym>{0}}), s}));
        b.output(b.call("add.Tensor", {s, Sym(1)}));
        b.output(b.call("matmul", {x, b.constant("w", filled({4, 3}, DType::f32, 3))}));
        b.output(b.call("mean.dim", {x, std::vector<Sym>{0}}));
    });
    expect_same(graph, live(graph), {filled({0, 4}, DType::f32, 1), filled({}, DType::f32, 2)});
}

TEST(Call, EveryDTypeOfAPointwiseChainAndAMatrixProduct) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        const auto graph = built([&](lyo::Builder& b) {
            const auto x = b.input("x", dtype, {6, 9});
            const auto y = b.call("matmul", {x, b.constant("w", filled({9, 5}, dtype, 3))});
            b.output(b.call("mul.Tensor", {b.call("sigmoid", {y}), y}));
        });
        const double tolerance = dtype == DType::f64   ? 1e-12
                                 : dtype == DType::f32 ? 1e-5
                                 : dtype == DType::f16 ? 2e-3
                                                       : 2e-2;
        expect_same(graph, live(graph), {filled({6, 9}, dtype, 4)}, tolerance);
    }
}

TEST(Call, NormsAndSoftmaxesAlongAnyAxis) {
    const auto graph = built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {3, 7, 129});
        b.output(b.call("softmax.int", {x, Sym(-1)}));
        b.output(b.call("log_softmax.int", {x, Sym(1)}));
        b.output(b.call("softmax.int", {x, Sym(0)}));
        b.output(b.call("layer_norm", {x, std::vector<Sym>{129}, b.constant("w", filled({129}, DType::f32, 1)),
                                       b.constant("b", filled({129}, DType::f32, 2))}));
        b.output(b.call("group_norm", {x, Sym(7), b.constant("gw", filled({7}, DType::f32, 3)),
                                       b.constant("gb", filled({7}, DType::f32, 4))}));
    });
    expect_same(graph, live(graph), {filled({3, 7, 129}, DType::f32, 8)}, 2e-5);
}

TEST(Call, OutputsMayBeInputsConstantsOrViewsOfThem) {
    const auto graph = built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {3, 4});
        const auto c = b.constant("c", filled({2, 2}, DType::f32, 1));
        b.output(x);
        b.output(b.call("t", {x}));
        b.output(c);
        b.output(x);
        const auto y = b.call("neg", {x});
        b.output(y);
        b.output(y);
        b.output(b.call("exp", {y}));
    });
    expect_same(graph, live(graph), {filled({3, 4}, DType::f32, 2)});
}

TEST(Call, CallerProvidedOutputsAreCheckedAndFilled) {
    const auto graph = mlp(4);
    const auto function = live(graph);
    const Tensor x = filled({4, 5}, DType::f32, 9), y = filled({4, 3}, DType::f32, 1);
    const auto into = [&](const Tensor& output) {
        return function.call_into(std::vector<Tensor>{x}, std::vector<Tensor>{output});
    };
    ASSERT_TRUE(into(y).has_value());
    EXPECT_EQ(y.to_string(), (*function.call({x}))[0].to_string());
    const std::vector<Tensor> wrong = {filled({4, 2}, DType::f32, 1), filled({4, 3}, DType::f64, 1),
                                       Tensor::borrow(y.data(), {4, 3}, {1, 4}, DType::f32),
                                       Tensor::borrow(nullptr, {4, 3}, DType::f32),
                                       Tensor::borrow(x.data(), {4, 3}, DType::f32)};
    for (const Tensor& output : wrong) {
        const auto refused = into(output);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, lyo::ErrorCode::guard_failed);
        EXPECT_NE(refused.error().to_string().find("output 0"), std::string::npos);
    }
    EXPECT_FALSE(function.call_into(std::vector<Tensor>{x}, std::vector<Tensor>{}).has_value());
}

TEST(Guards, EachWrongInputIsNamedWithWhatWasExpectedAndGiven) {
    const auto function = live(mlp(4));
    const Tensor good = filled({4, 5}, DType::f32, 9);
    const std::vector<std::pair<std::vector<Tensor>, std::string>> wrong = {
        {{}, "inputs: expected 1, got 0"},
        {{good, good}, "inputs: expected 1, got 2"},
        {{filled({4, 5}, DType::f64, 1)}, "input 0 (x): dtype: expected f32, got f64"},
        {{filled({4, 5, 1}, DType::f32, 1)}, "input 0 (x): rank: expected 2, got 3"},
        {{filled({5, 4}, DType::f32, 1)}, "input 0 (x): size of dimension 0: expected 4, got 5"},
        {{Tensor::borrow(good.data(), {4, 5}, DType::f32, lyo::Device::cuda(0))},
         "input 0 (x): device: expected cpu, got cuda:0"},
        {{Tensor::borrow(nullptr, {4, 5}, DType::f32)}, "input 0 (x): data: expected an address, got null"},
    };
    for (const auto& [inputs, message] : wrong) {
        const auto refused = function.call(inputs);
        ASSERT_FALSE(refused.has_value()) << message;
        EXPECT_NE(refused.error().to_string().find(message), std::string::npos) << refused.error().to_string();
    }
    EXPECT_TRUE(function.call({good}).has_value());
}

TEST(Guards, InputsThatShareASizeMustAgree) {
    const auto graph = built([](lyo::Builder& b) {
        const Sym s = b.symbol("s0", 0, 4);
        b.output(b.call("add.Tensor",
                        {b.input("x", DType::f32, {s, s * Sym(2) + Sym(1)}), b.input("y", DType::f32, {s, Sym(1)})}));
    });
    const auto function = live(graph);
    for (const std::int64_t s : {0, 1, 2, 4})
        expect_same(graph, function, {filled({s, 2 * s + 1}, DType::f32, 1), filled({s, 1}, DType::f32, 2)});
    EXPECT_FALSE(function.call({filled({2, 5}, DType::f32, 1), filled({3, 1}, DType::f32, 2)}).has_value());
    EXPECT_FALSE(function.call({filled({2, 6}, DType::f32, 1), filled({2, 1}, DType::f32, 2)}).has_value());
    EXPECT_FALSE(function.call({filled({5, 11}, DType::f32, 1), filled({5, 1}, DType::f32, 2)}).has_value());
}

TEST(Hydrate, AnArtifactIsRefusedOnADeviceThatItHasNoImageFor) {
    const auto artifact = lyo::Artifact::check(*lyo::compile(mlp(4)));
    const auto refused = lyo::hydrate(*artifact, lyo::Device::cuda(0));
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().to_string().find("cpu"), std::string::npos);
}

TEST(Hydrate, AFunctionThatIsNotThereIsNamed) {
    const auto artifact = lyo::Artifact::check(*lyo::compile(mlp(4)));
    lyo::HydrateOptions options;
    options.function = "backward";
    const auto refused = lyo::hydrate(*artifact, lyo::Device::cpu(), options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().to_string().find("backward"), std::string::npos);
}

TEST(Concurrent, CallsOnOneFunctionDoNotDisturbOneAnother) {
    const auto graph = mlp(Sym::symbol("s0"));
    const auto function = live(graph);
    std::vector<std::string> expected;
    for (std::int64_t batch = 1; batch <= 8; ++batch)
        expected.push_back((*function.call({filled({batch, 5}, DType::f32, 9)}))[0].to_string());
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200; ++i) {
                const std::int64_t batch = 1 + (t + i) % 8;
                const auto outputs = function.call({filled({batch, 5}, DType::f32, 9)});
                if (!outputs || (*outputs)[0].to_string() != expected[static_cast<std::size_t>(batch - 1)] ||
                    !(function.serialize() == function.artifact().bytes()))
                    ++wrong;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
}

TEST(Lifetime, TheFunctionKeepsTheBytesThatItReads) {
    const auto graph = mlp(4);
    std::optional<lyo::Function> function;
    {
        auto bytes = lyo::compile(graph);
        auto artifact = lyo::Artifact::check(std::move(*bytes));
        function = *lyo::hydrate(*artifact, lyo::Device::cpu());
    }
    expect_same(graph, *function, {filled({4, 5}, DType::f32, 9)});
    EXPECT_TRUE(lyo::Artifact::check(function->serialize()).has_value());
}

}  // namespace
