module;
// The one-shot and streaming SHA256_* functions need no provider lookup, which would cost a process its first
// millisecond; they are marked deprecated in favour of EVP and still supported.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

module lyo.base;

import lyo.prelude;

namespace lyo {

std::string to_hex(std::span<const std::uint8_t> data) {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    out.reserve(data.size() * 2);
    for (const std::uint8_t byte : data) {
        out += digits[byte >> 4];
        out += digits[byte & 15];
    }
    return out;
}

std::string Digest::hex() const { return to_hex(bytes); }

Digest sha256(std::initializer_list<std::span<const std::byte>> parts) noexcept {
    SHA256_CTX context;
    SHA256_Init(&context);
    for (const auto part : parts) SHA256_Update(&context, part.data(), part.size());
    Digest out;
    SHA256_Final(out.bytes.data(), &context);
    return out;
}

Digest sha256(std::span<const std::byte> data) noexcept { return sha256({data}); }

std::vector<Digest> digest_leaves(std::span<const std::byte> data) {
    std::vector<Digest> leaves;
    leaves.reserve((data.size() + digest_chunk - 1) / digest_chunk);
    for (std::size_t at = 0; at < data.size(); at += digest_chunk)
        leaves.push_back(sha256(data.subspan(at, std::min(digest_chunk, data.size() - at))));
    return leaves;
}

Digest digest_root(std::span<const Digest> leaves) noexcept { return sha256(std::as_bytes(leaves)); }

Digest tree_digest(std::span<const std::byte> data) { return digest_root(digest_leaves(data)); }

}  // namespace lyo
