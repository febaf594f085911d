#include "../support/folder.h"

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import lyo.compiler;
import lyo.hydration;
import lyo.cache;
import lyo.aot;

namespace {

/// sum over the last dimension of relu(x) * 2, for n rows of m.
lyo::Graph model() {
    lyo::Builder b("model");
    const lyo::Sym n = b.symbol("n", 1, 64), m = b.symbol("m", 1, 64);
    const auto x = b.input("x", lyo::DType::f32, {n, m});
    b.output(b.call("sum.dim_IntList", {b.call("mul.Tensor", {b.call("relu", {x}), 2.0}), std::vector<lyo::Sym>{1}}));
    return *b.finish();
}

struct Input {
    std::vector<float> data;
    lyo::Tensor tensor;
    Input(std::int64_t n, std::int64_t m) {
        for (std::int64_t i = 0; i < n * m; ++i) data.push_back(static_cast<float>(i % 7) - 3);
        tensor = lyo::Tensor::borrow(data.data(), {n, m}, lyo::DType::f32);
    }
    void expect(const lyo::Result<std::vector<lyo::Tensor>>& got) const {
        ASSERT_TRUE(got) << got.error().to_string();
        ASSERT_EQ(got->size(), 1u);
        const auto wanted = lyo::interpret(model(), std::array{tensor});
        EXPECT_EQ((*got)[0].shape(), (*wanted)[0].shape());
        for (std::int64_t i = 0; i < (*wanted)[0].numel(); ++i) EXPECT_EQ((*got)[0].at(i), (*wanted)[0].at(i));
    }
};

lyo::CallableOptions cached(const std::string& path) {
    lyo::CacheOptions options;
    options.local.path = path;
    return {.cache = *lyo::Cache::open(options)};
}
std::vector<std::string> shapes(const lyo::Callable& callable) {
    std::vector<std::string> out;
    for (const auto& s : callable.specialisations()) {
        std::string text;
        const auto& spec = s.function.spec();
        for (const std::uint32_t e : spec.inputs[0].shape)
            text += spec.exprs[e].op == lyo::ExprOp::constant ? lyo::cat(spec.exprs[e].value, " ")
                                                              : spec.symbols[spec.exprs[e].a].name + " ";
        out.push_back(text);
    }
    return out;
}
using Shapes = std::vector<std::string>;

TEST(Callable, SpecialisesThenWidensWhatChanges) {
    const auto callable = *lyo::Callable::make(model());
    for (const auto& [n, m] : {std::pair{3, 5}, {3, 5}, {4, 5}, {7, 5}, {7, 6}, {9, 9}}) {
        const Input input(n, m);
        input.expect(callable.call({input.tensor}));
    }
    EXPECT_EQ(shapes(callable), (Shapes{"3 5 ", "n 5 ", "n m "}));
}

TEST(Callable, WidensAtOnceOrLater) {
    for (const std::size_t after : {0u, 2u}) {
        const auto callable = *lyo::Callable::make(model(), {.widen_after = after});
        for (const int n : {3, 4, 5, 6}) {
            const Input input(n, 2);
            input.expect(callable.call({input.tensor}));
        }
        EXPECT_EQ(shapes(callable), after == 0 ? (Shapes{"n m "}) : (Shapes{"3 2 ", "4 2 ", "n 2 "}));
    }
}

TEST(Callable, StopsAtSoManySpecialisations) {
    const auto callable = *lyo::Callable::make(model(), {.widen_after = 100, .max_specialisations = 3});
    for (const int n : {3, 4, 5, 6}) {
        const Input input(n, n);
        input.expect(callable.call({input.tensor}));
    }
    EXPECT_EQ(shapes(callable), (Shapes{"3 3 ", "4 4 ", "n m "}));
}

TEST(Callable, RefusesWhatTheModelRefuses) {
    const auto callable = *lyo::Callable::make(model());
    const Input wide(3, 65);
    const auto got = callable.call({wide.tensor});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, lyo::ErrorCode::guard_failed);
    EXPECT_TRUE(callable.specialisations().empty());
}

TEST(Callable, FailOnRecompileGivesEveryReason) {
    const auto callable = *lyo::Callable::make(model());
    const Input a(3, 5), b(4, 5), c(3, 6);
    a.expect(callable.call({a.tensor}));
    b.expect(callable.call({b.tensor}));
    callable.set_stance(lyo::Stance::fail_on_recompile);
    a.expect(callable.call({a.tensor}));
    const auto got = callable.call({c.tensor});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, lyo::ErrorCode::guard_failed);
    EXPECT_NE(got.error().what.find("1: input 0 (x): size of dimension 1: expected 5, got 6"), std::string::npos)
        << got.error().to_string();
    EXPECT_NE(got.error().what.find("; 2: input 0 (x): size of dimension 1: expected 5, got 6"), std::string::npos);
    callable.reset();
    EXPECT_FALSE(callable.call({a.tensor}));
}

TEST(Callable, EagerStancesDoNotCompile) {
    const Input a(3, 5), b(4, 5);
    const auto callable = *lyo::Callable::make(model(), {.stance = lyo::Stance::force_eager});
    a.expect(callable.call({a.tensor}));
    EXPECT_TRUE(callable.specialisations().empty());
    callable.set_stance(lyo::Stance::compile);
    a.expect(callable.call({a.tensor}));
    callable.set_stance(lyo::Stance::eager_on_recompile);
    b.expect(callable.call({b.tensor}));
    EXPECT_EQ(callable.specialisations().size(), 1u);
}

// The test plan of pytorch#165474: compile (a hit the second time), save, reset, load under fail_on_recompile, call,
// compare with eager. tests/cli and README run it in fresh processes.
TEST(Callable, CompiledSavedResetLoadedCalledTwice) {
    const test::Folder folder;
    const Input a(3, 5), b(4, 5);
    std::vector<lyo::Bytes> saved;
    for (int round = 0; round < 2; ++round) {
        const auto options = cached(folder / "cache");
        const auto callable = *lyo::Callable::make(model(), options);
        a.expect(callable.call({a.tensor}));
        b.expect(callable.call({b.tensor}));
        EXPECT_EQ(options.cache->counters()[lyo::Counter::makes], round == 0 ? 2u : 0u);
        EXPECT_EQ(options.cache->counters()[lyo::Counter::hits], round == 0 ? 0u : 2u);
        const std::string path = folder / lyo::cat("saved.", round);
        ASSERT_TRUE(callable.save(path));
        callable.reset();
        lyo::CallableOptions strict;
        strict.stance = lyo::Stance::fail_on_recompile;
        const auto loaded = lyo::Callable::load(path, strict);
        ASSERT_TRUE(loaded) << loaded.error().to_string();
        a.expect(loaded->call({a.tensor}));
        b.expect(loaded->call({b.tensor}));
        EXPECT_EQ(shapes(*loaded), (Shapes{"3 5 ", "n 5 "}));
        saved.push_back(*loaded->serialize());
        EXPECT_EQ(*lyo::load_file(path), saved.back());
    }
    EXPECT_EQ(saved[0], saved[1]);
}

TEST(Callable, OfOneSpecialisationIsSavedAsItsArtifact) {
    const auto callable = *lyo::Callable::make(model());
    EXPECT_FALSE(callable.serialize());
    ASSERT_TRUE(callable.compile());
    ASSERT_TRUE(callable.compile());
    EXPECT_EQ(shapes(callable), (Shapes{"n m "}));
    EXPECT_EQ(*callable.serialize(), *lyo::compile(model()));
    const auto function = lyo::hydrate(*lyo::Artifact::check(*callable.serialize()), lyo::Device::cpu());
    EXPECT_TRUE(function);
}

TEST(Callable, LoadedWithItsModelGoesOn) {
    const Input a(3, 5), b(4, 5), c(4, 6);
    const auto callable = *lyo::Callable::make(model());
    a.expect(callable.call({a.tensor}));
    const auto loaded = *lyo::Callable::load(*callable.serialize(), {}, model());
    b.expect(loaded.call({b.tensor}));
    c.expect(loaded.call({c.tensor}));
    EXPECT_EQ(shapes(loaded), (Shapes{"3 5 ", "n 5 ", "n m "}));
    EXPECT_TRUE(loaded.specialisations()[0].loaded);
    const auto again = *lyo::Callable::load(*loaded.serialize(), {.stance = lyo::Stance::fail_on_recompile});
    c.expect(again.call({c.tensor}));
    EXPECT_EQ(*again.serialize(), *loaded.serialize());
}

TEST(Callable, LoadedWithoutItsModelSaysSo) {
    const Input a(3, 5), b(4, 5);
    const auto callable = *lyo::Callable::make(model());
    a.expect(callable.call({a.tensor}));
    const auto loaded = *lyo::Callable::load(*callable.serialize());
    const auto got = loaded.call({b.tensor});
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().what.find("there is no model to compile from"), std::string::npos);
    loaded.set_stance(lyo::Stance::force_eager);
    EXPECT_FALSE(loaded.call({a.tensor}));
}

TEST(Callable, RefusesWhatIsNotOfItsModel) {
    lyo::Builder b("other");
    b.output(b.call("relu", {b.input("x", lyo::DType::f64, {lyo::Sym(2), lyo::Sym(2)})}));
    const auto bytes = lyo::compile(*b.finish());
    const auto loaded = lyo::Callable::load(*bytes, {}, model());
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, lyo::ErrorCode::bad_model);
    EXPECT_FALSE(lyo::Callable::load(lyo::Bytes()));
    EXPECT_FALSE(lyo::Callable::load(*lyo::EntryArchive::make({})));
    EXPECT_FALSE(lyo::Callable::load("/nowhere/at/all"));
}

TEST(Callable, ThreadsCallWhileOneCompiles) {
    const test::Folder folder;
    const auto callable = *lyo::Callable::make(model(), cached(folder / "cache"));
    std::atomic<int> wrong{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                for (int i = 0; i < 40; ++i) {
                    const Input input(1 + (i + t) % 9, 1 + (i * t) % 4);
                    const auto got = callable.call({input.tensor});
                    if (!got || (*got)[0].shape()[0] != input.tensor.shape()[0]) ++wrong;
                    if (i % 8 == 7 && !callable.serialize()) ++wrong;
                }
            });
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(callable.specialisations().size(), 4u);
}

}  // namespace
