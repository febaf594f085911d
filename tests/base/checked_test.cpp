#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

import lyo.base;

namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                       highest = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();

TEST(Checked, SumsAndProductsAreExactOrNothing) {
    EXPECT_EQ(lyo::checked_add<std::int64_t>(highest, 0), highest);
    EXPECT_EQ(lyo::checked_add<std::int64_t>(highest, 1), std::nullopt);
    EXPECT_EQ(lyo::checked_add<std::uint64_t>(top, 1), std::nullopt);
    EXPECT_EQ(lyo::checked_sub<std::int64_t>(lowest, 1), std::nullopt);
    EXPECT_EQ(lyo::checked_sub<std::uint64_t>(0, 1), std::nullopt);
    EXPECT_EQ(lyo::checked_mul<std::int64_t>(lowest, -1), std::nullopt);
    EXPECT_EQ(lyo::checked_mul<std::int64_t>(std::int64_t{1} << 31, std::int64_t{1} << 31), std::int64_t{1} << 62);
    EXPECT_EQ(lyo::checked_mul<std::int64_t>(std::int64_t{1} << 32, std::int64_t{1} << 31), std::nullopt);
    EXPECT_EQ(lyo::checked_mul<std::uint64_t>(std::uint64_t{1} << 32, std::uint64_t{1} << 32), std::nullopt);
    EXPECT_EQ(lyo::checked_add<std::uint8_t>(200, 56), std::nullopt);
}

TEST(Checked, AlignsUpwards) {
    EXPECT_EQ(lyo::checked_align(0, 64), 0u);
    EXPECT_EQ(lyo::checked_align(1, 64), 64u);
    EXPECT_EQ(lyo::checked_align(64, 64), 64u);
    EXPECT_EQ(lyo::checked_align(65, 4096), 4096u);
    EXPECT_EQ(lyo::checked_align(top - 63, 64), top - 63);
    EXPECT_EQ(lyo::checked_align(top - 62, 64), std::nullopt);
}

TEST(FloorDiv, FollowsPythonForEverySign) {
    for (std::int64_t a = -9; a <= 9; ++a)
        for (std::int64_t b = -4; b <= 4; ++b) {
            if (b == 0) continue;
            const std::int64_t q = lyo::floor_div(a, b), r = lyo::floor_mod(a, b);
            EXPECT_EQ(q * b + r, a);
            EXPECT_TRUE(r == 0 || (r < 0) == (b < 0)) << a << " mod " << b;
            EXPECT_LT(r < 0 ? -r : r, b < 0 ? -b : b);
        }
    EXPECT_EQ(lyo::floor_mod(1, lowest), lowest + 1);
    EXPECT_EQ(lyo::floor_mod(-1, lowest), -1);
    EXPECT_EQ(lyo::floor_mod(lowest, highest), highest - 1);
    EXPECT_EQ(lyo::floor_mod(highest, lowest), -1);
}

}  // namespace
