// SHA-256 (FIPS 180-4), through OpenSSL's libcrypto.
export module lyo.base:digest;

import lyo.prelude;
import :result;

namespace lyo {

/// A SHA-256 value.
export struct Digest {
    std::array<std::uint8_t, 32> bytes{};

    friend bool operator==(const Digest&, const Digest&) = default;
    friend auto operator<=>(const Digest& a, const Digest& b) { return a.bytes <=> b.bytes; }
    /// 64 lower-case hexadecimal digits.
    std::string hex() const;
};

/// Digest of one region.
export Digest sha256(std::span<const std::byte> data) noexcept;
/// Digest of several regions, one after the other.
export Digest sha256(std::initializer_list<std::span<const std::byte>> parts) noexcept;

/// Bytes of one leaf of a tree digest.
export inline constexpr std::size_t digest_chunk = std::size_t{1} << 18;

/// The leaves of a tree digest: SHA-256 of each `digest_chunk` of the data, the last one shorter; none for no data.
export std::vector<Digest> digest_leaves(std::span<const std::byte> data);
/// The tree's value: SHA-256 over its leaves, one after the other. Leaves can be checked in parallel and in part.
export Digest digest_root(std::span<const Digest> leaves) noexcept;
/// `digest_root(digest_leaves(data))`.
export Digest tree_digest(std::span<const std::byte> data);

/// Lower-case hexadecimal.
export std::string to_hex(std::span<const std::uint8_t> data);

}  // namespace lyo
