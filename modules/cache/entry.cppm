// An entry as it lies in every store: the value, the key's parts, and a trailer that checks both.
//
//   1. the value, from byte 0 on, so that a mapped entry is a mapped value
//   2. the key's parts, sorted by name: u32 bytes of the name, the name, u32 bytes of the value, the value
//   3. 96 bytes: magic "LYOENTRY", u32 version, u32 number of parts, u64 bytes of the value, u64 bytes of the parts,
//      tree digest of the value, SHA-256 over the parts and these 96 bytes with this field zero
//
// Little-endian, nothing between, nothing behind: one byte string for one key and value.
export module lyo.cache:entry;

import lyo.prelude;
import lyo.base;
import :key;

namespace lyo {

export namespace entry_format {
inline constexpr std::uint32_t version = 1;
inline constexpr std::size_t trailer_size = 96;
inline constexpr std::size_t max_parts_size = CacheKey::max_parts * (2 * CacheKey::max_text + 8);
}  // namespace entry_format

/// A checked entry. `value` keeps the bytes that it is a part of.
export struct CacheEntry {
    CacheKey key;
    Bytes value;
};

/// What stands behind the value of an entry: parts and trailer.
export std::vector<std::byte> entry_tail(const CacheKey& key, std::span<const std::byte> value);
/// The whole entry. Errors: out_of_memory.
export [[nodiscard]] Result<Bytes> seal_entry(const CacheKey& key, std::span<const std::byte> value);
/// The entry that these bytes are, every byte checked. Errors: bad_magic, unsupported_version, truncated, bad_encoding,
/// bad_digest.
export [[nodiscard]] Result<CacheEntry> open_entry(const Bytes& bytes);
/// The same, and it must be the entry of that key. Further errors: bad_value.
export [[nodiscard]] Result<CacheEntry> open_entry(const Bytes& bytes, const Digest& expected);

/// Key and sizes from the last bytes of an entry (at most `max_parts_size + trailer_size` are ever needed) of
/// `total` bytes; the value is not looked at. Errors: as open_entry.
export struct EntryHead {
    CacheKey key;
    std::uint64_t value_bytes = 0;
    Digest value_digest;
};
export [[nodiscard]] Result<EntryHead> read_entry_tail(std::span<const std::byte> tail, std::uint64_t total);

}  // namespace lyo
