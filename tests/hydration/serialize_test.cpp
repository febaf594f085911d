// serialize() hands out the bytes that the function came from: nothing is copied, nothing allocated, at any time. This
// binary replaces operator new and counts; a copy of the bytes would also have another address.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <span>
#include <thread>
#include <vector>

import lyo.base;
import lyo.artifact;
import lyo.kernel;
import lyo.hydration;
import lyo.fuzz;

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t size) {
    ++allocations;
    if (void* p = std::malloc(size)) return p;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace {

using lyo::Bytes;
using lyo::DType;
using lyo::Function;
using lyo::Tensor;

struct Loaded {
    Bytes bytes;
    Function function;
};

/// The function of small_parts: x [s0, 2] f32 with s0 at most 8.
Loaded load() {
    const auto bytes = Bytes::copy(lyo::fuzz::seal(lyo::fuzz::small_parts()));
    const auto artifact = lyo::Artifact::check(*bytes);
    EXPECT_TRUE(artifact.has_value()) << artifact.error().to_string();
    // The artifact's handle is dropped here; only the function is left.
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    EXPECT_TRUE(function.has_value()) << function.error().to_string();
    return {*bytes, *function};
}

void expect_shared(const Loaded& loaded) {
    const std::size_t before = allocations;
    const Bytes& kept = loaded.function.serialize();
    const Bytes shared = loaded.function.serialize();
    const bool same = kept.data() == loaded.bytes.data() && shared.data() == loaded.bytes.data() &&
                      kept.size() == loaded.bytes.size() && shared.size() == loaded.bytes.size() &&
                      kept == loaded.bytes;
    const std::size_t after = allocations;
    EXPECT_EQ(after - before, 0u);
    EXPECT_TRUE(same);
}

Tensor input(std::int64_t rows) { return *Tensor::empty({rows, 2}, DType::f32); }

TEST(Serialize, TheCounterSeesAllocations) {
    const std::size_t before = allocations;
    const auto copied = std::vector<int>(100);
    EXPECT_EQ(copied.size(), 100u);
    EXPECT_GT(allocations, before);
}

TEST(Serialize, CopiesNothingBeforeAnyCall) { expect_shared(load()); }

TEST(Serialize, CopiesNothingAfterCalls) {
    const Loaded loaded = load();
    for (const std::int64_t rows : {3, 0, 8, 3}) {
        ASSERT_TRUE(loaded.function.call({input(rows)}).has_value());
        expect_shared(loaded);
    }
}

TEST(Serialize, CopiesNothingAfterCallsThatFail) {
    const Loaded loaded = load();
    EXPECT_FALSE(loaded.function.call({}).has_value());
    expect_shared(loaded);
    EXPECT_FALSE(loaded.function.call({input(9)}).has_value());
    expect_shared(loaded);
    EXPECT_FALSE(loaded.function.call({Tensor::borrow(nullptr, {3, 2}, DType::f32)}).has_value());
    expect_shared(loaded);
    EXPECT_FALSE(loaded.function.call_into(std::vector<Tensor>{input(3)}, std::vector<Tensor>{}).has_value());
    expect_shared(loaded);
}

TEST(Serialize, GivesWhatTheDecodedStateEncodesTo) {
    const Loaded loaded = load();
    ASSERT_TRUE(loaded.function.call({input(3)}).has_value());
    EXPECT_EQ(*loaded.function.artifact().encode_again(), loaded.function.serialize());
    EXPECT_EQ(loaded.function.serialize(), Bytes::borrow(lyo::fuzz::seal(lyo::fuzz::small_parts())));
}

TEST(Serialize, OutlivesTheFunction) {
    const std::byte* address = nullptr;
    Bytes kept;
    {
        const Loaded loaded = load();
        kept = loaded.function.serialize();
        address = loaded.bytes.data();
    }
    EXPECT_EQ(kept.data(), address);
    EXPECT_TRUE(lyo::Artifact::check(kept).has_value());
}

TEST(Serialize, IsTheSameOnEveryThreadDuringCalls) {
    const Loaded loaded = load();
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&, t] {
            while (!stop)
                // Every other thread's calls are refused.
                if (loaded.function.call({input(t == 0 ? 3 : 9)}).has_value() != (t == 0)) ++wrong;
        });
    std::vector<std::thread> readers;
    for (int t = 0; t < 4; ++t)
        readers.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                const Bytes& bytes = loaded.function.serialize();
                if (bytes.data() != loaded.bytes.data() || bytes.size() != loaded.bytes.size()) ++wrong;
            }
        });
    for (auto& thread : readers) thread.join();
    stop = true;
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
    expect_shared(loaded);
}

TEST(Serialize, IsTheSameForEveryCopyOfTheFunction) {
    std::optional<Function> copy;
    Bytes bytes;
    {
        const Loaded loaded = load();
        copy = loaded.function;
        bytes = loaded.bytes;
    }
    expect_shared({bytes, *copy});
}

}  // namespace
