#include "../support/folder.h"

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import lyo.compiler;
import lyo.cache;
import lyo.importer;
import lyo.aot;

namespace {

lyo::Graph model(double slope = 2, std::string_view name = "x", std::int64_t most = 64) {
    static const std::array<float, 4> weights = {1, 2, 3, 4};
    lyo::Builder b("model");
    const lyo::Sym n = b.symbol("n", 1, most);
    const auto x = b.input(name, lyo::DType::f32, {n, 4});
    const auto w = b.constant("w", lyo::Tensor::borrow(weights.data(), {4}, lyo::DType::f32));
    b.output(b.call("mul.Tensor", {b.call("mul.Tensor", {x, w}), slope}));
    return *b.finish();
}
lyo::Cache open(const std::string& path) {
    lyo::CacheOptions options;
    options.local.path = path;
    return *lyo::Cache::open(options);
}
std::vector<std::string> changed(const lyo::CacheKey& a, const lyo::CacheKey& b) {
    std::vector<std::string> out;
    for (const auto& d : lyo::differences(a, b)) out.push_back(d.name);
    return out;
}
using Names = std::vector<std::string>;

TEST(BuildKey, IsTheSameForTheSameModel) {
    EXPECT_EQ(lyo::cache_key(model())->digest(), lyo::cache_key(model())->digest());
    const std::string path = std::string(LYO_CASES_DIR) + "/seed_mlp/model.pt2";
    EXPECT_EQ(lyo::cache_key(*lyo::import_pt2_file(path))->digest(),
              lyo::cache_key(*lyo::import_pt2_file(path))->digest());
}

TEST(BuildKey, SaysWhichPartChanged) {
    const auto base = *lyo::cache_key(model());
    EXPECT_EQ(changed(base, *lyo::cache_key(model(3))), Names{"code"});
    EXPECT_EQ(changed(base, *lyo::cache_key(model(2, "y"))), Names{"code"});
    EXPECT_EQ(changed(base, *lyo::cache_key(model(2, "x", 65))), Names{"sizes"});
    lyo::Graph other = model();
    static const std::array<float, 4> weights = {1, 2, 3, 5};
    other.constants[0].data = lyo::Tensor::borrow(weights.data(), {4}, lyo::DType::f32);
    EXPECT_EQ(changed(base, *lyo::cache_key(other)), Names{"constants"});
    lyo::CompileOptions options;
    options.debug = false;
    EXPECT_EQ(changed(base, *lyo::cache_key(model(), options)), Names{"options"});
    options = {};
    options.targets = {"cpu", "cpu"};
    EXPECT_EQ(changed(base, *lyo::cache_key(model(), options)), Names{});
}

TEST(BuildKey, ANegativeZeroIsNotAZero) {
    EXPECT_NE(lyo::cache_key(model(0.0))->digest(), lyo::cache_key(model(-0.0))->digest());
}

TEST(Build, TheSecondTimeIsAHitWithTheSameBytes) {
    const test::Folder folder;
    const auto cache = open(folder / "cache");
    const auto first = lyo::build(model(), {}, &cache);
    ASSERT_TRUE(first) << first.error().to_string();
    EXPECT_EQ(first->source, lyo::Source::made);
    const auto again = open(folder / "cache");
    const auto second = lyo::build(model(), {}, &again);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->source, lyo::Source::local);
    EXPECT_EQ(first->artifact.bytes(), second->artifact.bytes());
    EXPECT_EQ(again.counters()[lyo::Counter::makes], 0u);
    EXPECT_EQ(lyo::build(model())->artifact.bytes(), first->artifact.bytes()) << "and without a cache";
}

TEST(Build, WhatIsNoArtifactIsCompiledAgain) {
    const test::Folder folder;
    const auto cache = open(folder / "cache");
    const std::string_view text = "a well sealed entry that is no artifact";
    ASSERT_TRUE(
        cache.put(*lyo::cache_key(model()), *lyo::Bytes::copy(std::as_bytes(std::span(text.data(), text.size())))));
    const auto built = lyo::build(model(), {}, &cache);
    ASSERT_TRUE(built) << built.error().to_string();
    EXPECT_EQ(built->source, lyo::Source::made);
    EXPECT_EQ(cache.counters()[lyo::Counter::corrupt], 1u);
    EXPECT_EQ(lyo::build(model(), {}, &cache)->source, lyo::Source::local);
}

TEST(Specialize, ReplacesSizesEverywhere) {
    const auto fixed = lyo::specialize(model(), {{"n", 3}});
    ASSERT_TRUE(fixed) << fixed.error().to_string();
    EXPECT_TRUE(fixed->symbols.empty());
    EXPECT_EQ(fixed->to_string().find('n' + std::string(",")), std::string::npos) << fixed->to_string();
    EXPECT_EQ(lyo::to_string(fixed->type(fixed->inputs[0])), "f32[3, 4]");
    EXPECT_EQ(lyo::to_string(fixed->type(fixed->outputs[0])), "f32[3, 4]");
    EXPECT_FALSE(lyo::specialize(model(), {{"n", 65}}));
    EXPECT_FALSE(lyo::specialize(model(), {{"m", 1}}));
}

TEST(Specialize, HoldsRelations) {
    lyo::Builder b("model");
    const lyo::Sym n = b.symbol("n", 1, 64), m = b.symbol("m", 1, 64);
    b.require({lyo::Relation::Kind::at_most, n + n, m});
    b.output(b.call("add.Tensor", {b.input("x", lyo::DType::f32, {n}), b.input("y", lyo::DType::f32, {m, n})}));
    const auto graph = b.finish();
    ASSERT_TRUE(graph);
    EXPECT_TRUE(lyo::specialize(*graph, {{"n", 2}, {"m", 4}}));
    EXPECT_EQ(lyo::specialize(*graph, {{"n", 2}, {"m", 4}})->relations.size(), 0u);
    EXPECT_EQ(lyo::specialize(*graph, {{"n", 2}})->relations.size(), 1u);
    const auto bad = lyo::specialize(*graph, {{"n", 2}, {"m", 3}});
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, lyo::ErrorCode::guard_failed);
}

}  // namespace
