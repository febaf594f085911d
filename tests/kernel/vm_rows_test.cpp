// Loop programs that work on whole rows: how exact long sums are, softmax and layer norm.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vm_program.h"

namespace lyo::cpu::test {
namespace {

/// Sums along the reduced dim `n` for `rows` rows. The reduced dim is the inner one, or the outer one in memory.
std::vector<double> sums(const Kernels& kernels, Storage& x, std::int64_t rows, std::int64_t n, bool inner) {
    Storage out(x.type(), rows);
    Program p;
    p.outer = {rows};
    p.reduced = {n};
    p.operand(x, 0, {inner ? n : 1}, {inner ? 1 : rows});
    p.per_row(out);
    p.phase(false);
    p.load(0, 0);
    p.op(ScalarOp::reduce_sum, class_of(x.type()), 1, 0);
    p.phase(true);
    p.store(1, 1);
    EXPECT_EQ(p.run(kernels), Status::ok);
    std::vector<double> result;
    for (std::int64_t i = 0; i < rows; ++i) result.push_back(out.at(i).real);
    return result;
}

TEST(VmRows, LongSumsStayAccurate) {
    for (const Kernels* kernels : available_kernels()) {
        for (DType type : {DType::f32, DType::f64}) {
            for (bool inner : {true, false}) {
                std::int64_t rows = inner ? 2 : 32, n = inner ? 1000000 : 60000;
                Random random(5);
                Storage x(type, rows * n);
                for (std::int64_t i = 0; i < x.size(); ++i) {
                    x.set(i, {.real = 0.1 + static_cast<double>(random() % 1000) * 1e-3 * (i % 7 == 0 ? 100 : 1)});
                }
                auto got = sums(*kernels, x, rows, n, inner);
                for (std::int64_t r = 0; r < rows; ++r) {
                    long double expected = 0;
                    for (std::int64_t i = 0; i < n; ++i) {
                        expected += static_cast<long double>(x.at(inner ? r * n + i : i * rows + r).real);
                    }
                    double tolerance = type == DType::f32 ? 1e-7 : 2e-16;
                    EXPECT_NEAR(got[static_cast<std::size_t>(r)], static_cast<double>(expected),
                                tolerance * static_cast<double>(expected))
                        << kernels->name << " inner " << inner;
                }
            }
        }
    }
}

TEST(VmRows, SumsOfInfinitiesAreInfiniteOrNan) {
    for (const Kernels* kernels : available_kernels()) {
        for (DType type : {DType::f32, DType::f64}) {
            for (bool inner : {true, false}) {
                std::int64_t rows = 40, n = inner ? 900 : 3;
                Storage x(type, rows * n);
                auto set = [&](std::int64_t r, std::int64_t i, double v) {
                    x.set(inner ? r * n + i : i * rows + r, {.real = v});
                };
                set(0, 1, INFINITY);
                set(1, 0, -INFINITY);
                set(2, 0, INFINITY);
                set(2, n - 1, -INFINITY);
                set(3, 2, NAN);
                auto got = sums(*kernels, x, rows, n, inner);
                EXPECT_EQ(got[0], INFINITY) << kernels->name;
                EXPECT_EQ(got[1], -INFINITY) << kernels->name;
                EXPECT_TRUE(std::isnan(got[2])) << kernels->name;
                EXPECT_TRUE(std::isnan(got[3])) << kernels->name;
                EXPECT_EQ(got[4], 0) << kernels->name;
            }
        }
    }
}

TEST(VmRows, SoftmaxSumsToOneAndAgreesWithDouble) {
    for (const Kernels* kernels : available_kernels()) {
        for (auto [rows, n] : {std::pair<std::int64_t, std::int64_t>{3, 1000}, {700, 5}, {1, 1}, {40, 64}}) {
            Random random(9);
            Storage x(DType::f32, rows * n), y(DType::f32, rows * n);
            for (std::int64_t i = 0; i < x.size(); ++i)
                x.set(i, {.real = static_cast<double>(pick(random, -4000, 4000)) / 100});
            Program p;
            p.outer = {rows};
            p.reduced = {n};
            p.contiguous(x);
            p.contiguous(y);
            p.phase(false);
            p.load(0, 0);
            p.op(ScalarOp::reduce_max, RegClass::f32, 1, 0);
            p.phase(false);
            p.load(0, 0);
            p.op(ScalarOp::sub, RegClass::f32, 0, 0, 1);
            p.op(ScalarOp::exp, RegClass::f32, 0, 0);
            p.op(ScalarOp::reduce_sum, RegClass::f32, 2, 0);
            p.phase(true);
            p.op(ScalarOp::reciprocal, RegClass::f32, 2, 2);
            p.phase(false);
            p.load(0, 0);
            p.op(ScalarOp::sub, RegClass::f32, 0, 0, 1);
            p.op(ScalarOp::exp, RegClass::f32, 0, 0);
            p.op(ScalarOp::mul, RegClass::f32, 0, 0, 2);
            p.store(1, 0);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            for (std::int64_t r = 0; r < rows; ++r) {
                double top = -INFINITY, sum = 0, total = 0;
                for (std::int64_t i = 0; i < n; ++i) top = std::max(top, x.at(r * n + i).real);
                // The program subtracts in f32, which rounds: by up to 4e-6 where the difference is about -80.
                const auto shifted = [&](std::int64_t i) {
                    return std::exp(static_cast<double>(static_cast<float>(x.at(r * n + i).real - top)));
                };
                for (std::int64_t i = 0; i < n; ++i) sum += shifted(i);
                for (std::int64_t i = 0; i < n; ++i) {
                    double expected = shifted(i) / sum;
                    ASSERT_NEAR(y.at(r * n + i).real, expected, 1e-6 * expected + 1e-40) << kernels->name;
                    total += y.at(r * n + i).real;
                }
                ASSERT_NEAR(total, 1, 1e-6);
            }
        }
    }
}

TEST(VmRows, LayerNormCentersAndScalesEveryRow) {
    for (const Kernels* kernels : available_kernels()) {
        for (auto [rows, n] : {std::pair<std::int64_t, std::int64_t>{4, 768}, {900, 6}}) {
            Random random(11);
            Storage x(DType::bf16, rows * n), scale(DType::f32, n), y(DType::f32, rows * n);
            for (std::int64_t i = 0; i < x.size(); ++i)
                x.set(i, {.real = static_cast<double>(pick(random, -400, 400)) / 100 + 5});
            for (std::int64_t i = 0; i < n; ++i) scale.set(i, {.real = static_cast<double>(i % 5) + 1});
            Program p;
            p.outer = {rows};
            p.reduced = {n};
            p.contiguous(x);
            p.operand(scale, 0, {0}, {1});
            p.contiguous(y);
            p.phase(false);
            p.load(0, 0);
            p.op(ScalarOp::reduce_sum, RegClass::f32, 1, 0);
            p.phase(true);
            p.constant(9, RegClass::f32, static_cast<double>(n));
            p.op(ScalarOp::div, RegClass::f32, 1, 1, 9);
            p.phase(false);
            p.load(0, 0);
            p.op(ScalarOp::sub, RegClass::f32, 0, 0, 1);
            p.op(ScalarOp::mul, RegClass::f32, 0, 0, 0);
            p.op(ScalarOp::reduce_sum, RegClass::f32, 2, 0);
            p.phase(true);
            p.op(ScalarOp::div, RegClass::f32, 2, 2, 9);
            p.op(ScalarOp::rsqrt, RegClass::f32, 2, 2);
            p.phase(false);
            p.load(0, 0);
            p.load(3, 1);
            p.op(ScalarOp::sub, RegClass::f32, 0, 0, 1);
            p.op(ScalarOp::mul, RegClass::f32, 0, 0, 2);
            p.op(ScalarOp::mul, RegClass::f32, 0, 0, 3);
            p.store(2, 0);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            for (std::int64_t r = 0; r < rows; ++r) {
                double mean = 0, variance = 0;
                for (std::int64_t i = 0; i < n; ++i) mean += x.at(r * n + i).real / static_cast<double>(n);
                for (std::int64_t i = 0; i < n; ++i)
                    variance += std::pow(x.at(r * n + i).real - mean, 2) / static_cast<double>(n);
                for (std::int64_t i = 0; i < n; ++i) {
                    double expected =
                        (x.at(r * n + i).real - mean) / std::sqrt(variance) * (static_cast<double>(i % 5) + 1);
                    ASSERT_NEAR(y.at(r * n + i).real, expected, 3e-6 * (1 + std::fabs(expected))) << kernels->name;
                }
            }
        }
    }
}

}  // namespace
}  // namespace lyo::cpu::test
