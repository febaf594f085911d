#include <gtest/gtest.h>

#include <cstdint>
#include <expected>
#include <set>
#include <string>

import lyo.base;

namespace {

using lyo::ErrorCode;

TEST(Error, IsOneLineThatSaysWhereAndWhat) {
    EXPECT_EQ((lyo::Error{ErrorCode::file, "cannot open", "a.lyo"}).to_string(), "a.lyo: cannot open");
    EXPECT_EQ((lyo::Error{ErrorCode::file, "cannot open", ""}).to_string(), "cannot open");
}

TEST(Error, IsSeenFromFurtherOut) {
    EXPECT_EQ((lyo::Error{ErrorCode::bad_value, "no", ""}).in("field").to_string(), "field: no");
    EXPECT_EQ((lyo::Error{ErrorCode::bad_value, "no", "field"}).in("section").in("a.lyo").to_string(),
              "a.lyo: section: field: no");
}

TEST(Error, FailAndMismatchHaveOneForm) {
    const lyo::Result<int> failed =
        lyo::fail(ErrorCode::bad_model, "node 3", "has ", 2, " outputs of ", std::int64_t{-7}, '!');
    EXPECT_EQ(failed.error().to_string(), "node 3: has 2 outputs of -7!");
    EXPECT_EQ(failed.error().code, ErrorCode::bad_model);
    const lyo::Result<> differs = lyo::mismatch(ErrorCode::guard_failed, "input 0 (x)", "rank", 2, 3);
    EXPECT_EQ(differs.error().to_string(), "input 0 (x): rank: expected 2, got 3");
}

TEST(Error, NumbersAreWrittenInFullAndInNoLocale) {
    EXPECT_EQ(lyo::cat(0.5, " ", 1e300, " ", -0.1), "0.5 1e+300 -0.1");
    EXPECT_EQ(lyo::cat(std::uint64_t{18446744073709551615u}, std::int8_t{-1}, true), "18446744073709551615-11");
}

TEST(ErrorCode, EveryCodeHasAStableNameOfItsOwn) {
    std::set<std::string_view> names;
    for (const auto [first, last] : {std::pair{100, 104}, {200, 208}, {300, 304}, {400, 404}})
        for (int code = first; code <= last; ++code) {
            const auto name = lyo::to_string(static_cast<ErrorCode>(code));
            EXPECT_NE(name, "unknown") << code;
            EXPECT_TRUE(names.insert(name).second) << name;
        }
    EXPECT_EQ(lyo::to_string(ErrorCode::bad_digest), "bad_digest");
    EXPECT_EQ(lyo::to_string(static_cast<ErrorCode>(99)), "unknown");
}

}  // namespace
