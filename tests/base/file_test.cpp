#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

import lyo.base;

namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class File : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("lyo_base_test_" + std::to_string(::getpid()) + "_" +
                                               testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& entry : fs::directory_iterator(folder_)) out.push_back(entry.path().filename());
        std::sort(out.begin(), out.end());
        return out;
    }
    fs::path folder_;
};

TEST_F(File, WhatIsWrittenIsRead) {
    for (const std::string& text : {std::string(), std::string("text\n"), std::string(100000, 'x')}) {
        ASSERT_TRUE(lyo::write_file(path("f"), bytes(text)).has_value());
        EXPECT_EQ(lyo::read_file(path("f"))->text(), text);
        EXPECT_EQ(lyo::map_file(path("f"))->text(), text);
    }
    EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_F(File, ReadingWhatIsNotAFileSaysWhy) {
    EXPECT_EQ(lyo::read_file(path("none")).error().to_string(),
              path("none") + ": cannot open: No such file or directory");
    EXPECT_EQ(lyo::map_file(path("none")).error().code, lyo::ErrorCode::file);
    EXPECT_EQ(lyo::read_file(folder_.string()).error().to_string(), folder_.string() + ": not a regular file");
    // Opening it for reading would wait for a writer.
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    EXPECT_EQ(lyo::read_file(path("pipe")).error().to_string(), path("pipe") + ": not a regular file");
}

TEST_F(File, ALimitIsCheckedBeforeAnythingIsRead) {
    ASSERT_TRUE(lyo::write_file(path("f"), bytes("12345")).has_value());
    EXPECT_TRUE(lyo::read_file(path("f"), 5).has_value());
    EXPECT_EQ(lyo::read_file(path("f"), 4).error().to_string(),
              path("f") + ": size in bytes: expected at most 4, got 5");
    // A sparse terabyte.
    ASSERT_EQ(::truncate(path("f").c_str(), off_t{1} << 40), 0);
    EXPECT_FALSE(lyo::read_file(path("f"), std::uint64_t{1} << 30).has_value());
}

TEST_F(File, AMappedFileMayBeUnlinkedOrReplaced) {
    ASSERT_TRUE(lyo::write_file(path("f"), bytes("old")).has_value());
    const auto mapped = lyo::map_file(path("f"));
    ASSERT_TRUE(lyo::write_file(path("f"), bytes("new!")).has_value());
    EXPECT_EQ(mapped->text(), "old");
    fs::remove(path("f"));
    EXPECT_EQ(mapped->text(), "old");
}

TEST_F(File, AFailureLeavesTheOldFileAndNoOther) {
    ASSERT_TRUE(lyo::write_file(path("f"), bytes("old")).has_value());
    // Writing more than 4 KiB fails half-way, as on a full disk.
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto written = lyo::write_file(path("f"), bytes(std::string(10000, 'x')));
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(written.has_value());
    EXPECT_EQ(written.error().to_string(), path("f") + ": cannot write: File too large");
    EXPECT_EQ(lyo::read_file(path("f"))->text(), "old");
    EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_F(File, WhatCannotBeReplacedLeavesNothingBehind) {
    fs::create_directories(folder_ / "folder" / "inside");
    const auto written = lyo::write_file(path("folder"), bytes("text"));
    ASSERT_FALSE(written.has_value());
    EXPECT_EQ(written.error().code, lyo::ErrorCode::file);
    EXPECT_EQ(names(), std::vector<std::string>{"folder"});
    EXPECT_EQ(lyo::write_file(path("none/f"), bytes("text")).error().to_string(),
              path("none/f") + ": cannot create a file beside it: No such file or directory");
}

TEST_F(File, WhatIsNotARegularFileIsNeverReplaced) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    fs::create_symlink("pipe", path("link"));
    for (const char* name : {"pipe", "link"}) {
        const auto written = lyo::write_file(path(name), bytes("text"));
        ASSERT_FALSE(written.has_value());
        EXPECT_EQ(written.error().to_string(), path(name) + ": not a regular file");
    }
    EXPECT_TRUE(fs::is_fifo(fs::symlink_status(path("pipe"))));
    EXPECT_TRUE(fs::is_symlink(fs::symlink_status(path("link"))));
    EXPECT_EQ(names(), (std::vector<std::string>{"link", "pipe"}));
}

TEST_F(File, ALinkStaysAndLeadsToTheNewContent) {
    fs::create_directory(folder_ / "other");
    ASSERT_TRUE(lyo::write_file(path("other/f"), bytes("old")).has_value());
    fs::create_symlink("other/f", path("link"));
    ASSERT_TRUE(lyo::write_file(path("link"), bytes("new")).has_value());
    EXPECT_TRUE(fs::is_symlink(fs::symlink_status(path("link"))));
    EXPECT_EQ(lyo::read_file(path("other/f"))->text(), "new");
}

TEST_F(File, ALeftoverOfAKilledProcessIsNoHindrance) {
    const std::string leftover = path("f") + "." + std::to_string(::getpid()) + ".";
    for (int i = 0; i < 50; ++i) std::ofstream(leftover + std::to_string(i) + ".tmp") << "half";
    ASSERT_TRUE(lyo::write_file(path("f"), bytes("whole")).has_value());
    EXPECT_EQ(lyo::read_file(path("f"))->text(), "whole");
}

TEST_F(File, ReadersSeeTheOldContentOrTheNew) {
    const std::string a(50000, 'a'), b(70000, 'b');
    ASSERT_TRUE(lyo::write_file(path("f"), bytes(a)).has_value());
    std::atomic<bool> stop{false};
    std::atomic<int> torn{0};
    std::thread reader([&] {
        while (!stop) {
            const auto read = lyo::read_file(path("f"));
            if (!read || (read->text() != a && read->text() != b)) ++torn;
        }
    });
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(lyo::write_file(path("f"), bytes(i % 2 == 0 ? b : a)).has_value());
    stop = true;
    reader.join();
    EXPECT_EQ(torn.load(), 0);
}

TEST_F(File, ManyWritersOfOnePathLeaveOneWholeFile) {
    std::vector<std::thread> writers;
    for (int t = 0; t < 4; ++t)
        writers.emplace_back([&, t] {
            for (int i = 0; i < 10; ++i)
                EXPECT_TRUE(
                    lyo::write_file(path("f"), bytes(std::string(20000, static_cast<char>('a' + t)))).has_value());
        });
    for (auto& writer : writers) writer.join();
    const auto read = lyo::read_file(path("f"));
    EXPECT_EQ(read->text(), std::string(20000, read->text()[0]));
    EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

}  // namespace
