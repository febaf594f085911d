// Sizes as expressions: one form for equal polynomials, Python's division, checked evaluation.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>

import lyo.base;
import lyo.graph;

namespace {

using lyo::Sym;

const Sym n = Sym::symbol("n"), m = Sym::symbol("m");

TEST(Sym, EqualPolynomialsAreEqual) {
    EXPECT_EQ(n + m, m + n);
    EXPECT_EQ((n + Sym(1)) * (n + Sym(2)), n * n + Sym(3) * n + Sym(2));
    EXPECT_EQ(n - n, Sym(0));
    EXPECT_EQ(Sym(2) * n + Sym(3) * n, Sym(5) * n);
    EXPECT_FALSE(n == m);
    EXPECT_FALSE(n * m == n + m);
    EXPECT_EQ((Sym(2) * n + Sym(1)).to_string(), "2*n + 1");
}

TEST(Sym, DivisionRoundsTowardsMinusInfinity) {
    EXPECT_EQ(floor_div(Sym(-7), Sym(2)), Sym(-4));
    EXPECT_EQ(mod(Sym(-7), Sym(2)), Sym(1));
    EXPECT_EQ(floor_div(Sym(4) * n, Sym(4)), n);
    const std::map<std::string, std::int64_t> at{{"n", -7}};
    EXPECT_EQ(floor_div(n, Sym(2)).evaluate(at).value(), -4);
    EXPECT_EQ(mod(n, Sym(2)).evaluate(at).value(), 1);
    EXPECT_EQ(max(n, Sym(0)).evaluate(at).value(), 0);
    EXPECT_EQ(min(n, Sym(0)).evaluate(at).value(), -7);
}

TEST(Sym, EvaluationSaysWhatItCannotDo) {
    EXPECT_FALSE(n.evaluate({}).has_value());
    EXPECT_FALSE(floor_div(Sym(1), n).evaluate({{"n", 0}}).has_value());
    const std::int64_t large = std::numeric_limits<std::int64_t>::max();
    EXPECT_FALSE((n * n).evaluate({{"n", large}}).has_value());
    EXPECT_FALSE((n + Sym(1)).evaluate({{"n", large}}).has_value());
    EXPECT_EQ((n + Sym(1)).evaluate({{"n", large - 1}}).value(), large);
}

TEST(Sym, CollectsItsSymbols) {
    std::set<std::string> names;
    (n * m + floor_div(n, Sym(3))).collect(names);
    EXPECT_EQ(names, (std::set<std::string>{"m", "n"}));
}

}  // namespace
