#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

import lyo.base;

/// Under the sanitizers too an impossible size is an answer, not the end.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

using lyo::Bytes;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Bytes, CopyOwnsItsContent) {
    std::vector<char> source = {'a', 'b', 'c'};
    const auto copy = Bytes::copy(std::as_bytes(std::span(source)));
    ASSERT_TRUE(copy.has_value());
    source[0] = 'x';
    EXPECT_EQ(copy->text(), "abc");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copy->data()) % 64, 0u);
}

TEST(Bytes, CopyingSharesTheRegion) {
    const auto first = Bytes::copy(bytes("shared"));
    const Bytes second = *first;
    EXPECT_EQ(second.data(), first->data());
    EXPECT_EQ(second, *first);
}

TEST(Bytes, LiveAsLongAsTheLastCopyOrSlice) {
    auto owner = std::make_shared<std::vector<std::byte>>(100, std::byte{7});
    const std::weak_ptr<std::vector<std::byte>> watch = owner;
    std::optional<Bytes> slice;
    {
        const Bytes whole = Bytes::share(owner, *owner);
        slice = whole.slice(90, 10);
        owner.reset();
    }
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(slice->size(), 10u);
    EXPECT_EQ(slice->data()[9], std::byte{7});
    slice.reset();
    EXPECT_TRUE(watch.expired());
}

TEST(Bytes, MakeGivesZeroedMemoryToItsWriter) {
    const auto made = Bytes::make(1000, [](std::span<std::byte> out) -> lyo::Result<> {
        for (const std::byte b : out) EXPECT_EQ(b, std::byte{0});
        out[999] = std::byte{1};
        return {};
    });
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->data()[999], std::byte{1});
}

TEST(Bytes, MakePassesOnTheWritersError) {
    const auto made = Bytes::make(
        10, [](std::span<std::byte>) -> lyo::Result<> { return lyo::fail(lyo::ErrorCode::file, "x", "broken"); });
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().to_string(), "x: broken");
}

TEST(Bytes, MoreThanThereIsIsAnErrorAndNoCrash) {
    const auto nothing = [](std::span<std::byte>) -> lyo::Result<> { return {}; };
    for (const std::size_t size :
         {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() - 64}) {
        const auto made = Bytes::make(size, nothing);
        ASSERT_FALSE(made.has_value());
        EXPECT_EQ(made.error().code, lyo::ErrorCode::out_of_memory);
    }
}

TEST(Bytes, EmptyOnesAreEqualAndHaveNoContent) {
    const auto copy = Bytes::copy({});
    ASSERT_TRUE(copy.has_value());
    EXPECT_TRUE(copy->empty());
    EXPECT_EQ(*copy, Bytes());
    EXPECT_EQ(Bytes().text(), "");
    EXPECT_EQ(copy->slice(0, 0), Bytes());
}

TEST(Bytes, CompareByContent) {
    EXPECT_EQ(*Bytes::copy(bytes("same")), Bytes::borrow(bytes("same")));
    EXPECT_FALSE(*Bytes::copy(bytes("same")) == Bytes::borrow(bytes("sama")));
    EXPECT_FALSE(*Bytes::copy(bytes("same")) == Bytes::borrow(bytes("sam")));
}

TEST(Bytes, MayBeReadAndDroppedOnAnyThread) {
    auto owner = std::make_shared<std::vector<std::byte>>(64, std::byte{3});
    const std::weak_ptr<std::vector<std::byte>> watch = owner;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([copy = Bytes::share(owner, *owner)] {
            for (int i = 0; i < 1000; ++i) {
                const Bytes another = copy.slice(1, 3);
                EXPECT_EQ(another.data()[2], std::byte{3});
            }
        });
    owner.reset();
    for (auto& thread : threads) thread.join();
    threads.clear();
    EXPECT_TRUE(watch.expired());
}

}  // namespace
