// CUDA targets: what needs NVRTC is skipped, visibly, where it is not installed. Nothing here needs a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "../support/graphs.h"

import lyo.base;
import lyo.artifact;
import lyo.graph;
import lyo.compiler;

namespace {

using lyo::DType;
using lyo::Sym;
using lyo_test::built;

lyo::Tensor zeros(const lyo::Dims& shape, DType dtype = DType::f32) {
    auto tensor = lyo::Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    std::memset(tensor->mutable_data(), 0, static_cast<std::size_t>(tensor->numel()) * lyo::size_of(dtype));
    return *tensor;
}

lyo::Graph seed() {
    return built([](lyo::Builder& b) {
        const auto x = b.input("x", DType::f32, {2, 4});
        const auto h =
            b.call("relu", {b.call("linear", {x, b.constant("w1", zeros({8, 4})), b.constant("b1", zeros({8}))})});
        b.output(b.call("linear", {h, b.constant("w2", zeros({3, 8})), b.constant("b2", zeros({3}))}));
    });
}

/// The artifact, or the compiler's error.
lyo::Result<lyo::Artifact> compiled(const lyo::Graph& graph, std::vector<std::string> targets) {
    const auto bytes = lyo::compile(graph, {std::move(targets), false});
    if (!bytes) return std::unexpected(bytes.error());
    return lyo::Artifact::check(*bytes);
}

// Only a machine without NVRTC is a reason to skip, and the error says which library it lacks; any other error fails.
#define COMPILED(name, graph, ...)                                        \
    const auto name##_or = compiled(graph, __VA_ARGS__);                  \
    if (!name##_or && name##_or.error().code == lyo::ErrorCode::no_image) \
        GTEST_SKIP() << name##_or.error().to_string();                    \
    ASSERT_TRUE(name##_or.has_value()) << name##_or.error().to_string();  \
    const lyo::Artifact& name = *name##_or

TEST(CudaTargets, OneArtifactHoldsTheCpuACubinAndPtx) {
    COMPILED(artifact, seed(), {"cuda:ptx", "cpu", "cuda:sm_90"});
    EXPECT_EQ(artifact.manifest().targets, (std::vector<std::string>{"cpu", "cuda:ptx", "cuda:sm_90"}));
    ASSERT_NE(artifact.image("cpu"), nullptr);
    for (const std::string target : {"cuda:ptx", "cuda:sm_90"}) {
        ASSERT_NE(artifact.device_image(target), nullptr);
        EXPECT_EQ(artifact.device_image(target)->programs.size(), 1u);
    }
    EXPECT_EQ(artifact.device_code("cuda:ptx").text().back(), '\0');
    EXPECT_EQ(artifact.device_code("cuda:sm_90").text().substr(1, 3), "ELF");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(artifact.device_code("cuda:sm_90").data()) % 64, 0u);
    EXPECT_EQ(artifact.image("cuda:sm_90"), nullptr);
    EXPECT_EQ(artifact.device_image("cuda:sm_80"), nullptr);
    EXPECT_LT(artifact.bytes().size(), 32u << 10);
    const auto again = artifact.encode_again();
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(*again == artifact.bytes());
}

TEST(CudaTargets, ATwoLayerNetworkIsOneKernel) {
    COMPILED(artifact, seed(), {"cuda:sm_90"});
    EXPECT_EQ(artifact.device_image("cuda:sm_90")->programs[0].steps.size(), 1u);
}

TEST(CudaTargets, CompilingTwiceGivesTheSameBytes) {
    COMPILED(first, seed(), {"cuda:sm_90", "cuda:ptx"});
    COMPILED(second, seed(), {"cuda:sm_90", "cuda:ptx"});
    EXPECT_TRUE(first.bytes() == second.bytes());
}

TEST(CudaTargets, AnUnknownTargetIsRefusedWithTheKnownForms) {
    for (const std::string target : {"cuda", "cuda:90", "cuda:sm_", "cuda:sm_x0", "hip", ""}) {
        const auto bytes = lyo::compile(seed(), {{target}, false});
        ASSERT_FALSE(bytes.has_value()) << target;
        EXPECT_EQ(bytes.error().code, lyo::ErrorCode::invalid_argument);
        EXPECT_NE(bytes.error().what.find("cuda:sm_NN"), std::string::npos);
    }
}

TEST(CudaTargets, EveryKindOfKernelCompiles) {
    const auto n = Sym::symbol("n");
    const auto graph = built([&](lyo::Builder& b) {
        b.symbol("n", 1, 1 << 20);
        const auto x = b.input("x", DType::f32, {n, 1024});
        const auto y = b.input("y", DType::bf16, {n, 24});
        const auto i = b.input("i", DType::i32, {7, n});
        b.output(b.call("softmax.int", {x, Sym(-1)}));
        b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0}}));
        b.output(b.call("argmax", {x, Sym(1)}));
        b.output(b.call("amax", {i, std::vector<Sym>{0, 1}}));
        b.output(b.call("matmul", {y, b.constant("w", zeros({24, 40}, DType::bf16))}));
        b.output(b.call("gelu",
                        {b.call("linear", {x, b.constant("v", zeros({512, 1024})), b.constant("c", zeros({512}))})}));
        b.output(b.call("floor_divide", {i, b.call("add.Tensor", {i, Sym(3)})}));
        b.output(b.call("transpose.int", {b.call("exp", {x}), Sym(0), Sym(1)}));
        b.output(b.call("matmul", {b.call("t", {i}), i}));
    });
    COMPILED(artifact, graph, {"cuda:sm_90", "cuda:ptx"});
    EXPECT_GT(artifact.device_image("cuda:sm_90")->programs[0].steps.size(), 8u);
}

}  // namespace
