#include "../support/folder.h"

#include <fstream>

import lyo.prelude;
import lyo.base;
import lyo.cache;

namespace {

lyo::CacheKey key_of(int i) { return *lyo::CacheKey::make({{"number", lyo::cat(i)}}); }
lyo::Bytes bytes_of(std::string_view text) {
    return *lyo::Bytes::copy(std::as_bytes(std::span(text.data(), text.size())));
}

/// A store behind the local one that does as the test says.
struct Shelf {
    std::map<lyo::Digest, lyo::Bytes> entries;
    bool dead = false;
    std::size_t batches = 0;
};
class ShelfStore : public lyo::RemoteStore {
  public:
    explicit ShelfStore(Shelf& shelf) : shelf_(shelf) {}
    std::string name() const override { return "shelf"; }
    lyo::Result<std::vector<std::optional<lyo::Bytes>>> get(std::span<const lyo::Digest> keys) override {
        ++shelf_.batches;
        if (shelf_.dead) return lyo::fail(lyo::ErrorCode::remote, "shelf", "no answer");
        std::vector<std::optional<lyo::Bytes>> out;
        for (const lyo::Digest& key : keys) {
            const auto at = shelf_.entries.find(key);
            out.push_back(at == shelf_.entries.end() ? std::nullopt : std::optional(at->second));
        }
        return out;
    }
    lyo::Result<> put(std::span<const Item> items) override {
        ++shelf_.batches;
        if (shelf_.dead) return lyo::fail(lyo::ErrorCode::remote, "shelf", "no answer");
        for (const Item& item : items) shelf_.entries[item.key] = item.entry;
        return {};
    }
    lyo::Result<std::vector<lyo::Digest>> keys() override {
        if (shelf_.dead) return lyo::fail(lyo::ErrorCode::remote, "shelf", "no answer");
        std::vector<lyo::Digest> out;
        for (const auto& [key, entry] : shelf_.entries) out.push_back(key);
        return out;
    }

  private:
    Shelf& shelf_;
};

struct Layered : testing::Test {
    test::Folder folder;
    Shelf shelf;
    std::vector<std::string> reports;
    std::mutex reporting;

    lyo::Cache open(const std::string& name, bool behind = true) {
        lyo::CacheOptions options;
        options.local.path = folder / name;
        if (behind)
            options.remote = [this](lyo::Counters&,
                                    const lyo::Reporter&) -> lyo::Result<std::unique_ptr<lyo::RemoteStore>> {
                return std::make_unique<ShelfStore>(shelf);
            };
        options.report = [this](const lyo::Error& e) {
            const std::lock_guard lock(reporting);
            reports.push_back(e.to_string());
        };
        return *lyo::Cache::open(std::move(options));
    }
    static std::pair<std::string, lyo::Source> ask(const lyo::Cache& cache, int key, const std::string& made,
                                                   const lyo::Cache::Accept& accept = {}) {
        const auto found =
            cache.get_or_make(key_of(key), [&]() -> lyo::Result<lyo::Bytes> { return bytes_of(made); }, accept);
        EXPECT_TRUE(found) << found.error().to_string();
        return {std::string(found->value.text()), found->source};
    }
};
using Answer = std::pair<std::string, lyo::Source>;

TEST_F(Layered, MakesOnceThenHits) {
    const auto cache = open("a", false);
    EXPECT_EQ(ask(cache, 1, "x"), Answer("x", lyo::Source::made));
    EXPECT_EQ(ask(cache, 1, "y"), Answer("x", lyo::Source::local));
    EXPECT_EQ(ask(open("a", false), 1, "y"), Answer("x", lyo::Source::local));
    EXPECT_EQ(cache.counters()[lyo::Counter::makes], 1u);
    EXPECT_EQ(cache.counters()[lyo::Counter::misses], 1u);
    EXPECT_EQ(cache.counters()[lyo::Counter::hits], 1u);
}

TEST_F(Layered, AnErrorOfMakingIsNotKept) {
    const auto cache = open("a", false);
    const auto bad = cache.get_or_make(
        key_of(1), []() -> lyo::Result<lyo::Bytes> { return lyo::fail(lyo::ErrorCode::bad_model, "m", "no"); });
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, lyo::ErrorCode::bad_model);
    EXPECT_EQ(ask(cache, 1, "x"), Answer("x", lyo::Source::made));
}

TEST_F(Layered, WhatOneFolderMadeAnotherGetsFromBehindAndKeeps) {
    EXPECT_EQ(ask(open("a"), 1, "x"), Answer("x", lyo::Source::made));
    EXPECT_EQ(ask(open("b"), 1, "y"), Answer("x", lyo::Source::remote));
    shelf.entries.clear();
    EXPECT_EQ(ask(open("b"), 1, "y"), Answer("x", lyo::Source::local));
}

TEST_F(Layered, ADeadStoreBehindCostsAReport) {
    shelf.dead = true;
    const auto cache = open("a");
    EXPECT_EQ(ask(cache, 1, "x"), Answer("x", lyo::Source::made));
    EXPECT_EQ(ask(cache, 1, "y"), Answer("x", lyo::Source::local));
    EXPECT_FALSE(reports.empty());
}

TEST_F(Layered, ALyingStoreBehindIsNotBelieved) {
    ASSERT_EQ(ask(open("a"), 1, "x").second, lyo::Source::made);
    ASSERT_EQ(ask(open("a"), 2, "z").second, lyo::Source::made);
    const lyo::Bytes good = shelf.entries[key_of(1).digest()];
    std::vector<std::byte> flipped(good.span().begin(), good.span().end());
    flipped[0] ^= std::byte{1};
    const std::vector<lyo::Bytes> lies = {bytes_of(""), bytes_of("nonsense"), good.slice(0, good.size() - 1),
                                          *lyo::Bytes::copy(flipped), shelf.entries[key_of(2).digest()]};
    for (std::size_t i = 0; i < lies.size(); ++i) {
        shelf.entries[key_of(1).digest()] = lies[i];
        const auto cache = open(lyo::cat("lie", i));
        EXPECT_EQ(ask(cache, 1, "own"), Answer("own", lyo::Source::made));
        EXPECT_EQ(cache.counters()[lyo::Counter::remote_refused], 1u);
    }
}

TEST_F(Layered, WhatTheCallerRefusesIsMadeAgain) {
    ASSERT_EQ(ask(open("a", false), 1, "bad").second, lyo::Source::made);
    const auto accept = [](const lyo::Bytes& b) -> lyo::Result<> {
        if (b.text() == "bad") return lyo::fail(lyo::ErrorCode::bad_value, "value", "it is bad");
        return {};
    };
    const auto cache = open("a", false);
    EXPECT_EQ(ask(cache, 1, "good", accept), Answer("good", lyo::Source::made));
    EXPECT_EQ(cache.counters()[lyo::Counter::corrupt], 1u);
    EXPECT_EQ(ask(cache, 1, "other", accept), Answer("good", lyo::Source::local));
}

TEST_F(Layered, PushAndPullCopyWhatTheOtherSideLacks) {
    const auto alone = open("a", false);
    for (int i = 0; i < 70; ++i) ask(alone, i, lyo::cat("value ", i));
    EXPECT_EQ(*open("a").push(), 70u);
    EXPECT_EQ(*open("a").push(), 0u);
    EXPECT_LE(shelf.batches, 4u);
    shelf.entries[key_of(3).digest()] = bytes_of("a lie");
    const auto other = open("b");
    EXPECT_EQ(*other.pull(), 69u);
    EXPECT_EQ(*other.pull(), 0u);
    EXPECT_EQ(ask(open("b", false), 69, "y"), Answer("value 69", lyo::Source::local));
    EXPECT_EQ(ask(open("b", false), 3, "y"), Answer("y", lyo::Source::made));
    EXPECT_FALSE(alone.push());
}

TEST_F(Layered, ThreadsThatAskAtOnceMakeOnce) {
    const auto cache = open("a", false);
    std::atomic<int> made{0}, wrong{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 8; ++t)
            threads.emplace_back([&] {
                const auto found = cache.get_or_make(key_of(1), [&]() -> lyo::Result<lyo::Bytes> {
                    ++made;
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    return bytes_of("x");
                });
                if (!found || found->value.text() != "x") ++wrong;
            });
    }
    EXPECT_EQ(made, 1);
    EXPECT_EQ(wrong, 0);
}

TEST_F(Layered, DoesNotWaitForEver) {
    lyo::CacheOptions options;
    options.local.path = folder / "a";
    options.max_wait = std::chrono::milliseconds(30);
    const auto cache = *lyo::Cache::open(options);
    const auto busy = cache.local().try_begin(key_of(1).digest());
    ASSERT_TRUE(busy && *busy);
    EXPECT_EQ(ask(cache, 1, "x"), Answer("x", lyo::Source::made));
}

TEST_F(Layered, AFolderThatCannotBeWrittenCostsAReport) {
    std::ofstream(folder / "file") << "text";
    const auto cache = open("file", false);
    EXPECT_EQ(ask(cache, 1, "x"), Answer("x", lyo::Source::made));
    EXPECT_EQ(ask(cache, 1, "y"), Answer("y", lyo::Source::made));
    EXPECT_FALSE(reports.empty());
}

}  // namespace
