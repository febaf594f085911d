// Loading: when constants are verified, from files and from memory, from many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

import lyo.base;
import lyo.artifact;
import lyo.fuzz;

namespace {

using lyo::Artifact;
using lyo::ErrorCode;
using lyo::Verify;
using lyo::fuzz::Buffer;

constexpr std::size_t chunk = std::size_t{1} << 18;

/// No function, one constant of that many bytes.
Buffer with_constant(std::size_t bytes) {
    lyo::fuzz::Parts parts;
    parts.manifest = {"test", lyo::format::abi_version, {}, {}};
    parts.functions.constants = {{"weights", lyo::DType::u8, {bytes}, 0}};
    parts.constants.emplace_back(bytes, std::byte{0x5a});
    return lyo::fuzz::seal(parts);
}

/// The file with one byte of its constants changed: no digest but a leaf's can see it.
Buffer spoiled(Buffer file, std::size_t at) {
    for (const auto& section : lyo::fuzz::table_of(file))
        if (section.kind == lyo::format::SectionKind::constants) file[section.offset + at] ^= std::byte{1};
    return file;
}

TEST(Verify, LazilyABadDigestIsFoundOnTheFirstUseAndStaysFound) {
    const Buffer file = spoiled(with_constant(3 * chunk), chunk + 5);
    const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {Verify::lazy});
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    for (int i = 0; i < 2; ++i) {
        const auto verified = artifact->verify_constants();
        ASSERT_FALSE(verified.has_value());
        EXPECT_EQ(verified.error().code, ErrorCode::bad_digest);
        EXPECT_EQ(verified.error().to_string(), "constants: the digest of bytes 262144 to 524288 differs");
        EXPECT_FALSE(artifact->constants_verified());
    }
}

TEST(Verify, EagerlyABadDigestIsFoundAtLoad) {
    const Buffer file = spoiled(with_constant(3 * chunk), chunk + 5);
    for (const Verify when : {Verify::eager, Verify::automatic}) {
        const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {when});
        ASSERT_FALSE(artifact.has_value());
        EXPECT_EQ(artifact.error().code, ErrorCode::bad_digest);
        EXPECT_EQ(artifact.error().to_string(), "constants: the digest of bytes 262144 to 524288 differs");
    }
}

TEST(Verify, AutomaticallySmallConstantsAreCheckedAtLoadAndLargeOnesLater) {
    const Buffer file = with_constant(2 * chunk);
    EXPECT_TRUE(Artifact::check(lyo::Bytes::borrow(file))->constants_verified());
    const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {Verify::automatic, 2 * chunk - 1});
    EXPECT_FALSE(artifact->constants_verified());
    EXPECT_TRUE(artifact->verify_constants().has_value());
    EXPECT_TRUE(artifact->constants_verified());
}

TEST(Verify, ATrustedStoreIsBelieved) {
    const Buffer file = spoiled(with_constant(chunk), 0);
    const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {Verify::trusted});
    ASSERT_TRUE(artifact.has_value());
    EXPECT_TRUE(artifact->verify_constants().has_value());
    EXPECT_FALSE(artifact->constants_verified());
}

TEST(Verify, TheFirstBadChunkIsNamedHoweverManyThereAre) {
    // Enough chunks for several threads.
    Buffer file = with_constant(40 * chunk + 3);
    for (const std::size_t bad : {40 * chunk + 1, 33 * chunk, 7 * chunk}) {
        file = spoiled(std::move(file), bad);
        const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {Verify::lazy});
        const auto verified = artifact->verify_constants();
        ASSERT_FALSE(verified.has_value());
        const std::size_t first = bad / chunk * chunk, last = std::min(first + chunk, 40 * chunk + 3);
        EXPECT_EQ(verified.error().what,
                  "the digest of bytes " + std::to_string(first) + " to " + std::to_string(last) + " differs");
    }
}

TEST(Verify, ManyThreadsGetOneAnswer) {
    for (const bool good : {true, false}) {
        const Buffer file = good ? with_constant(40 * chunk) : spoiled(with_constant(40 * chunk), 39 * chunk);
        const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {Verify::lazy});
        ASSERT_TRUE(artifact.has_value());
        std::atomic<int> right{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; ++t)
            threads.emplace_back([&, copy = *artifact] {
                for (int i = 0; i < 50; ++i) {
                    const auto verified = copy.verify_constants();
                    if (verified.has_value() == good && copy.constants_verified() == good) ++right;
                }
            });
        for (auto& thread : threads) thread.join();
        EXPECT_EQ(right.load(), 8 * 50);
    }
}

class Files : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() /
                  ("lyo_artifact_test_" + std::to_string(std::hash<std::thread::id>{}(std::this_thread::get_id())) +
                   testing::UnitTest::GetInstance()->current_test_info()->name());
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string path(const char* name) const { return (folder_ / name).string(); }

    std::filesystem::path folder_;
};

TEST_F(Files, ASmallFileMayChangeAfterItWasRead) {
    const Buffer file = lyo::fuzz::seal(lyo::fuzz::small_parts());
    ASSERT_TRUE(lyo::write_file(path("a.lyo"), file).has_value());
    const auto artifact = Artifact::read(path("a.lyo"));
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    std::filesystem::resize_file(path("a.lyo"), 10);
    EXPECT_EQ(artifact->bytes(), lyo::Bytes::borrow(file));
    EXPECT_EQ(*artifact->encode_again(), lyo::Bytes::borrow(file));
}

TEST_F(Files, ALargeFileIsMappedAndMayBeUnlinked) {
    const std::size_t size = std::size_t{65} << 20;
    {
        const Buffer file = with_constant(size);
        ASSERT_TRUE(lyo::write_file(path("large.lyo"), file).has_value());
    }
    const auto artifact = Artifact::read(path("large.lyo"));
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    EXPECT_FALSE(artifact->constants_verified());
    std::filesystem::remove(path("large.lyo"));
    EXPECT_TRUE(artifact->verify_constants().has_value());
    const lyo::Bytes weights = artifact->constant(0);
    EXPECT_EQ(weights.size(), size);
    EXPECT_EQ(weights.data()[size - 1], std::byte{0x5a});
}

TEST_F(Files, ErrorsNameTheFile) {
    Buffer file = lyo::fuzz::seal(lyo::fuzz::small_parts());
    file[0] = std::byte{0};
    ASSERT_TRUE(lyo::write_file(path("bad.lyo"), file).has_value());
    EXPECT_EQ(Artifact::read(path("bad.lyo")).error().to_string(),
              path("bad.lyo") + ": header: not a lyo artifact: the first 8 bytes are not its magic");
    EXPECT_EQ(Artifact::read(path("none.lyo")).error().to_string(),
              path("none.lyo") + ": cannot open: No such file or directory");
    EXPECT_EQ(Artifact::read(folder_.string()).error().to_string(), folder_.string() + ": not a regular file");
}

TEST(Lifetime, ConstantsKeepTheFileAlive) {
    lyo::Bytes weights;
    {
        const auto artifact = Artifact::check(*lyo::Bytes::copy(with_constant(1000)));
        weights = artifact->constant(0);
    }
    EXPECT_EQ(weights.size(), 1000u);
    EXPECT_EQ(weights.data()[999], std::byte{0x5a});
}

}  // namespace
