// The oracle, against numbers that were worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

import lyo.base;
import lyo.graph;

namespace {

using lyo::DType;
using lyo::Sym;
using lyo::Tensor;
using lyo::ValueId;

Tensor of(const lyo::Dims& shape, const std::vector<double>& values, DType dtype = DType::f32) {
    auto tensor = Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    EXPECT_EQ(static_cast<std::size_t>(tensor->numel()), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        lyo::store_double(static_cast<std::byte*>(tensor->mutable_data()) + i * lyo::size_of(dtype), dtype, values[i]);
    return *tensor;
}

/// The operator on the tensors, then on further arguments.
std::vector<double> values(const std::string& op, const std::vector<Tensor>& tensors,
                           std::vector<lyo::Argument> more = {}, std::vector<lyo::Named> named = {}) {
    lyo::Builder b;
    std::vector<lyo::Argument> arguments;
    for (const Tensor& t : tensors) arguments.emplace_back(b.input("t", t.dtype(), lyo::to_shape(t.shape())));
    for (lyo::Argument& a : more) arguments.push_back(std::move(a));
    b.output(b.call(op, std::move(arguments), std::move(named)));
    const auto graph = b.finish();
    EXPECT_TRUE(graph.has_value()) << graph.error().to_string();
    const auto outputs = lyo::interpret(*graph, tensors);
    EXPECT_TRUE(outputs.has_value()) << outputs.error().to_string();
    std::vector<double> out;
    for (std::int64_t i = 0; i < outputs->front().numel(); ++i) out.push_back(outputs->front().at(i));
    return out;
}

using V = std::vector<double>;

TEST(Interpret, ArithmeticBroadcasts) {
    EXPECT_EQ(values("add.Tensor", {of({2, 2}, {1, 2, 3, 4}), of({2}, {10, 20})}), (V{11, 22, 13, 24}));
    EXPECT_EQ(values("add.Tensor", {of({2}, {1, 2}), of({2}, {10, 20})}, {}, {{"alpha", Sym(3)}}), (V{31, 62}));
    EXPECT_EQ(values("rsub.Scalar", {of({2}, {1, 2})}, {Sym(10)}), (V{9, 8}));
}

TEST(Interpret, IntegerDivisionFollowsPython) {
    const Tensor x = of({4}, {7, -7, 7, -7}, DType::i32), y = of({4}, {2, 2, -2, -2}, DType::i32);
    EXPECT_EQ(values("floor_divide", {x, y}), (V{3, -4, -4, 3}));
    EXPECT_EQ(values("remainder.Tensor", {x, y}), (V{1, 1, -1, -1}));
    EXPECT_EQ(values("fmod.Tensor", {x, y}), (V{1, -1, 1, -1}));
    EXPECT_EQ(values("div.Tensor_mode", {x, y}, {}, {{"rounding_mode", std::string("trunc")}}), (V{3, -3, -3, 3}));
}

TEST(Interpret, IntegersWrapAndHalvesRound) {
    EXPECT_EQ(values("add.Tensor", {of({1}, {127}, DType::i8), of({1}, {1}, DType::i8)}), (V{-128}));
    EXPECT_EQ(values("add.Tensor", {of({1}, {255}, DType::u8), of({1}, {1}, DType::u8)}), (V{0}));
    EXPECT_EQ(values("to.dtype", {of({2}, {2049, 0.1})}, {DType::f16}), (V{2048, 0.0999755859375}));
    EXPECT_EQ(values("to.dtype", {of({3}, {2.7, -2.7, 300})}, {DType::i8}), (V{2, -2, 44}));
}

TEST(Interpret, ReductionsOfNothing) {
    const Tensor x = of({0, 2}, {});
    EXPECT_EQ(values("sum.dim_IntList", {x}, {std::vector<Sym>{0}}), (V{0, 0}));
    EXPECT_EQ(values("prod.dim_int", {x}, {Sym(0)}), (V{1, 1}));
    EXPECT_TRUE(std::isnan(values("mean.dim", {x}, {std::vector<Sym>{0}})[0]));
}

TEST(Interpret, NaNPropagatesThroughMaximaAndComesFirst) {
    const Tensor x = of({4}, {1, NAN, 5, NAN});
    EXPECT_TRUE(std::isnan(values("amax", {x}, {std::vector<Sym>{0}})[0]));
    EXPECT_EQ(values("argmax", {x}), (V{1}));
    EXPECT_TRUE(std::isnan(values("relu", {x})[1]));
    EXPECT_EQ(values("argmax", {of({4}, {3, 7, 7, 1})}), (V{1}));
}

TEST(Interpret, StatisticsAndNorms) {
    const Tensor x = of({4}, {1, 2, 3, 4});
    EXPECT_DOUBLE_EQ(values("var.correction", {x}, {}, {{"correction", Sym(1)}})[0], static_cast<float>(5.0 / 3.0));
    EXPECT_DOUBLE_EQ(values("linalg_vector_norm", {of({2}, {3, 4})})[0], 5);
    const V s = values("softmax.int", {of({2}, {0, std::log(3.0)})}, {Sym(0)});
    EXPECT_NEAR(s[0], 0.25, 1e-6);
    EXPECT_NEAR(s[1], 0.75, 1e-6);
}

TEST(Interpret, ProductsOfMatrices) {
    const Tensor x = of({2, 2}, {1, 2, 3, 4}), y = of({2, 2}, {5, 6, 7, 8});
    EXPECT_EQ(values("matmul", {x, y}), (V{19, 22, 43, 50}));
    EXPECT_EQ(values("linear", {x, y}), (V{17, 23, 39, 53}));
    EXPECT_EQ(values("matmul", {of({2, 0}, {}), of({0, 1}, {})}), (V{0, 0}));
}

TEST(Interpret, ViewsWithSteps) {
    const Tensor x = of({6}, {0, 1, 2, 3, 4, 5});
    EXPECT_EQ(values("slice.Tensor", {x}, {Sym(0), Sym(1), Sym(6), Sym(2)}), (V{1, 3, 5}));
    EXPECT_EQ(values("slice.Tensor", {x}, {Sym(0), Sym(-2), Sym(100), Sym(1)}), (V{4, 5}));
    EXPECT_EQ(values("flip", {x}, {std::vector<Sym>{0}}), (V{5, 4, 3, 2, 1, 0}));
    EXPECT_EQ(values("roll", {x}, {Sym(2)}), (V{4, 5, 0, 1, 2, 3}));
}

}  // namespace
