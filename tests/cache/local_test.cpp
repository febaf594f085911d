#include "../support/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

import lyo.prelude;
import lyo.base;
import lyo.cache;

namespace fs = std::filesystem;

namespace {

lyo::CacheKey key_of(int i) { return *lyo::CacheKey::make({{"number", lyo::cat(i)}}); }
std::span<const std::byte> view(const std::string& text) { return std::as_bytes(std::span(text)); }

struct Local : testing::Test {
    test::Folder folder;
    lyo::Counters counters;
    std::vector<lyo::Error> reports;
    lyo::LocalStore store{{folder / "cache", 0}, counters, [this](const lyo::Error& e) { reports.push_back(e); }};

    std::string path_of(const lyo::CacheKey& key) const {
        const std::string hex = key.digest().hex();
        return folder / ("cache/v1/entries/" + hex.substr(0, 2) + "/" + hex);
    }
    std::optional<std::string> get(const lyo::CacheKey& key, lyo::LocalStore* from = nullptr) {
        const auto entry = (from != nullptr ? *from : store).get(key.digest());
        EXPECT_TRUE(entry) << entry.error().to_string();
        if (!entry || !*entry) return std::nullopt;
        EXPECT_EQ((*entry)->key, key);
        return std::string((*entry)->value.text());
    }
};

TEST_F(Local, GivesBackWhatWasPut) {
    EXPECT_EQ(get(key_of(1)), std::nullopt);
    EXPECT_EQ(folder.files(), 0u) << "a look alone writes nothing";
    ASSERT_TRUE(store.put(key_of(1), view("one")));
    ASSERT_TRUE(store.put(key_of(2), view(std::string(3 << 20, 'x'))));
    EXPECT_EQ(get(key_of(1)), "one");
    EXPECT_EQ(get(key_of(2)), std::string(3 << 20, 'x'));
    EXPECT_EQ(folder.files("cache/v1/tmp"), 0u);
    lyo::Counters others;
    lyo::LocalStore again({folder / "cache", 0}, others, {});
    EXPECT_EQ(get(key_of(1), &again), "one");
    EXPECT_EQ(*store.remove(key_of(1).digest()), true);
    EXPECT_EQ(*store.remove(key_of(1).digest()), false);
    EXPECT_EQ(get(key_of(1)), std::nullopt);
    EXPECT_TRUE(reports.empty());
}

TEST_F(Local, PutsAnEntryAgainOverTheOldOne) {
    ASSERT_TRUE(store.put(key_of(1), view("one")));
    ASSERT_TRUE(store.put(key_of(1), view("two")));
    EXPECT_EQ(get(key_of(1)), "two");
    EXPECT_EQ(store.list()->size(), 1u);
}

TEST_F(Local, DetectsEveryByteFlipAndTruncationOnDisk) {
    ASSERT_TRUE(store.put(key_of(1), view("some value")));
    std::string good;
    {
        std::ifstream in(path_of(key_of(1)), std::ios::binary);
        good.assign(std::istreambuf_iterator<char>(in), {});
    }
    std::size_t tried = 0;
    const auto damage = [&](const std::string& bytes) {
        std::ofstream(path_of(key_of(1)), std::ios::binary | std::ios::trunc) << bytes;
        EXPECT_EQ(get(key_of(1)), std::nullopt);
        EXPECT_FALSE(fs::exists(path_of(key_of(1))));
        EXPECT_EQ(counters[lyo::Counter::corrupt], ++tried);
        ASSERT_EQ(reports.size(), tried);
        EXPECT_NE(reports.back().where.find(path_of(key_of(1))), std::string::npos);
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
        std::string bytes = good;
        bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
        damage(bytes);
        damage(good.substr(0, i));
    }
    EXPECT_LE(folder.files("cache/v1/damaged"), 64u) << "they must not fill the disk";
    ASSERT_TRUE(store.put(key_of(1), view("some value")));
    EXPECT_EQ(get(key_of(1)), "some value");
}

TEST_F(Local, PassesOverWhatIsNoEntry) {
    ASSERT_TRUE(store.put(key_of(1), view("one")));
    fs::remove(path_of(key_of(1)));
    fs::create_directory(path_of(key_of(1)));
    EXPECT_EQ(get(key_of(1)), std::nullopt);
    ASSERT_TRUE(store.put(key_of(1), view("one")));
    EXPECT_EQ(get(key_of(1)), "one");
    fs::rename(path_of(key_of(1)), folder / "elsewhere");
    fs::create_symlink(folder / "elsewhere", path_of(key_of(1)));
    const auto link = store.get(key_of(1).digest());
    EXPECT_FALSE(link && *link) << "links are not followed";
    ASSERT_TRUE(store.put(key_of(1), view("one")));
    EXPECT_EQ(get(key_of(1)), "one");
    fs::remove(path_of(key_of(1)));
    ASSERT_EQ(::mkfifo(path_of(key_of(1)).c_str(), 0600), 0);
    EXPECT_EQ(get(key_of(1)), std::nullopt) << "and no pipe is waited for";
}

TEST_F(Local, EvictsWhatWasUsedLongestAgo) {
    const std::string value(1000, 'v');
    lyo::LocalStore small({folder / "small", 20'000}, counters, {});
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(small.put(key_of(i), view(value)));
    EXPECT_EQ(get(key_of(0), &small), value);  // now the youngest
    for (int i = 10; i < 19; ++i) ASSERT_TRUE(small.put(key_of(i), view(value)));
    const auto usage = small.usage();
    ASSERT_TRUE(usage);
    EXPECT_LE(usage->bytes, 20'000u);
    EXPECT_GE(usage->bytes, 15'000u) << "not more than needed";
    EXPECT_GT(counters[lyo::Counter::evictions], 0u);
    EXPECT_EQ(get(key_of(0), &small), value);
    EXPECT_EQ(get(key_of(1), &small), std::nullopt);
    EXPECT_EQ(get(key_of(18), &small), value);
}

TEST_F(Local, NeverEvictsWhatSomebodyIsReading) {
    const std::string large(2 << 20, 'l');
    ASSERT_TRUE(store.put(key_of(1), view(large)));
    const auto held = store.get(key_of(1).digest());
    ASSERT_TRUE(held && *held);
    EXPECT_EQ(*store.collect(0), 1u);
    EXPECT_EQ(store.list()->size(), 0u);
    EXPECT_EQ((*held)->value.text(), large) << "the mapping outlives the name";
}

TEST_F(Local, CleansUpWhatDeadWritersLeft) {
    ASSERT_TRUE(store.put(key_of(1), view("one")));
    const std::string tmp = folder / "cache/v1/tmp/";
    std::ofstream(tmp + "dead") << "half an entr";
    const int alive = ::open((tmp + "alive").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(::flock(alive, LOCK_EX), 0);
    fs::create_directories(folder / "cache/v1/locks");
    std::ofstream(folder / "cache/v1/locks/0123");
    ASSERT_TRUE(store.collect(1 << 20));
    EXPECT_FALSE(fs::exists(tmp + "dead"));
    EXPECT_TRUE(fs::exists(tmp + "alive"));
    EXPECT_EQ(folder.files("cache/v1/locks"), 0u);
    ::close(alive);
    lyo::LocalStore next({folder / "cache", 0}, counters, {});
    ASSERT_TRUE(next.put(key_of(2), view("two")));
    EXPECT_FALSE(fs::exists(tmp + "alive")) << "the first put of a process sweeps, too";
}

TEST_F(Local, OneFlightAKeyAtATime) {
    auto first = store.try_begin(key_of(1).digest());
    ASSERT_TRUE(first && *first) << (first ? "busy" : first.error().to_string());
    lyo::LocalStore other({folder / "cache", 0}, counters, {});
    EXPECT_FALSE(*other.try_begin(key_of(1).digest()));
    EXPECT_TRUE(*other.try_begin(key_of(2).digest()));
    first->reset();
    EXPECT_TRUE(*other.try_begin(key_of(1).digest()));
    EXPECT_EQ(folder.files("cache/v1/locks"), 0u);
}

TEST_F(Local, AFolderThatIsAFileIsAnError) {
    std::ofstream(folder / "file") << "text";
    lyo::LocalStore bad({folder / "file", 0}, counters, {});
    EXPECT_EQ(get(key_of(1), &bad), std::nullopt);
    const auto put = bad.put(key_of(1), view("one"));
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, lyo::ErrorCode::file);
    EXPECT_FALSE(bad.try_begin(key_of(1).digest()));
    EXPECT_EQ(counters[lyo::Counter::put_errors], 1u);
}

TEST_F(Local, CountsForAllProcesses) {
    {
        lyo::Counters others;
        lyo::LocalStore other({folder / "cache", 0}, others, {});
        ASSERT_TRUE(other.put(key_of(1), view("one")));
        others.add(lyo::Counter::hits, 5);
    }
    counters.add(lyo::Counter::hits, 2);
    const auto usage = store.usage();
    ASSERT_TRUE(usage);
    EXPECT_EQ(usage->totals[static_cast<std::size_t>(lyo::Counter::hits)], 7u);
    EXPECT_EQ(usage->totals[static_cast<std::size_t>(lyo::Counter::puts)], 1u);
    EXPECT_EQ(usage->entries, 1u);
}

TEST_F(Local, ThreadsPutAndGetAtOnce) {
    const auto value_of = [](int i) {
        return std::string(static_cast<std::size_t>(100 + i), static_cast<char>('a' + i));
    };
    std::atomic<int> wrong{0};
    lyo::LocalStore shared({folder / "cache", 6'000}, counters, {});
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                for (int n = 0; n < 200; ++n) {
                    const int i = (n * 7 + t * 5) % 20;
                    if (n % 3 == 0 && !shared.put(key_of(i), view(value_of(i)))) ++wrong;
                    const auto entry = shared.get(key_of(i).digest());
                    if (!entry || (*entry && (*entry)->value.text() != value_of(i))) ++wrong;
                    if (n % 50 == 49) static_cast<void>(shared.collect(1'000));
                }
            });
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(counters[lyo::Counter::corrupt], 0u);
    EXPECT_EQ(folder.files("cache/v1/tmp"), 0u);
}

}  // namespace
