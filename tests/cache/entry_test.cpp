#include <gtest/gtest.h>

import lyo.prelude;
import lyo.base;
import lyo.cache;

namespace {

lyo::CacheKey key_of(std::vector<lyo::KeyPart> parts) {
    auto key = lyo::CacheKey::make(std::move(parts));
    EXPECT_TRUE(key) << key.error().to_string();
    return *key;
}

lyo::Bytes bytes_of(std::string_view text) {
    return *lyo::Bytes::copy(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(CacheKey, DoesNotDependOnTheOrderOfItsParts) {
    EXPECT_EQ(key_of({{"a", "1"}, {"b", "2"}}).digest(), key_of({{"b", "2"}, {"a", "1"}}).digest());
}

TEST(CacheKey, KeepsNamesAndValuesApart) {
    EXPECT_NE(key_of({{"a", "bc"}}).digest(), key_of({{"ab", "c"}}).digest());
    EXPECT_NE(key_of({{"a", ""}, {"b", ""}}).digest(), key_of({{"a", "b"}}).digest());
}

TEST(CacheKey, HasADigestThatDoesNotChangeBetweenVersions) {
    EXPECT_EQ(key_of({{"graph", "g"}, {"targets", "cpu"}}).digest().hex(),
              lyo::sha256({std::as_bytes(std::span("lyo cache key 1\n", 16)),
                           std::as_bytes(std::span("\5\0\0\0graph\1\0\0\0g\7\0\0\0targets\3\0\0\0cpu", 32))})
                  .hex());
}

TEST(CacheKey, RefusesPartsThatAreTwiceThereOrTooLong) {
    EXPECT_FALSE(lyo::CacheKey::make({{"a", "1"}, {"a", "2"}}));
    EXPECT_FALSE(lyo::CacheKey::make({{"", "1"}}));
    EXPECT_FALSE(lyo::CacheKey::make({{"a", std::string(1025, 'x')}}));
    std::vector<lyo::KeyPart> many;
    for (int i = 0; i < 33; ++i) many.push_back({lyo::cat("p", i), ""});
    EXPECT_FALSE(lyo::CacheKey::make(many));
}

TEST(CacheKey, SaysWhichPartsDiffer) {
    const auto d = lyo::differences(key_of({{"a", "1"}, {"b", "2"}}), key_of({{"b", "3"}, {"c", "4"}}));
    ASSERT_EQ(d.size(), 3u);
    EXPECT_EQ(d[0].name + d[0].wanted + d[0].found, "a1");
    EXPECT_EQ(d[1].name + d[1].wanted + d[1].found, "b23");
    EXPECT_EQ(d[2].name + d[2].wanted + d[2].found, "c4");
}

TEST(CacheEntry, ComesBackAsItWas) {
    const auto key = key_of({{"graph", "g"}, {"targets", "cpu"}});
    for (const std::string& text : {std::string(), std::string("x"), std::string(300'000, 'y')}) {
        const auto sealed = lyo::seal_entry(key, bytes_of(text));
        ASSERT_TRUE(sealed);
        const auto entry = lyo::open_entry(*sealed, key.digest());
        ASSERT_TRUE(entry) << entry.error().to_string();
        EXPECT_EQ(entry->value.text(), text);
        EXPECT_EQ(entry->key, key);
    }
}

TEST(CacheEntry, RefusesEveryByteFlipAndEveryTruncation) {
    const auto key = key_of({{"graph", "g"}, {"targets", "cpu"}});
    const auto sealed = lyo::seal_entry(key, bytes_of("the value of an entry"));
    for (std::size_t i = 0; i < sealed->size(); ++i)
        for (const int bit : {0, 3, 7}) {
            std::vector<std::byte> broken(sealed->span().begin(), sealed->span().end());
            broken[i] ^= static_cast<std::byte>(1 << bit);
            EXPECT_FALSE(lyo::open_entry(*lyo::Bytes::copy(broken))) << i << " " << bit;
        }
    for (std::size_t size = 0; size < sealed->size(); ++size) {
        EXPECT_FALSE(lyo::open_entry(sealed->slice(0, size))) << size;
        EXPECT_FALSE(lyo::open_entry(sealed->slice(sealed->size() - size, size))) << size;
    }
    std::vector<std::byte> longer(sealed->span().begin(), sealed->span().end());
    longer.push_back({});
    EXPECT_FALSE(lyo::open_entry(*lyo::Bytes::copy(longer)));
}

TEST(CacheEntry, OfAnotherKeyIsRefused) {
    const auto sealed = lyo::seal_entry(key_of({{"a", "1"}}), bytes_of("value"));
    const auto entry = lyo::open_entry(*sealed, key_of({{"a", "2"}}).digest());
    ASSERT_FALSE(entry);
    EXPECT_EQ(entry.error().code, lyo::ErrorCode::bad_value);
}

TEST(CacheCounters, AreWrittenAsPrometheusReadsThem) {
    lyo::CounterValues values{};
    values[static_cast<std::size_t>(lyo::Counter::hits)] = 7;
    const std::string text = lyo::to_prometheus(values, 2, 300);
    EXPECT_NE(text.find("# TYPE lyo_cache_hits_total counter\nlyo_cache_hits_total 7\n"), std::string::npos);
    EXPECT_NE(text.find("# TYPE lyo_cache_entries gauge\nlyo_cache_entries 2\n"), std::string::npos);
    EXPECT_TRUE(text.ends_with("\n"));
}

}  // namespace
