#include <gtest/gtest.h>

import lyo.prelude;
import lyo.base;
import lyo.cache;

namespace {

lyo::CacheKey key_of(int i) { return *lyo::CacheKey::make({{"number", lyo::cat(i)}}); }
lyo::Bytes bytes_of(std::string_view text) {
    return *lyo::Bytes::copy(std::as_bytes(std::span(text.data(), text.size())));
}
lyo::Bytes sealed(int i, std::string_view text) { return *lyo::seal_entry(key_of(i), bytes_of(text)); }

TEST(EntryArchive, KeepsEntriesInTheirOrder) {
    const std::vector<lyo::Bytes> entries = {sealed(2, "two"), sealed(1, std::string(10'000, 'x')), sealed(3, "")};
    const auto bytes = lyo::EntryArchive::make(entries);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    EXPECT_TRUE(lyo::EntryArchive::is_archive(*bytes));
    const auto archive = lyo::EntryArchive::open(*bytes);
    ASSERT_TRUE(archive) << archive.error().to_string();
    ASSERT_EQ(archive->size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(archive->sealed(i), entries[i]);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(archive->sealed(i).data()) -
                      reinterpret_cast<std::uintptr_t>(bytes->data()),
                  i == 0   ? 4096u
                  : i == 1 ? 8192u
                           : 20480u);
    }
    EXPECT_EQ(archive->entry(0)->value.text(), "two");
    EXPECT_EQ(*lyo::EntryArchive::make(entries), *bytes);
}

TEST(EntryArchive, MayBeEmpty) {
    const auto bytes = lyo::EntryArchive::make({});
    ASSERT_TRUE(bytes);
    EXPECT_EQ(lyo::EntryArchive::open(*bytes)->size(), 0u);
}

TEST(EntryArchive, RefusesAKeyThatIsThereTwice) {
    const std::vector<lyo::Bytes> entries = {sealed(1, "one"), sealed(1, "two")};
    EXPECT_FALSE(lyo::EntryArchive::make(entries));
    const std::vector<lyo::Bytes> no_entry = {bytes_of("no entry")};
    EXPECT_FALSE(lyo::EntryArchive::make(no_entry));
}

TEST(EntryArchive, DetectsEveryByteFlipAndTruncation) {
    const std::vector<lyo::Bytes> entries = {sealed(1, "one"), sealed(2, "two")};
    const auto bytes = lyo::EntryArchive::make(entries);
    const auto is_good = [](const lyo::Bytes& b) {
        const auto archive = lyo::EntryArchive::open(b);
        if (!archive) return false;
        for (std::size_t i = 0; i < archive->size(); ++i)
            if (!archive->entry(i)) return false;
        return true;
    };
    ASSERT_TRUE(is_good(*bytes));
    std::vector<std::byte> copy(bytes->span().begin(), bytes->span().end());
    for (std::size_t i = 0; i < copy.size(); ++i) {
        copy[i] ^= std::byte{0x20};
        EXPECT_FALSE(is_good(lyo::Bytes::borrow(copy))) << i;
        copy[i] ^= std::byte{0x20};
    }
    for (std::size_t size = 0; size < bytes->size(); ++size) EXPECT_FALSE(is_good(bytes->slice(0, size))) << size;
}

}  // namespace
