#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

import lyo.base;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string hash(std::string_view text) { return lyo::sha256(bytes(text)).hex(); }

// FIPS 180-4's examples, and the empty message.
TEST(Sha256, GivesThePublishedValues) {
    EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfPartsIsThatOfTheWhole) {
    EXPECT_EQ(lyo::sha256({bytes("a"), bytes(""), bytes("bc")}), lyo::sha256(bytes("abc")));
    EXPECT_EQ(lyo::sha256({}), lyo::sha256(bytes("")));
}

TEST(TreeDigest, HasALeafForEachChunkAndNoneForNothing) {
    const std::string data(2 * lyo::digest_chunk + 1, 'x');
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, lyo::digest_chunk - 1, lyo::digest_chunk,
                                   lyo::digest_chunk + 1, 2 * lyo::digest_chunk, 2 * lyo::digest_chunk + 1}) {
        const auto part = bytes(data).first(size);
        const auto leaves = lyo::digest_leaves(part);
        ASSERT_EQ(leaves.size(), (size + lyo::digest_chunk - 1) / lyo::digest_chunk) << size;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            const std::size_t at = i * lyo::digest_chunk;
            EXPECT_EQ(leaves[i], lyo::sha256(part.subspan(at, std::min(lyo::digest_chunk, size - at))));
        }
        EXPECT_EQ(lyo::tree_digest(part), lyo::digest_root(leaves));
        EXPECT_EQ(lyo::digest_root(leaves), lyo::sha256(std::as_bytes(std::span(leaves))));
    }
    EXPECT_EQ(lyo::tree_digest({}).hex(), hash(""));
}

TEST(TreeDigest, DiffersFromThePlainDigestAndSeesEveryChunk) {
    std::string data(3 * lyo::digest_chunk, 'x');
    const auto whole = lyo::tree_digest(bytes(data));
    EXPECT_NE(whole, lyo::sha256(bytes(data)));
    for (const std::size_t at : {std::size_t{0}, lyo::digest_chunk, 3 * lyo::digest_chunk - 1}) {
        data[at] = 'y';
        EXPECT_NE(lyo::tree_digest(bytes(data)), whole);
        data[at] = 'x';
    }
    EXPECT_EQ(lyo::tree_digest(bytes(data)), whole);
}

TEST(Digest, ComparesByItsBytes) {
    lyo::Digest a, b;
    b.bytes[31] = 1;
    EXPECT_TRUE(a < b && a != b && a == a);
    EXPECT_EQ(b.hex(), std::string(63, '0') + "1");
}

}  // namespace
