// Files that somebody made wrong on purpose: refused, for the reason and with the words that were expected.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "memory.h"

import lyo.base;
import lyo.artifact;
import lyo.fuzz;

namespace {

using lyo::Artifact;
using lyo::fuzz::Buffer;

lyo::Result<Artifact> check(std::span<const std::byte> file) {
    return Artifact::check(lyo::fuzz::exactly(file), {lyo::Verify::eager});
}

TEST(Hostile, EachFileIsRefusedForItsOwnReason) {
    const auto files = lyo::fuzz::hostile();
    EXPECT_GT(files.size(), 150u);
    std::set<std::string> names;
    for (const auto& file : files) {
        EXPECT_TRUE(names.insert(file.name).second) << file.name << " twice";
        const auto artifact = check(file.file);
        ASSERT_FALSE(artifact.has_value()) << file.name;
        EXPECT_EQ(lyo::to_string(artifact.error().code), lyo::to_string(file.code))
            << file.name << ": " << artifact.error().to_string();
        EXPECT_NE(artifact.error().to_string().find(file.expected), std::string::npos)
            << file.name << ": " << artifact.error().to_string();
    }
}

TEST(Hostile, WhatTheFilesWereMadeFromIsAccepted) {
    for (const auto& parts : {lyo::fuzz::small_parts(), lyo::fuzz::device_parts()}) {
        const auto artifact = check(lyo::fuzz::seal(parts));
        EXPECT_TRUE(artifact.has_value()) << artifact.error().to_string();
    }
}

TEST(Hostile, RefusingAFileTakesMemoryInProportionToIt) {
    for (const auto& file : lyo::fuzz::hostile()) {
        const lyo::Bytes bytes = lyo::fuzz::exactly(file.file);
        lyo_test::reset_memory();
        const std::size_t before = lyo_test::memory().live;
        const auto artifact = Artifact::check(bytes, {lyo::Verify::eager});
        ASSERT_FALSE(artifact.has_value()) << file.name;
        EXPECT_LT(lyo_test::memory().peak - before, 64 * bytes.size() + (std::size_t{16} << 10)) << file.name;
    }
}

/// A section that claims as many elements at every level as its length allows.
TEST(Hostile, CountsThatNestDoNotMultiplyWhatIsReserved) {
    auto sections = lyo::fuzz::sections_of(lyo::fuzz::small_parts());
    // programs, exprs (none), slots (none), steps; each list claims what is left of 400 KiB.
    std::vector<std::uint8_t> content;
    const auto number = [&](std::size_t n) {
        for (; n >= 0x80; n >>= 7) content.push_back(static_cast<std::uint8_t>(n | 0x80));
        content.push_back(static_cast<std::uint8_t>(n));
    };
    constexpr std::size_t size = std::size_t{400} << 10;
    number(size / 4);
    number(0);
    number(0);
    number(size / 8);
    content.push_back(0);
    number(0);
    number(0);
    number(size / 16);
    content.resize(size, 0);
    const auto bytes = std::as_bytes(std::span(content));
    sections[2].content.assign(bytes.begin(), bytes.end());
    const Buffer file = lyo::fuzz::assemble(sections);
    lyo_test::reset_memory();
    const std::size_t before = lyo_test::memory().live;
    EXPECT_FALSE(Artifact::check(lyo::Bytes::borrow(file)).has_value());
    EXPECT_LT(lyo_test::memory().peak - before, std::size_t{64} << 20);
}

class Seeds : public testing::Test {
  protected:
    static std::vector<Buffer> files() {
        std::vector<Buffer> out = {lyo::fuzz::seal(lyo::fuzz::small_parts()),
                                   lyo::fuzz::seal(lyo::fuzz::device_parts())};
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            lyo::fuzz::Random random(seed);
            out.push_back(lyo::fuzz::seal(lyo::fuzz::generate(random)));
        }
        return out;
    }
};

void expect_refused(std::span<const std::byte> file, std::size_t at, const char* change) {
    const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {lyo::Verify::eager});
    ASSERT_FALSE(artifact.has_value()) << change << " at " << at;
    const auto code = static_cast<unsigned>(artifact.error().code);
    EXPECT_TRUE(code >= 200 && code < 300) << artifact.error().to_string();
    EXPECT_FALSE(artifact.error().where.empty() || artifact.error().what.empty()) << change << " at " << at;
}

/// The place that an error must name for a change of this byte.
std::vector<std::string> places(const Artifact& artifact, std::size_t at) {
    const std::size_t table_end = 56 + artifact.sections().size() * 56;
    if (at < table_end) return {"header", "section table"};
    std::size_t end = table_end;
    for (const auto& section : artifact.sections()) {
        const std::string name(lyo::format::to_string(section.kind));
        // Between two sections is the padding of the second.
        if (at >= end && at < section.offset) return {"section " + name};
        end = section.offset + section.length;
        // Padding between constants is checked with their table.
        if (at >= section.offset && at < end) return {name, "functions.constants"};
    }
    return {};
}

TEST_F(Seeds, EverySingleByteChangeIsRefusedAndItsPlaceIsNamed) {
    for (Buffer file : files()) {
        const auto original = check(file);
        ASSERT_TRUE(original.has_value());
        for (std::size_t at = 0; at < file.size(); ++at) {
            const std::byte was = file[at];
            const std::byte others[] = {was ^ std::byte{1}, was ^ std::byte{0x80}, ~was};
            for (const std::byte value : others) {
                file[at] = value;
                const auto artifact = Artifact::check(lyo::Bytes::borrow(file), {lyo::Verify::eager});
                ASSERT_FALSE(artifact.has_value()) << at;
                const std::string where = artifact.error().where;
                bool named = false;
                for (const std::string& place : places(*original, at)) named = named || where.starts_with(place);
                ASSERT_TRUE(named) << at << ": " << artifact.error().to_string();
            }
            file[at] = was;
        }
    }
}

TEST_F(Seeds, EveryValueOfEveryByteOfTheSmallestIsRefused) {
    Buffer file = lyo::fuzz::seal(lyo::fuzz::small_parts());
    for (std::size_t at = 0; at < file.size(); ++at) {
        const std::byte was = file[at];
        // Long runs of padding need not be tried with every value.
        const bool padding = at > 2048 && at < 4096;
        for (unsigned step = 1; step < 256; step += padding ? 51 : 1) {
            file[at] = static_cast<std::byte>(std::to_integer<unsigned>(was) + step);
            ASSERT_NO_FATAL_FAILURE(expect_refused(file, at, "a change"));
        }
        file[at] = was;
    }
}

TEST_F(Seeds, EveryTruncationIsRefused) {
    for (const Buffer& file : files())
        for (std::size_t size = 0; size < file.size(); ++size)
            ASSERT_NO_FATAL_FAILURE(expect_refused(std::span(file).first(size), size, "the end"));
}

TEST_F(Seeds, EveryTruncationWithAllDigestsRepairedIsRefused) {
    for (const Buffer& file : files())
        for (std::size_t size = 24; size < file.size(); ++size) {
            Buffer cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
            lyo::fuzz::set(cut, 16, size, 8);
            lyo::fuzz::reseal(cut);
            ASSERT_NO_FATAL_FAILURE(expect_refused(cut, size, "the end"));
        }
}

TEST_F(Seeds, AnyByteBehindTheEndIsRefused) {
    for (Buffer file : files()) {
        file.push_back(std::byte{0});
        ASSERT_NO_FATAL_FAILURE(expect_refused(file, file.size(), "the end"));
    }
}

/// With the digests repaired, a change may be another valid artifact; it is never a second encoding of one.
TEST_F(Seeds, AChangeThatIsAcceptedIsTheOneEncodingOfAnotherArtifact) {
    std::size_t accepted = 0, refused = 0;
    for (const Buffer& file : files())
        for (std::size_t at = 0; at < file.size(); ++at) {
            if (file[at] == std::byte{0} && at > 600 && at % 64 > 2) continue;
            Buffer changed = file;
            changed[at] ^= std::byte{1};
            lyo::fuzz::reseal(changed);
            ++(lyo::fuzz::check_load(lyo::Bytes::borrow(changed)) ? accepted : refused);
        }
    EXPECT_GT(accepted, 100u);
    EXPECT_GT(refused, 100u);
}

TEST(Mutated, ThousandsOfResealedMutantsAreRefusedOrAreCanonical) {
    std::size_t accepted = 0;
    lyo::fuzz::Random random(7);
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        lyo::fuzz::Random of_seed(seed);
        Buffer file = lyo::fuzz::seal(lyo::fuzz::generate(of_seed));
        for (int step = 0; step < 20; ++step) {
            Buffer mutant = lyo::fuzz::mutate(file, random, std::size_t{1} << 20);
            if (lyo::fuzz::check_load(lyo::fuzz::exactly(mutant))) ++accepted, file = std::move(mutant);
        }
    }
    EXPECT_GT(accepted, 200u);
}

}  // namespace
