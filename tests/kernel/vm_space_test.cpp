// Loop programs over every kind of iteration space: strides, ranks, extents, partial ranges, reductions.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "vm_program.h"

namespace lyo::cpu::test {
namespace {

constexpr DType dtypes[] = {
#define LYO_X(name, bytes) DType::name,
    LYO_DTYPES(LYO_X)
#undef LYO_X
};

/// Small whole numbers: sums of them are exact in every class, whatever the order.
void fill_small(Storage& s, Random& random) {
    for (std::int64_t i = 0; i < s.size(); ++i) {
        std::int64_t v = pick(random, s.type() == DType::boolean || s.type() == DType::u8 ? 0 : -3, 3);
        s.set(i, {.real = static_cast<double>(v), .integer = v});
    }
}

/// Strides over some dims: a permutation of a dense layout, each dim perhaps broadcast or reversed.
/// Returns the elements needed; `start` moves so that the lowest offset is 0.
std::int64_t random_strides(Random& random, const std::vector<std::int64_t>& extents, bool may_repeat,
                            std::vector<std::int64_t>& strides, std::int64_t& start) {
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (pick(random, 0, 1)) {
        std::shuffle(order.begin(), order.end(), random);
    } else {
        std::reverse(order.begin(), order.end());
    }
    strides.assign(extents.size(), 0);
    std::int64_t count = pick(random, 1, 4) == 1 ? 2 : 1;
    start = 0;
    for (auto d : order) {
        if (may_repeat && pick(random, 0, 3) == 0) continue;
        strides[d] = count;
        count *= std::max<std::int64_t>(extents[d], 1);
        if (pick(random, 0, 5) == 0 && extents[d] > 0) {
            start += strides[d] * (extents[d] - 1);
            strides[d] = -strides[d];
        }
    }
    return count + 1;
}

struct View {
    Storage storage;
    std::int64_t start;
    std::vector<std::int64_t> outer, reduced;
};

View random_view(Random& random, DType type, const std::vector<std::int64_t>& outer,
                 const std::vector<std::int64_t>& reduced, bool may_repeat) {
    std::vector<std::int64_t> all = outer, strides;
    all.insert(all.end(), reduced.begin(), reduced.end());
    std::int64_t start = 0;
    std::int64_t count = random_strides(random, all, may_repeat, strides, start);
    auto split = strides.begin() + static_cast<std::ptrdiff_t>(outer.size());
    View view{Storage(type, count), start, {strides.begin(), split}, {split, strides.end()}};
    fill_small(view.storage, random);
    return view;
}

std::vector<std::int64_t> random_extents(Random& random, std::int64_t rank, std::int64_t most, int zero_in) {
    std::vector<std::int64_t> extents;
    std::int64_t total = 1;
    for (std::int64_t i = 0; i < rank; ++i) {
        std::int64_t e = pick(random, 0, 2) == 0 ? 1 : pick(random, 1, pick(random, 0, 1) ? 5 : 700);
        if (total * e > most) e = 1;
        if (zero_in && pick(random, 1, zero_in) == 1) e = 0;
        total *= std::max<std::int64_t>(e, 1);
        extents.push_back(e);
    }
    return extents;
}

/// Runs the program plainly and on every set of kernels, in pieces that cut anywhere; outputs must be the same bits.
void expect_same(Program& p, Storage& out, int out_operand, Random& random) {
    Storage empty = out, expected = out;
    auto& base = p.operands[static_cast<std::size_t>(out_operand)].base;
    base = expected.data();
    ASSERT_EQ(p.run_plainly(0, p.outer_count()), Status::ok);
    for (const Kernels* kernels : available_kernels()) {
        SCOPED_TRACE(kernels->name);
        out = empty;
        base = out.data();
        for (std::int64_t at = 0; at < p.outer_count();) {
            std::int64_t end = std::min(p.outer_count(), at + pick(random, 1, 2000));
            ASSERT_EQ(p.run(*kernels, at, end), Status::ok);
            at = end;
        }
        ASSERT_EQ(out, expected);
    }
}

TEST(VmSpace, RandomPointwiseProgramsAgreeForAllRanksStridesAndDtypes) {
    std::uint64_t seed = 20240611;
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    Random random(seed);
    for (int round = 0; round < 600; ++round) {
        SCOPED_TRACE(round);
        Program p;
        p.outer = random_extents(random, pick(random, 0, 8), 6000, 40);
        DType type = dtypes[pick(random, 0, 9)];
        RegClass cls = class_of(type);
        View a = random_view(random, type, p.outer, {}, true), b = random_view(random, type, p.outer, {}, true);
        View c = random_view(random, type, p.outer, {}, false);
        std::fill_n(c.storage.data(), c.storage.size() * static_cast<std::int64_t>(bytes_of(type)), std::byte{1});
        p.operand(a.storage, a.start, a.outer, {});
        p.operand(b.storage, b.start, b.outer, {});
        int out = p.operand(c.storage, c.start, c.outer, {});
        p.phase(false);
        p.load(0, 0);
        p.load(1, 1);
        p.op(ScalarOp::mul, cls, 2, 0, 1);
        p.op(ScalarOp::add, cls, 0, 2, 0);
        p.store(2, 0);
        expect_same(p, c.storage, out, random);
    }
}

TEST(VmSpace, BlocksOfEverySizeLeaveTheRestUntouched) {
    for (const Kernels* kernels : available_kernels()) {
        for (DType type : dtypes) {
            for (std::int64_t n : {1, 7, 15, 16, 17, 31, 33, 511, 512, 513, 1500}) {
                Storage in(type, n), out(type, n + 2);
                for (std::int64_t i = 0; i < n; ++i) in.set(i, {.real = 1, .integer = 1});
                Program p;
                p.outer = {n};
                p.operand(in, 0, {1}, {});
                p.operand(out, 1, {1}, {});
                p.phase(false);
                p.load(0, 0);
                p.store(1, 0);
                ASSERT_EQ(p.run(*kernels), Status::ok);
                for (std::int64_t i = 0; i < n + 2; ++i) {
                    double expected = i > 0 && i <= n;
                    ASSERT_EQ(out.at(i).real + static_cast<double>(out.at(i).integer), expected)
                        << kernels->name << " " << n << " at " << i;
                }
            }
        }
    }
}

TEST(VmSpace, RandomReductionsAgreeWithTheReferenceWhicheverWayTheyRun) {
    std::uint64_t seed = 77001;
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    Random random(seed);
    for (int round = 0; round < 600; ++round) {
        SCOPED_TRACE(round);
        Program p;
        p.outer = random_extents(random, pick(random, 0, 3), 300, 40);
        p.reduced = random_extents(random, pick(random, 0, 3), 1500, 20);
        DType type = dtypes[pick(random, 0, 9)];
        RegClass cls = class_of(type);
        View a = random_view(random, type, p.outer, p.reduced, true);
        View b = random_view(random, DType::i16, p.outer, p.reduced, true);
        View c = random_view(random, DType::f64, p.outer, p.reduced, false);
        std::fill_n(c.storage.data(), c.storage.size() * 8, std::byte{0});
        p.operand(a.storage, a.start, a.outer, a.reduced);
        p.operand(b.storage, b.start, b.outer, b.reduced);
        int out = p.operand(c.storage, c.start, c.outer, c.reduced);

        p.phase(false);
        p.load(0, 0);
        p.load(1, 1);
        p.op(ScalarOp::reduce_sum, cls, 10, 0);
        p.op(ScalarOp::reduce_max, cls, 11, 0);
        p.op(ScalarOp::reduce_min, RegClass::i32, 12, 1);
        p.op(ScalarOp::reduce_argmax, cls, 13, 0);
        p.op(ScalarOp::reduce_argmin, RegClass::i32, 14, 1);
        p.op(ScalarOp::sign, RegClass::i32, 1, 1);
        p.op(ScalarOp::reduce_prod, RegClass::i32, 15, 1);
        p.phase(true);
        p.cast(10, 10, cls, DType::f64);
        p.cast(11, 11, cls, DType::f64);
        p.cast(12, 12, RegClass::i32, DType::f64);
        p.cast(15, 15, RegClass::i32, DType::f64);
        p.op(ScalarOp::sub, RegClass::i64, 16, 13, 14);
        p.cast(16, 16, RegClass::i64, DType::f64);
        p.phase(false);
        p.load(0, 0);
        p.cast(0, 0, cls, DType::f64);
        p.op(ScalarOp::mul, RegClass::f64, 1, 0, 10);
        p.op(ScalarOp::add, RegClass::f64, 1, 1, 12);
        p.op(ScalarOp::fmin, RegClass::f64, 1, 1, 11);
        p.op(ScalarOp::add, RegClass::f64, 1, 1, 16);
        p.op(ScalarOp::add, RegClass::f64, 1, 1, 15);
        p.op(ScalarOp::reduce_sum, RegClass::f64, 17, 1);
        p.store(2, 1);
        p.phase(false);
        p.load(0, 2);
        p.op(ScalarOp::add, RegClass::f64, 0, 0, 17);
        p.store(2, 0);
        expect_same(p, c.storage, out, random);
    }
}

TEST(VmSpace, EmptyReductionsGiveTheNeutralValues) {
    for (const Kernels* kernels : available_kernels()) {
        for (RegClass cls : {RegClass::f32, RegClass::f64, RegClass::i32, RegClass::i64}) {
            for (ScalarOp op : {ScalarOp::reduce_sum, ScalarOp::reduce_prod, ScalarOp::reduce_max, ScalarOp::reduce_min,
                                ScalarOp::reduce_argmax, ScalarOp::reduce_argmin}) {
                bool index = op >= ScalarOp::reduce_argmax;
                RegClass result = index ? RegClass::i64 : cls;
                DType type = result == RegClass::f32   ? DType::f32
                             : result == RegClass::f64 ? DType::f64
                             : result == RegClass::i32 ? DType::i32
                                                       : DType::i64;
                Storage out(type, 3), expected(type, 3);
                Program p;
                p.outer = {3};
                p.reduced = {5, 0};
                p.per_row(out);
                p.phase(false);
                p.constant(0, cls, 1);
                p.op(op, cls, 1, 0);
                p.phase(true);
                p.store(0, 1);
                ASSERT_EQ(p.run(*kernels), Status::ok);
                p.operands[0].base = expected.data();
                ASSERT_EQ(p.run_plainly(0, 3), Status::ok);
                EXPECT_EQ(out, expected) << kernels->name << " " << name_of(op);
            }
        }
    }
}

TEST(VmSpace, ExtremaOfFloatsPropagateNanAndArgmaxNamesTheFirst) {
    for (const Kernels* kernels : available_kernels()) {
        for (std::int64_t n : {1, 5, 16, 64, 513, 3000}) {
            for (std::int64_t rows : {1, 3, 600}) {
                if (n * rows > 40000) continue;
                Random random(static_cast<std::uint64_t>(n * 1000 + rows));
                Storage x(DType::f32, n * rows), top(DType::f32, rows), low(DType::f32, rows);
                Storage first_top(DType::i64, rows), first_low(DType::i64, rows);
                for (std::int64_t i = 0; i < x.size(); ++i) {
                    x.set(i, {.real = pick(random, 0, n * 2) == 0 ? NAN : static_cast<double>(pick(random, -2, 2))});
                }
                for (std::int64_t i = 0; i < n; ++i) x.set(i, {.real = -INFINITY});
                Program p;
                p.outer = {rows};
                p.reduced = {n};
                p.contiguous(x);
                p.per_row(top);
                p.per_row(low);
                p.per_row(first_top);
                p.per_row(first_low);
                p.phase(false);
                p.load(0, 0);
                p.op(ScalarOp::reduce_max, RegClass::f32, 1, 0);
                p.op(ScalarOp::reduce_min, RegClass::f32, 2, 0);
                p.op(ScalarOp::reduce_argmax, RegClass::f32, 3, 0);
                p.op(ScalarOp::reduce_argmin, RegClass::f32, 4, 0);
                p.phase(true);
                for (int i = 1; i <= 4; ++i) p.store(i, i);
                ASSERT_EQ(p.run(*kernels), Status::ok);
                for (std::int64_t r = 0; r < rows; ++r) {
                    double best = -INFINITY, least = INFINITY;
                    std::int64_t best_at = 0, least_at = 0;
                    for (std::int64_t i = 0; i < n; ++i) {
                        double v = x.at(r * n + i).real;
                        if (v > best || (std::isnan(v) && !std::isnan(best))) best = v, best_at = i;
                        if (v < least || (std::isnan(v) && !std::isnan(least))) least = v, least_at = i;
                    }
                    ASSERT_EQ(first_top.at(r).integer, best_at) << kernels->name << " " << n << " row " << r;
                    ASSERT_EQ(first_low.at(r).integer, least_at) << kernels->name << " " << n << " row " << r;
                    ASSERT_TRUE(top.at(r).real == best || std::isnan(top.at(r).real) == std::isnan(best));
                    ASSERT_TRUE(low.at(r).real == least || std::isnan(low.at(r).real) == std::isnan(least));
                }
            }
        }
    }
}

TEST(VmSpace, SplittingTheOuterRangeChangesNoBit) {
    for (const Kernels* kernels : available_kernels()) {
        for (bool inner : {true, false}) {
            constexpr std::int64_t rows = 300, n = 200;
            Random random(13);
            Storage x(DType::f32, rows * n), whole(DType::f32, rows), parts(DType::f32, rows);
            for (std::int64_t i = 0; i < x.size(); ++i)
                x.set(i, {.real = static_cast<double>(random() % 100000) * 1e-3 - 50});
            Program p;
            p.outer = {rows};
            p.reduced = {n};
            p.operand(x, 0, {inner ? n : 1}, {inner ? 1 : rows});
            int out = p.per_row(whole);
            p.phase(false);
            p.load(0, 0);
            p.op(ScalarOp::sin, RegClass::f32, 0, 0);
            p.op(ScalarOp::exp, RegClass::f32, 0, 0);
            p.op(ScalarOp::reduce_sum, RegClass::f32, 1, 0);
            p.phase(true);
            p.store(1, 1);
            ASSERT_EQ(p.run(*kernels), Status::ok);
            p.operands[static_cast<std::size_t>(out)].base = parts.data();
            for (std::int64_t at = 0; at < rows; at += 7)
                ASSERT_EQ(p.run(*kernels, at, std::min(rows, at + 7)), Status::ok);
            EXPECT_EQ(whole, parts) << kernels->name << " inner " << inner;
        }
    }
}

TEST(VmSpace, AnyNumberOfReductionsFitsInOnePhase) {
    for (const Kernels* kernels : available_kernels()) {
        for (int reductions : {9, 64, 65, 200}) {
            constexpr std::int64_t rows = 30, n = 600;
            Storage x(DType::i64, rows * n), out(DType::i64, rows);
            for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, {.integer = i % 11});
            Program p;
            p.outer = {rows};
            p.reduced = {n};
            p.contiguous(x);
            p.per_row(out);
            p.phase(false);
            p.load(0, 0);
            for (int i = 0; i < reductions; ++i) {
                p.op(i % 2 ? ScalarOp::reduce_argmax : ScalarOp::reduce_sum, RegClass::i64, 1 + i, 0);
            }
            p.phase(true);
            for (int i = 1; i < reductions; ++i) p.op(ScalarOp::add, RegClass::i64, 1, 1, 1 + i);
            p.store(1, 1);
            Random random(1);
            expect_same(p, out, 1, random);
            (void)kernels;
        }
    }
}

}  // namespace
}  // namespace lyo::cpu::test
