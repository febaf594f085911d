// Functions on a CUDA device against the reference interpreter: every family of kernel over shapes, strides and dtypes.
// Needs NVRTC beside the device.
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "on_device.h"

namespace {

using namespace lyo_test;
using lyo::DType;
using lyo::Sym;
using lyo::Tensor;
using lyo::ValueId;

TEST_F(OnDevice, PointwiseChainsOfEveryDTypeAndOddSize) {
    for (const DType dtype : dtypes)
        for (const std::int64_t n : {0, 1, 3, 7, 31, 33, 1000, 4099}) {
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, {n}), y = b.input("y", dtype, {n});
                b.output(b.call("add.Tensor", {b.call("mul.Tensor", {x, y}), x}));
                b.output(b.call("maximum", {x, y}));
                b.output(b.call("lt.Tensor", {x, y}));
                b.output(b.call("to.dtype", {x, DType::i64}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled({n}, dtype, 1), filled({n}, dtype, 2)}));
        }
}

TEST_F(OnDevice, MathematicsOfFloatsWithNaNAndInfinity) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        const auto graph = built([&](lyo::Builder& b) {
            const ValueId x = b.input("x", dtype, {64});
            for (const char* op : {"exp", "tanh", "sigmoid", "relu", "erf", "sqrt", "rsqrt", "abs", "neg", "floor",
                                   "round", "sin", "cos", "isnan", "isinf", "sign", "expm1", "log1p"})
                b.output(b.call(op, {x}));
            b.output(b.call("gelu", {x}));
            b.output(b.call("silu", {x}));
        });
        Tensor x = filled({64}, dtype, 3);
        const double specials[] = {0.0, -0.0, std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(), std::nan("")};
        for (std::size_t i = 0; i < std::size(specials); ++i)
            lyo::store_double(static_cast<std::byte*>(x.mutable_data()) + i * lyo::size_of(dtype), dtype, specials[i]);
        ASSERT_NO_FATAL_FAILURE(check(graph, target_, {x}, 8));
    }
}

TEST_F(OnDevice, IntegerDivisionAndShifts) {
    for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8}) {
        const auto graph = built([&](lyo::Builder& b) {
            const ValueId x = b.input("x", dtype, {257}), y = b.input("y", dtype, {257});
            b.output(b.call("floor_divide", {x, y}));
            b.output(b.call("remainder.Tensor", {x, y}));
            b.output(b.call("fmod.Tensor", {x, y}));
            b.output(b.call("bitwise_xor.Tensor", {x, y}));
            b.output(b.call("div.Tensor", {x, b.call("add.Tensor", {y, Sym(5)})}));
        });
        ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled({257}, dtype, 4), filled({257}, dtype, 5)}));
    }
}

TEST_F(OnDevice, BroadcastsViewsAndTranspositions) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {5, 1, 12}), y = b.input("y", DType::f32, {4, 12}),
                      z = b.input("z", DType::f32, {12});
        const ValueId s = b.call("add.Tensor", {b.call("mul.Tensor", {x, y}), z});
        b.output(s);
        b.output(b.call("exp", {b.call("permute", {s, std::vector<Sym>{2, 0, 1}})}));
        b.output(b.call("neg", {b.call("slice.Tensor", {s, Sym(2), Sym(1), Sym(11), Sym(3)})}));
        b.output(b.call("flip", {s, std::vector<Sym>{0, 2}}));
        b.output(b.call("cat", {std::vector<std::optional<ValueId>>{s, b.call("neg", {s})}, Sym(1)}));
        b.output(b.call("expand", {z, std::vector<Sym>{3, 12}}));
    });
    ASSERT_NO_FATAL_FAILURE(
        check(graph, target_,
              {filled({5, 1, 12}, DType::f32, 1), filled({4, 12}, DType::f32, 2), filled({12}, DType::f32, 3)}));
}

TEST_F(OnDevice, RowReductionsOfEveryLength) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64})
        for (const std::int64_t n : {1, 2, 5, 31, 32, 33, 64, 100, 127, 1024, 1025, 5000, 33000}) {
            const std::int64_t rows = n > 4000 ? 3 : 37;
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, {rows, n});
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{1}}));
                b.output(b.call("amax", {x, std::vector<Sym>{1}}));
                b.output(b.call("argmax", {x, Sym(1)}));
                b.output(b.call("argmin", {x, Sym(-1), true}));
                if (!lyo::is_float(dtype)) return;
                b.output(b.call("softmax.int", {x, Sym(-1)}));
                b.output(b.call("layer_norm", {x, std::vector<Sym>{n}}));
                b.output(b.call("sum", {x}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled({rows, n}, dtype, static_cast<std::uint64_t>(n))},
                                          static_cast<double>(n) * 4));
        }
}

TEST_F(OnDevice, ColumnReductionsAndSeveralAxes) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::i32})
        for (const lyo::Dims& shape : {lyo::Dims{1, 1, 1}, lyo::Dims{3, 7, 5}, lyo::Dims{17, 64, 33},
                                       lyo::Dims{129, 3, 257}, lyo::Dims{4, 0, 5}}) {
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, lyo::to_shape(shape));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0}}));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{1}, true}));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0, 2}}));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0, 1, 2}}));
                if (lyo::is_float(dtype)) b.output(b.call("softmax.int", {x, Sym(0)}));
                if (lyo::is_float(dtype)) b.output(b.call("softmax.int", {x, Sym(1)}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled(shape, dtype, 7)}, 2000));
        }
}

TEST_F(OnDevice, MatrixProductsOfEverySizeAndLayout) {
    struct Size {
        std::int64_t m, n, k;
    };
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32})
        for (const Size s :
             {Size{1, 1, 1}, Size{2, 3, 4}, Size{1, 256, 300}, Size{17, 33, 65}, Size{64, 64, 64}, Size{100, 70, 130},
              Size{3, 500, 1000}, Size{65, 129, 257}, Size{5, 5, 0}, Size{128, 256, 512}, Size{200, 300, 400}}) {
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, {s.m, s.k}), y = b.input("y", dtype, {s.k, s.n}),
                              w = b.input("w", dtype, {s.n, s.k});
                const ValueId v = b.input("v", dtype, {s.n});
                b.output(b.call("matmul", {x, y}));
                b.output(b.call("relu", {b.call("linear", {x, w, v})}));
                b.output(b.call("matmul", {b.call("t", {y}), b.call("t", {x})}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_,
                                          {filled({s.m, s.k}, dtype, 1), filled({s.k, s.n}, dtype, 2),
                                           filled({s.n, s.k}, dtype, 3), filled({s.n}, dtype, 4)},
                                          static_cast<double>(s.k) * 4));
        }
}

TEST_F(OnDevice, BatchedProductsWithBroadcastBatches) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {3, 1, 40, 70}), y = b.input("y", DType::f32, {2, 70, 50});
        b.output(b.call("matmul", {x, y}));
        b.output(
            b.call("softmax.int",
                   {b.call("matmul", {b.call("squeeze.dim", {x, Sym(1)}),
                                      b.call("transpose.int", {b.call("squeeze.dim", {x, Sym(1)}), Sym(1), Sym(2)})}),
                    Sym(-1)}));
    });
    ASSERT_NO_FATAL_FAILURE(
        check(graph, target_, {filled({3, 1, 40, 70}, DType::f32, 1), filled({2, 70, 50}, DType::f32, 2)}, 300));
}

TEST_F(OnDevice, ASymbolicBatchServesEverySize) {
    const auto graph = built([](lyo::Builder& b) {
        const Sym n = b.symbol("n", 0, 1 << 20);
        const ValueId x = b.input("x", DType::f32, {n, 48});
        const ValueId h = b.call("gelu", {b.call("linear", {x, b.constant("w", filled({96, 48}, DType::f32, 1)),
                                                            b.constant("c", filled({96}, DType::f32, 2))})});
        b.output(b.call("layer_norm", {h, std::vector<Sym>{96}}));
        b.output(b.call("sum.dim_IntList", {h, std::vector<Sym>{0}}));
        b.output(b.call("softmax.int", {h, Sym(0)}));
    });
    const lyo::Function function = live(graph, target_);
    for (const std::int64_t n : {1, 2, 33, 0, 700, 5, 64}) {
        const std::vector<Tensor> inputs{filled({n, 48}, DType::f32, static_cast<std::uint64_t>(n) + 9)};
        const auto expected = lyo::interpret(graph, inputs);
        ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
        const auto got = function.call(on_device(inputs));
        ASSERT_TRUE(got.has_value()) << got.error().to_string();
        ASSERT_NO_FATAL_FAILURE(expect_same(*expected, *got, 4000, "n = " + std::to_string(n)));
    }
}

}  // namespace
