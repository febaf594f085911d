// Loop programs on every set of kernels that this processor has, against the plain interpreter of vm_program.h.

#include <gtest/gtest.h>

#include "vm_program.h"

namespace lyo::cpu::test {
namespace {

constexpr RegClass classes[] = {RegClass::f32, RegClass::f64, RegClass::i32, RegClass::i64};
constexpr DType dtypes[] = {
#define LYO_X(name, bytes) DType::name,
    LYO_DTYPES(LYO_X)
#undef LYO_X
};

DType widest_of(RegClass cls) {
    switch (cls) {
        case RegClass::f32:
            return DType::f32;
        case RegClass::f64:
            return DType::f64;
        case RegClass::i32:
            return DType::i32;
        case RegClass::i64:
            return DType::i64;
    }
    std::abort();
}

enum class Kind { arith, real, integer, compare, test, memory, reduce };
struct OpInfo {
    ScalarOp op;
    int arity;
    Kind kind;
};
constexpr OpInfo all_ops[] = {
#define LYO_X(name, arity, kind) {ScalarOp::name, arity, Kind::kind},
    LYO_SCALAR_OPS(LYO_X)
#undef LYO_X
};

bool accepts(Kind kind, RegClass cls) {
    switch (kind) {
        case Kind::arith:
        case Kind::compare:
            return true;
        case Kind::real:
        case Kind::test:
            return is_real(cls);
        case Kind::integer:
            return !is_real(cls);
        default:
            return false;
    }
}

std::vector<Value> special_values(RegClass cls) {
    std::vector<Value> values;
    if (is_real(cls)) {
        bool narrow = cls == RegClass::f32;
        double tiny = narrow ? std::numeric_limits<float>::denorm_min() : std::numeric_limits<double>::denorm_min();
        double least = narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
        double most = narrow ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
        for (double x : {0.0,   tiny,   least / 4, least,        1e-20, 1e-5,   0.3,  0.5,  0.75,
                         1.0,   1.5,    2.0,       2.5,          3.0,   7.25,   10.0, 88.0, 100.0,
                         710.0, 4097.5, 1e6,       2147483648.0, 1e10,  9.3e18, 1e20, most, double(INFINITY)}) {
            values.push_back(as_real(x, cls));
            values.push_back(as_real(-x, cls));
        }
        values.push_back({.real = NAN});
    } else {
        for (std::int64_t x : {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 127, 128, 255, 256, 1000, 32767, 65536}) {
            values.push_back({.integer = x});
            values.push_back({.integer = -x});
        }
        values.push_back({.integer = INT32_MAX});
        values.push_back({.integer = INT32_MIN});
        values.push_back({.integer = INT32_MIN + 1});
        if (cls == RegClass::i64) {
            for (std::int64_t x : {INT64_MAX, INT64_MIN, INT64_MIN + 1, std::int64_t{1} << 53})
                values.push_back({.integer = x});
        }
    }
    return values;
}

/// Distance in representable floats; 0 for two NaN.
double ulps(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
    auto order = [](float x) {
        auto i = std::bit_cast<std::int32_t>(x);
        return i < 0 ? -static_cast<double>(i & INT32_MAX) : static_cast<double>(i);
    };
    return std::fabs(order(a) - order(b));
}

bool is_exact(ScalarOp op) {
    switch (op) {
        case ScalarOp::pow:
        case ScalarOp::atan2:
        case ScalarOp::hypot:
        case ScalarOp::rsqrt:
            return false;
        default:
            return op <= ScalarOp::reciprocal || op >= ScalarOp::floor;
    }
}

::testing::AssertionResult agrees(ScalarOp op, RegClass cls, Value got, Value expected) {
    bool good;
    if (!is_real(cls)) {
        good = got.integer == expected.integer;
    } else if (std::isnan(expected.real)) {
        good = std::isnan(got.real);
    } else if (is_exact(op)) {
        bool zero_of_either_sign =
            op == ScalarOp::maximum || op == ScalarOp::minimum || op == ScalarOp::fmax || op == ScalarOp::fmin;
        good =
            got.real == expected.real && (zero_of_either_sign || std::signbit(got.real) == std::signbit(expected.real));
    } else if (cls == RegClass::f32) {
        good = ulps(static_cast<float>(got.real), static_cast<float>(expected.real)) <= 4 &&
               std::signbit(got.real) == std::signbit(expected.real);
    } else {
        good = got.real == expected.real || std::fabs(got.real - expected.real) <= 1e-15 * std::fabs(expected.real);
    }
    if (good) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << name_of(op) << ": got " << got.real << " / " << got.integer << ", expected "
                                         << expected.real << " / " << expected.integer;
}

TEST(Vm, EveryOperationAgreesWithTheScalarReferenceOnSpecialValues) {
    for (const Kernels* kernels : available_kernels()) {
        SCOPED_TRACE(kernels->name);
        for (const OpInfo& info : all_ops) {
            for (RegClass cls : classes) {
                if (!accepts(info.kind, cls)) continue;
                auto values = special_values(cls);
                auto count = static_cast<std::int64_t>(values.size());
                bool gives_flag = info.kind == Kind::compare || info.kind == Kind::test;
                Storage a(widest_of(cls), count), b(widest_of(cls), count);
                Storage out(gives_flag ? DType::i32 : widest_of(cls), count * count);
                for (std::int64_t i = 0; i < count; ++i) a.set(i, values[static_cast<std::size_t>(i)]);
                b = a;
                Program p;
                p.outer = {count, count};
                p.operand(a, 0, {1, 0}, {});
                p.operand(b, 0, {0, 1}, {});
                p.contiguous(out);
                p.phase(false);
                p.load(0, 0);
                p.load(1, 1);
                p.op(info.op, cls, 2, 0, 1);
                p.store(2, 2);
                ASSERT_EQ(p.run(*kernels), Status::ok);
                RegClass result = gives_flag ? RegClass::i32 : cls;
                for (std::int64_t i = 0; i < count; ++i) {
                    for (std::int64_t j = 0; j < count; ++j) {
                        Value expected = evaluate(info.op, cls, a.at(i), b.at(j));
                        ASSERT_TRUE(agrees(info.op, result, out.at(i * count + j), expected))
                            << "class " << static_cast<int>(cls) << " of " << a.at(i).real << " / " << a.at(i).integer
                            << " and " << b.at(j).real << " / " << b.at(j).integer;
                    }
                }
            }
        }
    }
}

TEST(Vm, FloatFunctionsAreGoodToFourUlpOverAllFloats) {
    constexpr ScalarOp functions[] = {ScalarOp::exp,  ScalarOp::exp2,  ScalarOp::expm1, ScalarOp::log,
                                      ScalarOp::log2, ScalarOp::log10, ScalarOp::log1p, ScalarOp::sin,
                                      ScalarOp::cos,  ScalarOp::tanh,  ScalarOp::erf,   ScalarOp::sigmoid,
                                      ScalarOp::rsqrt};
    // A step that is coprime to 2^32 samples every exponent and sign evenly.
    constexpr std::uint32_t step = 4093;
    constexpr std::int64_t count = (std::int64_t{1} << 32) / step;
    Storage x(DType::f32, count), y(DType::f32, count);
    for (std::int64_t i = 0; i < count; ++i) {
        write(x.data() + i * 4, static_cast<std::uint32_t>(i) * step);
    }
    for (const Kernels* kernels : available_kernels()) {
        for (ScalarOp op : functions) {
            Program p;
            p.outer = {count};
            p.contiguous(x);
            p.contiguous(y);
            p.phase(false);
            p.load(0, 0);
            p.op(op, RegClass::f32, 1, 0);
            p.store(1, 1);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            double worst = 0;
            float worst_at = 0;
            for (std::int64_t i = 0; i < count; ++i) {
                float at = read<float>(x.data() + i * 4), got = read<float>(y.data() + i * 4);
                auto expected = static_cast<float>(real_op<float>(op, at, at));
                double error = ulps(got, expected);
                if (error > worst) worst = error, worst_at = at;
            }
            EXPECT_LE(worst, 4) << kernels->name << " " << name_of(op) << " at " << worst_at;
            std::printf("%-7s %-8s worst %g ulp at %.9g\n", kernels->name, name_of(op), worst,
                        static_cast<double>(worst_at));
        }
    }
}

TEST(Vm, EveryHalfPatternLoadsAndStoresUnchanged) {
    for (const Kernels* kernels : available_kernels()) {
        for (DType type : {DType::f16, DType::bf16}) {
            Storage in(type, 65536), wide(DType::f32, 65536), back(type, 65536);
            for (int i = 0; i < 65536; ++i) write(in.data() + 2 * i, static_cast<std::uint16_t>(i));
            Program p;
            p.outer = {65536};
            p.contiguous(in);
            p.contiguous(wide);
            p.contiguous(back);
            p.phase(false);
            p.load(0, 0);
            p.store(1, 0);
            p.store(2, 0);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            for (int i = 0; i < 65536; ++i) {
                Value expected = in.at(i), got = wide.at(i);
                if (std::isnan(expected.real)) {
                    ASSERT_TRUE(std::isnan(got.real) && std::isnan(back.at(i).real)) << kernels->name << " " << i;
                } else {
                    ASSERT_EQ(std::bit_cast<std::uint64_t>(expected.real), std::bit_cast<std::uint64_t>(got.real)) << i;
                    ASSERT_EQ(read<std::uint16_t>(back.data() + 2 * i), i) << kernels->name;
                }
            }
        }
    }
}

TEST(Vm, StoresAndCastsToHalfTypesRoundToNearestEven) {
    for (const Kernels* kernels : available_kernels()) {
        for (DType type : {DType::f16, DType::bf16}) {
            // Every representable value, the midpoint above it, and that midpoint's neighbours.
            std::vector<float> samples;
            for (int i = 0; i < 65535; ++i) {
                auto bits = static_cast<std::uint16_t>(i), above = static_cast<std::uint16_t>(i + 1);
                double low = type == DType::f16 ? half_bits_to_float(bits) : bfloat_bits_to_float(bits);
                double high = type == DType::f16 ? half_bits_to_float(above) : bfloat_bits_to_float(above);
                auto middle = static_cast<float>((low + high) / 2);
                for (float x : {static_cast<float>(low), middle, std::nextafter(middle, 0.0f),
                                std::nextafter(middle, INFINITY)}) {
                    samples.push_back(x);
                }
            }
            for (float x : {65519.9f, 65520.0f, 65536.0f, 3.4e38f, -65520.0f, INFINITY, -INFINITY, NAN})
                samples.push_back(x);
            auto count = static_cast<std::int64_t>(samples.size());
            Storage in(DType::f32, count), stored(type, count), cast(DType::f32, count);
            for (std::int64_t i = 0; i < count; ++i) write(in.data() + 4 * i, samples[static_cast<std::size_t>(i)]);
            Program p;
            p.outer = {count};
            p.contiguous(in);
            p.contiguous(stored);
            p.contiguous(cast);
            p.phase(false);
            p.load(0, 0);
            p.store(1, 0);
            p.cast(0, 0, RegClass::f32, type);
            p.store(2, 0);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            for (std::int64_t i = 0; i < count; ++i) {
                Value expected = cast_value(in.at(i), RegClass::f32, type);
                for (Value got : {stored.at(i), cast.at(i)}) {
                    ASSERT_TRUE(std::isnan(expected.real) ? std::isnan(got.real)
                                                          : std::bit_cast<std::uint64_t>(expected.real) ==
                                                                std::bit_cast<std::uint64_t>(got.real))
                        << kernels->name << " " << in.at(i).real << ": got " << got.real << ", expected "
                        << expected.real;
                }
            }
        }
    }
}

TEST(Vm, CastsConvertEveryClassToEveryDtypeInPlaceOrNot) {
    for (const Kernels* kernels : available_kernels()) {
        for (RegClass from : classes) {
            auto values = special_values(from);
            auto count = static_cast<std::int64_t>(values.size());
            Storage in(widest_of(from), count);
            for (std::int64_t i = 0; i < count; ++i) in.set(i, values[static_cast<std::size_t>(i)]);
            for (DType to : dtypes) {
                for (int dst : {0, 1}) {
                    Storage out(widest_of(class_of(to)), count);
                    Program p;
                    p.outer = {count};
                    p.contiguous(in);
                    p.contiguous(out);
                    p.phase(false);
                    p.load(0, 0);
                    p.cast(dst, 0, from, to);
                    p.store(1, dst);
                    ASSERT_EQ(p.run(*kernels), Status::ok);
                    for (std::int64_t i = 0; i < count; ++i) {
                        ASSERT_TRUE(agrees(ScalarOp::cast, class_of(to), out.at(i), cast_value(in.at(i), from, to)))
                            << kernels->name << " " << in.at(i).real << " / " << in.at(i).integer << " from "
                            << static_cast<int>(from) << " to " << static_cast<int>(to);
                    }
                }
            }
        }
    }
}

TEST(Vm, SelectMayWriteItsWideResultOverItsCondition) {
    for (const Kernels* kernels : available_kernels()) {
        Storage flags(DType::boolean, 700), a(DType::f64, 700), b(DType::f64, 700), out(DType::f64, 700);
        for (int i = 0; i < 700; ++i) {
            flags.set(i, {.integer = i % 3 == 0});
            a.set(i, {.real = i + 0.5});
            b.set(i, {.real = -i - 0.5});
        }
        Program p;
        p.outer = {700};
        p.contiguous(flags);
        p.contiguous(a);
        p.contiguous(b);
        p.contiguous(out);
        p.phase(false);
        p.load(0, 0);
        p.load(1, 1);
        p.load(2, 2);
        p.op(ScalarOp::select, RegClass::f64, 0, 0, 1, 2);
        p.store(3, 0);
        ASSERT_EQ(p.run(*kernels), Status::ok);
        for (int i = 0; i < 700; ++i) ASSERT_EQ(out.at(i).real, i % 3 == 0 ? i + 0.5 : -i - 0.5) << kernels->name;
    }
}

TEST(Vm, MaximumPropagatesNanAndFmaxIgnoresIt) {
    for (const Kernels* kernels : available_kernels()) {
        Storage a(DType::f32, 2), b(DType::f32, 2), out(DType::f32, 8);
        a.set(0, {.real = NAN});
        a.set(1, {.real = 1});
        b.set(0, {.real = 2});
        b.set(1, {.real = NAN});
        Program p;
        p.outer = {2};
        p.contiguous(a);
        p.contiguous(b);
        p.phase(false);
        p.load(0, 0);
        p.load(1, 1);
        int at = 0;
        for (ScalarOp op : {ScalarOp::maximum, ScalarOp::minimum, ScalarOp::fmax, ScalarOp::fmin}) {
            p.operand(out, at, {1}, {});
            p.op(op, RegClass::f32, 2, 0, 1);
            p.store(2 + at / 2, 2);
            at += 2;
        }
        ASSERT_EQ(p.run(*kernels), Status::ok);
        for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(out.at(i).real)) << kernels->name;
        for (int i = 4; i < 8; ++i) EXPECT_EQ(out.at(i).real, i % 2 == 0 ? 2 : 1) << kernels->name;
    }
}

TEST(Vm, IndexedLoadsReadTheRightElementsAndStopAtTheFirstBadOne) {
    for (const Kernels* kernels : available_kernels()) {
        for (DType type : dtypes) {
            constexpr std::int64_t rows = 50, columns = 37, picks = 90;
            Storage table(type, rows * columns), index(DType::i64, picks), out(type, picks * columns);
            std::mt19937_64 random(7);
            for (std::int64_t i = 0; i < table.size(); ++i) {
                auto v = static_cast<std::int64_t>(random() % 2);
                table.set(i, {.real = static_cast<double>(v), .integer = v});
            }
            for (std::int64_t i = 0; i < picks; ++i)
                index.set(i, {.integer = static_cast<std::int64_t>(random() % rows)});
            Program p;
            p.outer = {picks, columns};
            p.symbols = {rows};
            p.operand(index, 0, {1, 0}, {});
            p.operand(table, 0, {0, 1}, {});
            p.contiguous(out);
            p.phase(false);
            p.load(0, 0);
            p.op(ScalarOp::check_index, RegClass::i64, 0, 0, 0);
            p.constant(1, RegClass::i64, columns);
            p.op(ScalarOp::mul, RegClass::i64, 0, 0, 1);
            p.op(ScalarOp::load_at, class_of(type), 0, 0, 1);
            p.store(2, 0);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            for (std::int64_t i = 0; i < out.size(); ++i) {
                Value got = out.at(i), want = table.at(index.at(i / columns).integer * columns + i % columns);
                ASSERT_EQ(got.real, want.real) << kernels->name;
                ASSERT_EQ(got.integer, want.integer) << kernels->name;
            }
            for (std::int64_t bad : {rows, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
                index.set(60, {.integer = bad});
                EXPECT_EQ(p.run(*kernels), Status::index_out_of_range);
                EXPECT_EQ(p.fault, bad);
                EXPECT_EQ(p.run(*kernels, 0, 60 * columns), Status::ok) << "the bad element is not in this range";
            }
            // Without the check, the load itself refuses offsets outside its operand.
            p.instrs[1].op = ScalarOp::abs;
            for (std::int64_t bad : {rows, INT64_MAX / columns}) {
                index.set(60, {.integer = bad});
                EXPECT_EQ(p.run(*kernels), Status::index_out_of_range);
                EXPECT_EQ(p.fault, bad * columns);
            }
        }
    }
}

TEST(Vm, IotaConvertsCoordinatesToItsClass) {
    for (const Kernels* kernels : available_kernels()) {
        for (RegClass cls : classes) {
            Storage out(widest_of(cls), 3 * 5 * 401), expected(widest_of(cls), 3 * 5 * 401), none(DType::i64, 0);
            Program p;
            p.outer = {3, 5, 401};
            p.operand(none, -17, {-1000000007, 12, -3}, {});
            p.contiguous(out);
            p.phase(false);
            p.op(ScalarOp::iota, cls, 0, 0, 0);
            p.store(1, 0);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            p.operands[1].base = expected.data();
            ASSERT_EQ(p.run_plainly(0, p.outer_count()), Status::ok);
            EXPECT_EQ(out, expected) << kernels->name << " " << static_cast<int>(cls);
        }
    }
}

TEST(Vm, AnEmptyRangeRunsNothing) {
    for (const Kernels* kernels : available_kernels()) {
        Storage out(DType::f32, 1);
        Program p;
        p.outer = {4, 0};
        p.operand(out, 0, {0, 0}, {});
        p.phase(false);
        p.constant(0, RegClass::f32, 1);
        p.store(0, 0);
        EXPECT_EQ(p.run(*kernels, 0, 0), Status::ok);
        EXPECT_EQ(out.at(0).real, 0);
        p.outer = {};
        EXPECT_EQ(p.run(*kernels), Status::ok);
        EXPECT_EQ(out.at(0).real, 1) << "a space without dims has one element";
    }
}

}  // namespace
}  // namespace lyo::cpu::test
