// Inputs that are made up: they satisfy signatures and guards, are the same everywhere, and contrived functions are
// refused in bounded time.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

import lyo.base;
import lyo.artifact;
import lyo.graph;
import lyo.compiler;
import lyo.hydration;

namespace {

using lyo::DType;
using lyo::ErrorCode;
using lyo::Expr;
using lyo::ExprOp;
using lyo::FunctionSpec;
using lyo::GuardKind;

constexpr std::uint64_t plenty = std::uint64_t{1} << 20;
constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

/// A function's signature, an expression at a time; each gives its place in the table.
struct Signature {
    FunctionSpec spec{.name = "f", .symbols = {}, .exprs = {}, .inputs = {}, .outputs = {}, .guards = {}};

    std::uint32_t add(Expr e) {
        spec.exprs.push_back(e);
        return static_cast<std::uint32_t>(spec.exprs.size() - 1);
    }
    std::uint32_t constant(std::int64_t value) { return add({ExprOp::constant, value, 0, 0}); }
    std::uint32_t symbol(std::int64_t min, std::int64_t max) {
        const auto index = static_cast<std::uint32_t>(spec.symbols.size());
        spec.symbols.push_back({"s" + std::to_string(index), min, max});
        return add({ExprOp::symbol, 0, index, 0});
    }
    std::uint32_t op(ExprOp op, std::uint32_t a, std::uint32_t b) { return add({op, 0, a, b}); }
    void input(DType dtype, std::vector<std::uint32_t> shape) {
        spec.inputs.push_back({"x" + std::to_string(spec.inputs.size()), dtype, std::move(shape)});
    }
    void guard(GuardKind kind, std::uint32_t left, std::uint32_t right) { spec.guards.push_back({kind, left, right}); }
};

/// Shape of the only input.
lyo::Dims shape_of(const Signature& s, std::uint64_t seed = 1, std::uint64_t max_elements = plenty) {
    const auto made = lyo::sample_inputs(s.spec, seed, max_elements);
    EXPECT_TRUE(made.has_value()) << made.error().to_string();
    return made ? made->at(0).shape() : lyo::Dims{-1};
}

TEST(Samples, AreTheSameOnEveryMachine) {
    Signature s;
    const auto size = s.constant(6);
    s.input(DType::f32, {size});
    s.input(DType::i64, {size});
    const auto made = lyo::sample_inputs(s.spec, 1, plenty);
    ASSERT_TRUE(made.has_value());
    // From splitmix64, written down with another implementation of it.
    const std::vector<double> reals = {13.0 / 64, 8.0 / 64, 61.0 / 64, 18.0 / 64, -28.0 / 64, 55.0 / 64};
    const std::vector<double> integers = {1, 0, 1, 1, 1, 0};
    for (std::int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(made->at(0).at(i), reals[static_cast<std::size_t>(i)]);
        EXPECT_EQ(made->at(1).at(i), integers[static_cast<std::size_t>(i)]);
    }
}

TEST(Samples, OfOtherSeedsAreOthersAndSeedZeroGivesZeros) {
    Signature s;
    s.input(DType::f32, {s.constant(64)});
    const auto one = lyo::sample_inputs(s.spec, 1, plenty), two = lyo::sample_inputs(s.spec, 2, plenty),
               zero = lyo::sample_inputs(s.spec, 0, plenty);
    ASSERT_TRUE(one && two && zero);
    EXPECT_NE(std::memcmp(one->at(0).data(), two->at(0).data(), 256), 0);
    for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(zero->at(0).at(i), 0);
}

TEST(Samples, HaveModestValuesInEveryDtype) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32,
                              DType::i64, DType::u8, DType::boolean}) {
        Signature s;
        s.input(dtype, {s.constant(300)});
        const auto made = lyo::sample_inputs(s.spec, 7, plenty);
        ASSERT_TRUE(made.has_value());
        const auto& x = made->at(0);
        EXPECT_EQ(x.dtype(), dtype);
        bool zero_only = true;
        for (std::int64_t i = 0; i < x.numel(); ++i) {
            const double value = x.at(i), scaled = value * 64;
            zero_only = zero_only && value == 0;
            if (lyo::is_float(dtype)) {
                EXPECT_TRUE(value >= -1 && value <= 1 && scaled == static_cast<double>(static_cast<int>(scaled)))
                    << lyo::to_string(dtype) << " " << value;
            } else {
                EXPECT_TRUE(value == 0 || value == 1) << lyo::to_string(dtype) << " " << value;
            }
        }
        EXPECT_FALSE(zero_only) << lyo::to_string(dtype);
    }
}

TEST(Samples, SizesGoTwoThreeFourWithTheSeeds) {
    Signature s;
    s.input(DType::f32, {s.symbol(0, unbounded), s.constant(5)});
    EXPECT_EQ(shape_of(s, 1), (lyo::Dims{2, 5}));
    EXPECT_EQ(shape_of(s, 2), (lyo::Dims{3, 5}));
    EXPECT_EQ(shape_of(s, 3), (lyo::Dims{4, 5}));
    EXPECT_EQ(shape_of(s, 4), (lyo::Dims{2, 5}));
}

TEST(Samples, SizesKeepToTheSymbolsRanges) {
    Signature above;
    above.input(DType::f32, {above.symbol(7, 9)});
    EXPECT_EQ(shape_of(above), lyo::Dims{7});
    Signature below;
    below.input(DType::f32, {below.symbol(0, 1)});
    EXPECT_EQ(shape_of(below), lyo::Dims{1});
}

TEST(Samples, ScalarsAndEmptyInputsAreMadeToo) {
    Signature s;
    s.input(DType::f64, {});
    s.input(DType::f32, {s.constant(0), s.constant(4)});
    const auto made = lyo::sample_inputs(s.spec, 1, plenty);
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->at(0).numel(), 1);
    EXPECT_EQ(made->at(1).shape(), (lyo::Dims{0, 4}));
    const auto none = lyo::sample_inputs(Signature().spec, 1, plenty);
    ASSERT_TRUE(none.has_value());
    EXPECT_TRUE(none->empty());
}

TEST(Samples, SatisfyGuardsBetweenSizes) {
    Signature s;
    const auto a = s.symbol(1, 1000), b = s.symbol(1, 1000);
    s.input(DType::f32, {a, b});
    s.guard(GuardKind::equal, a, s.op(ExprOp::mul, b, s.constant(2)));              // a == 2 b
    s.guard(GuardKind::equal, s.op(ExprOp::mod, a, s.constant(8)), s.constant(0));  // 8 divides a
    s.guard(GuardKind::at_most, s.constant(3), b);                                  // 3 <= b
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const lyo::Dims shape = shape_of(s, seed);
        ASSERT_EQ(shape.size(), 2u);
        EXPECT_EQ(shape[0], 2 * shape[1]) << "seed " << seed;
        EXPECT_EQ(shape[0] % 8, 0) << "seed " << seed;
        EXPECT_GE(shape[1], 3) << "seed " << seed;
    }
}

TEST(Samples, AvoidNegativeSizesAndDivisionsByZero) {
    Signature negative;
    negative.input(DType::f32, {negative.op(ExprOp::add, negative.symbol(0, 100), negative.constant(-5))});
    EXPECT_GE(shape_of(negative)[0], 0);
    Signature division;
    const auto n = division.symbol(0, 100);
    // 2 and 3, which are tried first, divide by zero.
    const auto two = division.op(ExprOp::add, n, division.constant(-2)),
               three = division.op(ExprOp::add, n, division.constant(-3));
    division.input(DType::f32, {n, division.op(ExprOp::mod, division.op(ExprOp::floor_div, n, two), three)});
    const lyo::Dims shape = shape_of(division);
    EXPECT_TRUE(shape[0] != 2 && shape[0] != 3 && shape[0] >= 0) << shape[0];
}

TEST(Samples, GuardsThatCannotHoldAreRefusedByTheFunctionsName) {
    Signature s;
    const auto n = s.symbol(0, unbounded);
    s.input(DType::f32, {n});
    s.guard(GuardKind::equal, s.op(ExprOp::mod, n, s.constant(2)), s.constant(5));
    const auto refused = lyo::sample_inputs(s.spec, 1, plenty);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::guard_failed);
    EXPECT_EQ(refused.error().to_string(), "f: no sizes were found that satisfy its guards");
    // Without a symbol there is nothing to look for.
    Signature fixed;
    fixed.guard(GuardKind::equal, fixed.constant(1), fixed.constant(2));
    EXPECT_EQ(lyo::sample_inputs(fixed.spec, 1, plenty).error().code, ErrorCode::guard_failed);
}

TEST(Samples, ThatWouldBeTooLargeAreRefusedBeforeTheyAreMade) {
    Signature s;
    s.input(DType::f32, {s.constant(10)});
    s.input(DType::f32, {s.constant(11)});
    EXPECT_TRUE(lyo::sample_inputs(s.spec, 1, 21).has_value());
    const auto refused = lyo::sample_inputs(s.spec, 1, 20);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::limit_exceeded);
    EXPECT_EQ(refused.error().to_string(), "f: the sizes found for its inputs give more than 20 elements");
    // A product beyond 64 bits is no size at all.
    Signature huge;
    const auto most = huge.constant(unbounded);
    huge.input(DType::f32, {most, most});
    EXPECT_FALSE(lyo::sample_inputs(huge.spec, 1, plenty).has_value());
    // A symbol with room goes down to what is allowed.
    Signature room;
    room.input(DType::f32, {room.symbol(0, 100), room.constant(10)});
    EXPECT_LE(shape_of(room, 3, 20)[0], 2);
}

TEST(Samples, AreAcceptedByACompiledFunction) {
    lyo::Builder b;
    const lyo::Sym n = b.symbol("n", 1, 64), m = b.symbol("m", 3, 64);
    const auto x = b.input("x", DType::f32, {n * lyo::Sym(4), m}), y = b.input("y", DType::f32, {m, n});
    b.output(b.call("matmul", {x, y}));
    const auto graph = b.finish();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    const auto bytes = lyo::compile(*graph);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    ASSERT_TRUE(function.has_value()) << function.error().to_string();
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const auto inputs = lyo::sample_inputs(function->spec(), seed, plenty);
        ASSERT_TRUE(inputs.has_value()) << inputs.error().to_string();
        const auto outputs = function->call(*inputs);
        ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
        EXPECT_EQ(outputs->at(0).shape(), (lyo::Dims{inputs->at(0).shape()[0], inputs->at(1).shape()[1]}));
    }
}

}  // namespace
