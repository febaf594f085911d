// Every pointwise operator of the table, in every dtype that it takes: what is compiled gives what the reference
// interpreter gives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
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

constexpr DType dtypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                            DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

/// Values that matter: zeros of both signs, small and large ones, infinities, NaN, the lowest and highest integers.
Tensor telling(const lyo::Dims& shape, DType dtype, std::size_t shift) {
    static const double reals[] = {0.0,    -0.0,     1,         -1,  0.5,  -2.5,  3.25, 100,
                                   -0.125, INFINITY, -INFINITY, NAN, 1e-3, -7.75, 20.5, 2};
    static const std::int64_t integers[] = {0,   1,   -1, 2, 3,      -3,         7,         -128,
                                            127, 255, 31, 5, -32768, 2147483647, INT64_MIN, INT64_MAX};
    auto tensor = Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    for (std::int64_t i = 0; i < tensor->numel(); ++i) {
        auto* at = static_cast<std::byte*>(tensor->mutable_data()) + static_cast<std::size_t>(i) * lyo::size_of(dtype);
        const std::size_t k = (static_cast<std::size_t>(i) * 5 + shift) % 16;
        if (lyo::is_float(dtype))
            lyo::store_double(at, dtype, reals[k]);
        else
            lyo::store_int(at, dtype, integers[k]);
    }
    return *tensor;
}

/// An argument for a parameter that has no default; nullopt for a tensor.
std::optional<lyo::Argument> plain_argument(const lyo::Param& param) {
    if (param.type == "Scalar" || param.type == "Scalar?") return lyo::Argument(Sym(2));
    if (param.type == "float") return lyo::Argument(0.25);
    if (param.type == "int") return lyo::Argument(Sym(1));
    if (param.type == "bool") return lyo::Argument(false);
    if (param.type == "str?") return lyo::Argument(std::string("floor"));
    if (param.type == "ScalarType" || param.type == "ScalarType?") return lyo::Argument(DType::i16);
    if (param.type == "int[]") return lyo::Argument(std::vector<Sym>{Sym(4), Sym(16)});
    return std::nullopt;
}

struct Built {
    lyo::Graph graph;
    std::vector<Tensor> inputs;
};

/// The operator on tensors of the dtype, the last of them broadcast; nullopt where the table refuses the dtype.
std::optional<Built> build(const lyo::Op& op, DType dtype) {
    lyo::Builder builder;
    Built out;
    std::vector<lyo::Named> named;
    std::size_t tensors = 0;
    for (const lyo::Param& param : op.params) {
        if (param.type == "Tensor" || param.type == "Tensor?") {
            const bool condition = param.name == "condition" || param.name == "mask";
            const lyo::Dims shape = tensors > 1 ? lyo::Dims{16} : lyo::Dims{4, 16};
            const DType its = condition ? DType::boolean : dtype;
            named.push_back({param.name, builder.input(param.name, its, lyo::to_shape(shape))});
            out.inputs.push_back(telling(shape, its, tensors * 3));
            ++tensors;
        } else if (!param.default_value || param.type == "ScalarType?") {
            auto argument = plain_argument(param);
            if (argument) named.push_back({param.name, std::move(*argument)});
        }
    }
    builder.output(builder.call(op.name, {}, std::move(named)));
    auto graph = builder.finish();
    if (!graph) return std::nullopt;
    out.graph = std::move(*graph);
    return out;
}

/// What a dtype's rounding, and a few operations in f32, may lose.
double tolerance(DType dtype) {
    switch (dtype) {
        case DType::f16:
            return 2e-3;
        case DType::bf16:
            return 1.6e-2;
        case DType::f32:
            return 4e-6;
        default:
            return 1e-12;
    }
}

void check(const lyo::Op& op, DType dtype, const Built& built) {
    const std::string what = op.name + " of " + std::string(lyo::to_string(dtype));
    const auto expected = lyo::interpret(built.graph, built.inputs);
    const bool out_of_range = !expected && expected.error().code == lyo::ErrorCode::index_out_of_range;
    ASSERT_TRUE(expected.has_value() || out_of_range) << what << ": " << expected.error().to_string();
    const auto bytes = lyo::compile(built.graph);
    ASSERT_TRUE(bytes.has_value()) << what << ": " << bytes.error().to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value()) << what << ": " << artifact.error().to_string();
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    ASSERT_TRUE(function.has_value()) << what << ": " << function.error().to_string();
    const auto got = function->call(built.inputs);
    if (out_of_range) {
        ASSERT_FALSE(got.has_value()) << what;
        EXPECT_EQ(got.error().code, lyo::ErrorCode::index_out_of_range) << what;
        return;
    }
    ASSERT_TRUE(got.has_value()) << what << ": " << got.error().to_string();
    const Tensor &a = got->front(), &b = expected->front();
    ASSERT_EQ(a.dtype(), b.dtype()) << what;
    ASSERT_EQ(a.shape(), b.shape()) << what;
    for (std::int64_t i = 0; i < a.numel(); ++i) {
        const double x = a.at(i), y = b.at(i);
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        ASSERT_TRUE(lyo::is_float(a.dtype())) << what << " element " << i << ": " << x << ", expected " << y;
        ASSERT_LE(std::fabs(x - y), tolerance(a.dtype()) * (1 + std::fabs(y)))
            << what << " element " << i << ": " << x << ", expected " << y;
    }
}

TEST(Table, EveryPointwiseOperatorCompilesToWhatTheInterpreterGives) {
    std::size_t checked = 0;
    for (const lyo::Op* op : lyo::all_ops()) {
        if (op->def.emit == nullptr) continue;
        std::size_t taken = 0;
        for (const DType dtype : dtypes) {
            const auto built = build(*op, dtype);
            if (!built) continue;
            ++taken;
            check(*op, dtype, *built);
        }
        EXPECT_GT(taken, 0u) << op->name << " takes no dtype that this test knows how to give";
        checked += taken;
    }
    EXPECT_GT(checked, 1000u);
}

}  // namespace
