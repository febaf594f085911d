// Convolutions and pooling: what is compiled, over windows and products, against the definition that the reference
// follows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
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
using lyo::ValueId;
using lyo_test::filled;
using Numbers = std::vector<std::int64_t>;

std::vector<Sym> syms(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

void check(const std::function<void(lyo::Builder&)>& body, const std::vector<Tensor>& inputs, double tolerance = 2e-5) {
    lyo::Builder builder;
    body(builder);
    const auto graph = builder.finish();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    const auto expected = lyo::interpret(*graph, inputs);
    ASSERT_TRUE(expected.has_value()) << expected.error().to_string() << "\n" << graph->to_string();
    const auto bytes = lyo::compile(*graph);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string() << "\n" << graph->to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    ASSERT_TRUE(function.has_value()) << function.error().to_string();
    const auto got = function->call(inputs);
    ASSERT_TRUE(got.has_value()) << got.error().to_string() << "\n" << graph->to_string();
    for (std::size_t o = 0; o < expected->size(); ++o) {
        ASSERT_EQ((*got)[o].shape(), (*expected)[o].shape()) << graph->to_string();
        for (std::int64_t i = 0; i < (*got)[o].numel(); ++i) {
            const double a = (*got)[o].at(i), b = (*expected)[o].at(i);
            ASSERT_LE(std::fabs(a - b), tolerance * (1 + std::fabs(b))) << "output " << o << " element " << i << "\n"
                                                                        << graph->to_string();
        }
    }
}

struct Conv {
    lyo::Dims x, w;
    Numbers stride, padding, dilation;
    std::int64_t groups = 1;
};

TEST(Convolution, OneToThreeDimensionsGroupsStridesAndDilations) {
    const Conv cases[] = {
        {{2, 3, 17}, {4, 3, 3}, {1}, {0}, {1}},
        {{1, 4, 20}, {6, 2, 5}, {2}, {3}, {2}, 2},
        {{2, 3, 9, 11}, {5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
        {{1, 3, 9, 11}, {5, 3, 1, 1}, {1, 1}, {0, 0}, {1, 1}},
        {{2, 6, 8, 7}, {6, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 6},
        {{1, 4, 12, 13}, {8, 2, 3, 2}, {2, 3}, {2, 1}, {2, 1}, 2},
        {{1, 2, 5, 6, 7}, {3, 2, 2, 3, 2}, {1, 2, 1}, {0, 1, 1}, {1, 1, 2}},
        {{3, 12, 12}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
    };
    for (const Conv& c : cases) {
        const std::string name = c.w.size() == 3 ? "conv1d" : c.w.size() == 4 ? "conv2d" : "conv3d";
        ASSERT_NO_FATAL_FAILURE(check(
            [&](lyo::Builder& b) {
                const ValueId x = b.input("x", DType::f32, lyo::to_shape(c.x)),
                              w = b.input("w", DType::f32, lyo::to_shape(c.w));
                const ValueId bias = b.input("b", DType::f32, {c.w[0]});
                b.output(b.call(name, {x, w, bias, syms(c.stride), syms(c.padding), syms(c.dilation), Sym(c.groups)}));
                b.output(b.call("relu", {b.call(name, {x, w},
                                                {{"stride", syms(c.stride)},
                                                 {"padding", syms(c.padding)},
                                                 {"dilation", syms(c.dilation)},
                                                 {"groups", Sym(c.groups)}})}));
            },
            {filled(c.x, DType::f32, 1), filled(c.w, DType::f32, 2), filled({c.w[0]}, DType::f32, 3)}));
    }
}

TEST(Convolution, TransposedWithOutputPaddingGroupsAndDilation) {
    struct Case {
        lyo::Dims x, w;
        Numbers stride, padding, output_padding, dilation;
        std::int64_t groups;
    };
    const Case cases[] = {
        {{2, 3, 7}, {3, 4, 3}, {2}, {1}, {1}, {1}, 1},
        {{1, 4, 5, 6}, {4, 3, 3, 3}, {2, 2}, {1, 1}, {1, 0}, {1, 1}, 1},
        {{1, 4, 5, 6}, {4, 2, 2, 3}, {3, 1}, {0, 2}, {0, 0}, {1, 2}, 2},
        {{1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}, {2, 1, 2}, {0, 0, 1}, {1, 0, 0}, {1, 1, 1}, 1},
    };
    for (const Case& c : cases) {
        const std::string name = c.w.size() == 3   ? "conv_transpose1d"
                                 : c.w.size() == 4 ? "conv_transpose2d.input"
                                                   : "conv_transpose3d.input";
        ASSERT_NO_FATAL_FAILURE(check(
            [&](lyo::Builder& b) {
                const ValueId x = b.input("x", DType::f32, lyo::to_shape(c.x)),
                              w = b.input("w", DType::f32, lyo::to_shape(c.w));
                b.output(b.call(name, {x, w},
                                {{"stride", syms(c.stride)},
                                 {"padding", syms(c.padding)},
                                 {"output_padding", syms(c.output_padding)},
                                 {"dilation", syms(c.dilation)},
                                 {"groups", Sym(c.groups)}}));
            },
            {filled(c.x, DType::f32, 1), filled(c.w, DType::f32, 2)}));
    }
}

TEST(Convolution, SameAndValidAndHalfTypesAndASymbolicBatch) {
    ASSERT_NO_FATAL_FAILURE(check(
        [](lyo::Builder& b) {
            const Sym n = b.symbol("n", 1, 64);
            const ValueId x = b.input("x", DType::f32, {n, 3, 10, 9}), w = b.input("w", DType::f32, {4, 3, 4, 3});
            b.output(b.call("conv2d.padding", {x, w}, {{"padding", std::string("same")}}));
            b.output(
                b.call("conv2d.padding", {x, w}, {{"padding", std::string("valid")}, {"stride", std::vector<Sym>{2}}}));
        },
        {filled({5, 3, 10, 9}, DType::f32, 1), filled({4, 3, 4, 3}, DType::f32, 2)}));
    ASSERT_NO_FATAL_FAILURE(check(
        [](lyo::Builder& b) {
            const ValueId x = b.input("x", DType::bf16, {1, 3, 8, 8}), w = b.input("w", DType::bf16, {4, 3, 3, 3});
            b.output(b.call("conv2d", {x, w}));
        },
        {filled({1, 3, 8, 8}, DType::bf16, 1), filled({4, 3, 3, 3}, DType::bf16, 2)}, 1.6e-2));
}

TEST(Pooling, MaximaAndMeansInEveryMode) {
    for (const bool ceil : {false, true})
        for (const std::int64_t padding : {0, 1})
            for (const std::int64_t stride : {1, 2, 3}) {
                const std::vector<Sym> kernel{3, 2}, strides{stride, 2}, paddings{padding, padding};
                ASSERT_NO_FATAL_FAILURE(check(
                    [&](lyo::Builder& b) {
                        const ValueId x = b.input("x", DType::f32, {2, 3, 10, 11});
                        b.output(b.call("max_pool2d", {x, kernel, strides, paddings, std::vector<Sym>{1}, ceil}));
                        for (const ValueId v : b.call_all("max_pool2d_with_indices",
                                                          {x, kernel, strides, paddings, std::vector<Sym>{1}, ceil}))
                            b.output(v);
                        b.output(b.call("avg_pool2d", {x, kernel, strides, paddings, ceil, true}));
                        b.output(b.call("avg_pool2d", {x, kernel, strides, paddings, ceil, false}));
                        b.output(b.call("avg_pool2d", {x, kernel, strides, paddings, ceil, true, Sym(5)}));
                    },
                    {filled({2, 3, 10, 11}, DType::f32, 4)}));
            }
    ASSERT_NO_FATAL_FAILURE(check(
        [](lyo::Builder& b) {
            const ValueId x = b.input("x", DType::f32, {3, 12}), y = b.input("y", DType::f32, {1, 2, 6, 6, 6});
            b.output(b.call("max_pool1d",
                            {x, std::vector<Sym>{3}, std::vector<Sym>{}, std::vector<Sym>{1}, std::vector<Sym>{2}}));
            b.output(b.call("avg_pool1d", {x, std::vector<Sym>{4}}));
            b.output(b.call("max_pool3d", {y, std::vector<Sym>{2}}));
            b.output(b.call("avg_pool3d", {y, std::vector<Sym>{3}, std::vector<Sym>{1}}));
        },
        {filled({3, 12}, DType::f32, 5), filled({1, 2, 6, 6, 6}, DType::f32, 6)}));
}

TEST(Pooling, AdaptiveMeansOfAnySize) {
    for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {2, 2}, {3, 5}, {7, 4}, {10, 12}, {13, 15}})
        ASSERT_NO_FATAL_FAILURE(check(
            [&](lyo::Builder& b) {
                b.output(
                    b.call("adaptive_avg_pool2d", {b.input("x", DType::f32, {2, 3, 10, 12}), std::vector<Sym>{h, w}}));
            },
            {filled({2, 3, 10, 12}, DType::f32, 7)}));
}

}  // namespace
