// What the compiler makes of graphs: how many kernels, how much memory, and the same bytes every time.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
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
using lyo_test::built;

lyo::Artifact compiled(const lyo::Graph& graph) {
    auto bytes = lyo::compile(graph);
    EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string() << "\n" << graph.to_string();
    auto artifact = lyo::Artifact::check(*bytes);
    EXPECT_TRUE(artifact.has_value()) << artifact.error().to_string();
    return *artifact;
}

const lyo::Program& program(const lyo::Artifact& artifact) { return artifact.image("cpu")->programs.at(0); }

std::size_t count(const lyo::Program& plan, std::size_t alternative) {
    std::size_t n = 0;
    for (const auto& step : plan.steps) n += step.index() == alternative;
    return n;
}
constexpr std::size_t loops = 0, gemms = 1;

TEST(Fusion, APointwiseChainWithBroadcastsIsOneLoop) {
    const auto artifact = compiled(built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {4, 1, 33}), y = b.input("y", DType::f32, {1, 5, 33}),
                   z = b.input("z", DType::f32, {33});
        const auto e = b.call("exp", {b.call("neg", {b.call("abs", {b.call("sub.Tensor", {x, y})})})});
        const auto d = b.call("add.Tensor", {b.call("mul.Tensor", {z, z}), Sym(1)});
        b.output(
            b.call("add.Tensor", {b.call("div.Tensor", {e, d}), b.call("clamp", {b.call("tanh", {x}), -0.5, 0.5})}));
    }));
    EXPECT_EQ(program(artifact).steps.size(), 1u);
    EXPECT_TRUE(program(artifact).slots.empty());
}

TEST(Fusion, ASoftmaxWithItsNeighboursIsOneLoop) {
    const auto artifact = compiled(built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {8, 64});
        b.output(b.call("mul.Tensor", {b.call("softmax.int", {b.call("mul.Tensor", {x, 0.125}), Sym(-1)}), 2.0}));
    }));
    EXPECT_EQ(program(artifact).steps.size(), 1u);
    EXPECT_TRUE(program(artifact).slots.empty());
}

TEST(Fusion, LayerNormWithAffineAndSoftmaxIsOneLoop) {
    const auto artifact = compiled(built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {8, 64});
        const auto w = b.input("w", DType::f32, {64}), bias = b.input("b", DType::f32, {64});
        b.output(b.call("softmax.int", {b.call("layer_norm", {x, std::vector<Sym>{64}, w, bias}), Sym(-1)}));
    }));
    EXPECT_EQ(program(artifact).steps.size(), 1u);
}

TEST(Fusion, AMatrixProductTakesBiasAndActivationAsEpilogue) {
    const auto artifact = compiled(built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {6, 9}), w = b.input("w", DType::f32, {5, 9}),
                   bias = b.input("b", DType::f32, {5});
        b.output(b.call("gelu", {b.call("linear", {x, w, bias})}));
    }));
    EXPECT_EQ(program(artifact).steps.size(), 1u);
    EXPECT_EQ(count(program(artifact), gemms), 1u);
}

TEST(Fusion, AnEpilogueMayUseWhatWasComputedBeforeTheProduct) {
    // The mask comes first in the graph and joins the product's kernel.
    const lyo::Graph graph = built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {6, 6}), i = b.input("i", DType::i64, {6, 6});
        const auto mask = b.call("gt.Scalar", {i, Sym(0)});
        b.output(b.call("where.ScalarOther", {mask, b.call("matmul", {x, x}), -1.0}));
    });
    const auto artifact = compiled(graph);
    EXPECT_EQ(program(artifact).steps.size(), 1u);
    const std::vector<lyo::Tensor> inputs{lyo_test::filled({6, 6}, DType::f32, 1),
                                          lyo_test::filled({6, 6}, DType::i64, 2)};
    const auto function = lyo::hydrate(artifact, lyo::Device::cpu());
    ASSERT_TRUE(function.has_value()) << function.error().to_string();
    const auto got = function->call(inputs), expected = lyo::interpret(graph, inputs);
    ASSERT_TRUE(got.has_value() && expected.has_value());
    for (std::int64_t k = 0; k < 36; ++k) EXPECT_NEAR(got->front().at(k), expected->front().at(k), 1e-5) << k;
}

TEST(Fusion, AValueThatIsReadElsewhereDoesNotMakeACycle) {
    // exp feeds a product and, with the product's result, a sum: one kernel for all three would need its own result.
    const auto artifact = compiled(built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {4, 4});
        const auto e = b.call("exp", {x});
        b.output(b.call("add.Tensor", {b.call("matmul", {e, e}), e}));
    }));
    EXPECT_EQ(count(program(artifact), gemms), 1u);
    EXPECT_EQ(count(program(artifact), loops), 1u);
}

TEST(Memory, SlotsAreUsedAgain) {
    const auto artifact = compiled(built([](lyo::Builder& b) {
        auto x = b.input("x", DType::f32, {32, 32});
        for (int i = 0; i < 10; ++i) x = b.call("relu", {b.call("matmul", {x, x})});
        b.output(x);
    }));
    EXPECT_EQ(count(program(artifact), gemms), 10u);
    EXPECT_EQ(program(artifact).slots.size(), 2u);
}

TEST(Determinism, TheSameGraphGivesTheSameBytes) {
    const auto graph = [] {
        return built([](lyo::Builder& b) {
            const Sym s = b.symbol("s0", 1, 64);
            const auto x = b.input("x", DType::f32, {s, 8});
            b.output(b.call("softmax.int", {b.call("matmul", {x, b.call("t", {x})}), Sym(-1)}));
        });
    };
    EXPECT_TRUE(*lyo::compile(graph()) == *lyo::compile(graph()));
}

TEST(Constants, EqualOnesAreStoredOnceAndUnusedOnesNotAtAll) {
    const std::vector<float> data(64, 0.5f);
    const auto artifact = compiled(built([&](lyo::Builder& b) {
        const auto tensor = lyo::Tensor::borrow(data.data(), {8, 8}, DType::f32);
        const auto x = b.input("x", DType::f32, {8, 8});
        const auto first = b.constant("first", tensor), second = b.constant("second", tensor);
        (void)b.constant("unused", lyo::Tensor::borrow(data.data(), {4, 4}, DType::f32));
        b.output(b.call("matmul", {b.call("matmul", {x, first}), second}));
    }));
    ASSERT_EQ(artifact.functions().constants.size(), 1u);
    EXPECT_EQ(artifact.functions().constants[0].name, "first");
}

TEST(Targets, AnUnknownOneIsRefusedByName) {
    lyo::CompileOptions options;
    options.targets = {"tpu"};
    const auto refused = lyo::compile(
        built([](lyo::Builder& b) { b.output(b.call("relu", {b.input("x", DType::f32, {1})})); }), options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, lyo::ErrorCode::invalid_argument);
    EXPECT_NE(refused.error().to_string().find("tpu"), std::string::npos);
}

}  // namespace
