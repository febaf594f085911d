#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

import lyo.base;

namespace {

using lyo::DType;
using lyo::RegClass;

TEST(DType, NamesAreReadBack) {
    for (std::uint8_t i = 0; i < lyo::dtype_count; ++i) {
        const auto dtype = static_cast<DType>(i);
        EXPECT_EQ(lyo::parse_dtype(lyo::to_string(dtype)), dtype);
    }
    for (const char* name : {"", "F32", "f32 ", "float", "f3"}) EXPECT_EQ(lyo::parse_dtype(name), std::nullopt) << name;
}

TEST(DType, SizesAndClasses) {
    EXPECT_EQ(lyo::size_of(DType::boolean), 1u);
    EXPECT_EQ(lyo::size_of(DType::bf16), 2u);
    EXPECT_EQ(lyo::size_of(DType::i64), 8u);
    EXPECT_EQ(lyo::class_of(DType::boolean), RegClass::i32);
    EXPECT_EQ(lyo::class_of(DType::f16), RegClass::f32);
    EXPECT_EQ(lyo::class_of(DType::f64), RegClass::f64);
    EXPECT_EQ(lyo::class_of(DType::i64), RegClass::i64);
    EXPECT_TRUE(lyo::is_float(DType::bf16) && !lyo::is_float(DType::i64));
    EXPECT_TRUE(lyo::is_integer(DType::u8) && !lyo::is_integer(DType::boolean) && !lyo::is_integer(DType::f16));
}

TEST(DType, PromotesAsTorchDoes) {
    using enum DType;
    const struct {
        DType a, b, result;
    } cases[] = {{boolean, u8, u8}, {u8, i8, i16},       {i8, i32, i32},    {i64, f16, f16},
                 {f16, bf16, f32},  {bf16, f32, f32},    {f32, f64, f64},   {u8, u8, u8},
                 {u8, i16, i16},    {boolean, f64, f64}, {i32, bf16, bf16}, {i64, i32, i64}};
    for (const auto& c : cases) {
        EXPECT_EQ(lyo::promote(c.a, c.b), c.result) << lyo::to_string(c.a) << " " << lyo::to_string(c.b);
        EXPECT_EQ(lyo::promote(c.b, c.a), c.result);
    }
}

TEST(Half, EveryF16GoesToFloatAndBack) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float value = lyo::f16_to_float(half);
        const std::uint16_t back = lyo::float_to_f16(value);
        if (std::isnan(value))
            ASSERT_TRUE(std::isnan(lyo::f16_to_float(back))) << bits;
        else
            ASSERT_EQ(back, half) << bits;
    }
}

TEST(Half, EveryBf16GoesToFloatAndBack) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float value = lyo::bf16_to_float(half);
        if (std::isnan(value))
            ASSERT_TRUE(std::isnan(lyo::bf16_to_float(lyo::float_to_bf16(value)))) << bits;
        else
            ASSERT_EQ(lyo::float_to_bf16(value), half) << bits;
    }
}

/// The nearest half by search among all of them, ties to even.
std::uint16_t nearest(double value, float (*to_float)(std::uint16_t), std::uint16_t infinity) {
    std::uint16_t low = 0, high = infinity;
    while (high - low > 1) {
        const auto middle = static_cast<std::uint16_t>((low + high) / 2);
        (static_cast<double>(to_float(middle)) <= value ? low : high) = middle;
    }
    // Infinity stands for the next power of two.
    const double below = to_float(low);
    const double above =
        high == infinity ? below + (below - to_float(static_cast<std::uint16_t>(low - 1))) : to_float(high);
    if (value - below != above - value) return value - below < above - value ? low : high;
    return low % 2 == 0 ? low : high;
}

TEST(Half, FloatsRoundToTheNearestEven) {
    std::uint64_t state = 1;
    for (int i = 0; i < 20000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const auto magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(state >> 33) % 0x7f800000u);
        ASSERT_EQ(lyo::float_to_f16(magnitude), nearest(magnitude, lyo::f16_to_float, 0x7c00)) << magnitude;
        ASSERT_EQ(lyo::float_to_bf16(magnitude), nearest(magnitude, lyo::bf16_to_float, 0x7f80)) << magnitude;
        ASSERT_EQ(lyo::float_to_f16(-magnitude), lyo::float_to_f16(magnitude) | 0x8000);
    }
    for (const float edge :
         {65504.0f, 65519.99f, 65520.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1p-14f, 0x1.ffcp-15f, 0.0f})
        EXPECT_EQ(lyo::float_to_f16(edge), nearest(edge, lyo::f16_to_float, 0x7c00)) << edge;
    EXPECT_EQ(lyo::float_to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
    EXPECT_EQ(lyo::float_to_bf16(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(Elements, AreStoredAndLoadedInEveryDType) {
    for (std::uint8_t i = 0; i < lyo::dtype_count; ++i) {
        const auto dtype = static_cast<DType>(i);
        std::uint64_t memory = 0;
        lyo::store_double(&memory, dtype, 1.0);
        EXPECT_EQ(lyo::load_double(&memory, dtype), 1.0) << lyo::to_string(dtype);
        lyo::store_int(&memory, dtype, 1);
        EXPECT_EQ(lyo::load_int(&memory, dtype), 1) << lyo::to_string(dtype);
    }
}

TEST(Elements, IntegersWrapAndFloatsTruncate) {
    std::uint64_t memory = 0;
    lyo::store_int(&memory, DType::u8, -1);
    EXPECT_EQ(lyo::load_int(&memory, DType::u8), 255);
    lyo::store_int(&memory, DType::i8, 200);
    EXPECT_EQ(lyo::load_int(&memory, DType::i8), -56);
    lyo::store_double(&memory, DType::boolean, 0.25);
    EXPECT_EQ(lyo::load_int(&memory, DType::boolean), 1);
    lyo::store_double(&memory, DType::f64, -2.75);
    EXPECT_EQ(lyo::load_int(&memory, DType::f64), -2);
    constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(lyo::double_to_int(std::nan("")), lowest);
    EXPECT_EQ(lyo::double_to_int(0x1p63), lowest);
    EXPECT_EQ(lyo::double_to_int(-0x1p63), lowest);
    EXPECT_EQ(lyo::double_to_int(0x1.fffffffffffffp62), 0x7ffffffffffffc00);
}

TEST(ScalarOp, EveryOperationHasANameOfItsOwn) {
    EXPECT_EQ(lyo::to_string(lyo::ScalarOp::reduce_argmin), "reduce_argmin");
    EXPECT_EQ(lyo::arity_of(lyo::ScalarOp::select), 3);
    EXPECT_EQ(lyo::kind_of(lyo::ScalarOp::eq), lyo::OpKind::compare);
    EXPECT_EQ(lyo::to_string(RegClass::i64), "i64");
}

}  // namespace
