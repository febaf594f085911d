// Many processes, some of which are killed or meet a full disk.
#include "../support/folder.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

import lyo.prelude;
import lyo.base;
import lyo.cache;

namespace {

lyo::CacheKey key_of(int i) { return *lyo::CacheKey::make({{"number", lyo::cat(i)}}); }
lyo::Bytes bytes_of(std::string_view text) {
    return *lyo::Bytes::copy(std::as_bytes(std::span(text.data(), text.size())));
}
std::string value_of(int i) {
    return std::string(static_cast<std::size_t>(50'000 + i), static_cast<char>('a' + i % 26));
}

lyo::Cache open(const std::string& path) {
    lyo::CacheOptions options;
    options.local.path = path;
    return *lyo::Cache::open(options);
}

/// What the processes share: how often something was made, whether all may begin.
struct Shared {
    std::atomic<int> made, begun, answers;
    std::atomic<bool> go;
};
struct SharedMemory {
    Shared* shared =
        new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared{};
    ~SharedMemory() { ::munmap(shared, sizeof(Shared)); }
    Shared* operator->() const { return shared; }
};

/// A process that asks for a key as soon as all are there; exits with 0 when the answer is right.
pid_t asker(const std::string& path, int key, Shared* shared, int make_ms) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const auto cache = open(path);
    ++shared->begun;
    while (!shared->go) std::this_thread::sleep_for(std::chrono::microseconds(100));
    const auto found = cache.get_or_make(key_of(key), [&]() -> lyo::Result<lyo::Bytes> {
        ++shared->made;
        std::this_thread::sleep_for(std::chrono::milliseconds(make_ms));
        return bytes_of(value_of(key));
    });
    const bool right = found && found->value.text() == value_of(key);
    if (right) ++shared->answers;
    ::_exit(right ? 0 : 1);
}

TEST(CacheProcesses, SixteenThatAskAtOnceMakeOnce) {
    const test::Folder folder;
    const SharedMemory shared;
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) children.push_back(asker(folder / "cache", 1, shared.shared, 100));
    while (shared->begun < 16) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    shared->go = true;
    for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(shared->made, 1);
    EXPECT_EQ(folder.files("cache/v1/locks") + folder.files("cache/v1/tmp"), 0u);
}

TEST(CacheProcesses, AKilledOneLosesNothingAndHoldsNobodyUp) {
    const test::Folder folder;
    std::uint64_t random = 88172645463325252;
    const auto next = [&] { return random ^= random << 13, random ^= random >> 7, random ^= random << 17; };
    for (int round = 0; round < 200; ++round) {
        const SharedMemory shared;
        std::vector<pid_t> children;
        for (int i = 0; i < 16; ++i) children.push_back(asker(folder / "cache", round, shared.shared, 2));
        while (shared->begun < 16) std::this_thread::sleep_for(std::chrono::microseconds(200));
        shared->go = true;
        std::this_thread::sleep_for(std::chrono::microseconds(next() % 6000));
        const std::size_t victim = next() % children.size();
        ::kill(children[victim], SIGKILL);
        for (std::size_t i = 0; i < children.size(); ++i) {
            int status = -1;
            ASSERT_EQ(::waitpid(children[i], &status, 0), children[i]);
            if (i == victim)
                EXPECT_TRUE(status == 0 || WIFSIGNALED(status));
            else
                EXPECT_EQ(status, 0) << "round " << round;
        }
        EXPECT_LE(shared->made, 2) << "once, and once more if the maker was killed";
        // What was answered is there.
        const auto found = open(folder / "cache").get(key_of(round));
        ASSERT_TRUE(found && *found);
        EXPECT_EQ((*found)->value.text(), value_of(round));
    }
    lyo::Counters counters;
    lyo::LocalStore store({folder / "cache", 0}, counters, {});
    ASSERT_TRUE(store.collect(1 << 30));
    EXPECT_EQ(folder.files("cache/v1/locks") + folder.files("cache/v1/tmp") + folder.files("cache/v1/damaged"), 0u);
    EXPECT_EQ(store.list()->size(), 200u);
}

TEST(CacheProcesses, OneKilledWhileItWritesLeavesNoHalfEntry) {
    const test::Folder folder;
    const std::string large(8 << 20, 'w');
    std::uint64_t random = 362436069;
    const auto next = [&] { return random ^= random << 13, random ^= random >> 7, random ^= random << 17; };
    for (int round = 0; round < 40; ++round) {
        const pid_t child = ::fork();
        if (child == 0) {
            const auto cache = open(folder / "cache");
            for (int i = 0;; ++i) static_cast<void>(cache.put(key_of(i % 3), bytes_of(large)));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(1000 + next() % 20'000));
        ::kill(child, SIGKILL);
        ASSERT_EQ(::waitpid(child, nullptr, 0), child);
        const auto cache = open(folder / "cache");
        for (int i = 0; i < 3; ++i) {
            const auto found = cache.get(key_of(i));
            ASSERT_TRUE(found);
            if (*found) EXPECT_TRUE((*found)->value.text() == large);
        }
        EXPECT_EQ(cache.counters()[lyo::Counter::corrupt], 0u);
    }
    ASSERT_TRUE(open(folder / "cache").put(key_of(9), bytes_of("x")));
    EXPECT_EQ(folder.files("cache/v1/tmp"), 0u);
}

/// Where writing fails after so many bytes of a file, as on a full disk.
TEST(CacheProcesses, AFullDiskCostsAReport) {
    const test::Folder folder;
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{10'000, 10'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        int reports = 0;
        lyo::CacheOptions options;
        options.local.path = folder / "cache";
        options.report = [&](const lyo::Error& e) { reports += e.code == lyo::ErrorCode::file ? 1 : 0; };
        const auto cache = *lyo::Cache::open(options);
        const auto found =
            cache.get_or_make(key_of(1), []() -> lyo::Result<lyo::Bytes> { return bytes_of(value_of(1)); });
        ::_exit(found && found->value.text() == value_of(1) && reports == 1 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(folder.files("cache/v1/tmp") + folder.files("cache/v1/entries"), 0u);
}

TEST(CacheProcesses, AFolderWithoutPermissionCostsAReport) {
    const test::Folder folder;
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
    ASSERT_TRUE(open(folder / "cache").put(key_of(1), bytes_of("one")));
    const pid_t child = ::fork();
    if (child == 0) {
        // Permissions bind everybody but root.
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(2);
        int reports = 0;
        lyo::CacheOptions options;
        options.local.path = folder / "cache";
        options.report = [&](const lyo::Error&) { ++reports; };
        const auto cache = *lyo::Cache::open(options);
        const auto make = []() -> lyo::Result<lyo::Bytes> { return bytes_of("made"); };
        const auto there = cache.get_or_make(key_of(1), make);
        const auto fresh = cache.get_or_make(key_of(2), make);
        ::_exit(there && there->value.text() == "one" && fresh && fresh->value.text() == "made" && reports > 0 ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
