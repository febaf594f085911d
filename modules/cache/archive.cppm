// Many entries in one file, to fill caches in images and on other machines, and to keep what belongs together.
//
//   1. 64 bytes: magic "LYOMANY\n", u32 version, u32 number of entries, u64 length of the file, zeros to 32, SHA-256
//   over
//      this header with this field zero and the table
//   2. the table: 48 bytes an entry: its key's digest, u64 offset, u64 length
//   3. the sealed entries in the table's order, each at the next multiple of 4096, zeros between, nothing behind
//
// Little-endian. The same entries in the same order are the same bytes.
export module lyo.cache:archive;

import lyo.prelude;
import lyo.base;
import :key;
import :entry;

namespace lyo {

/// Validated at once but for the entries themselves, which are checked as they are taken. Copies share.
export class EntryArchive {
  public:
    static constexpr std::uint32_t max_entries = 1u << 20;

    /// True for bytes that begin as an archive does.
    static bool is_archive(std::span<const std::byte> bytes) noexcept;
    /// Errors: bad_magic, unsupported_version, truncated, bad_encoding, bad_digest.
    [[nodiscard]] static Result<EntryArchive> open(Bytes bytes);
    /// The archive of sealed entries, in this order. Errors: invalid_argument (a key that is there twice, too many),
    /// what open_entry says of one that is none, out_of_memory.
    [[nodiscard]] static Result<Bytes> make(std::span<const Bytes> entries);

    std::size_t size() const noexcept { return table_.size(); }
    const Digest& key(std::size_t i) const noexcept { return table_[i].key; }
    /// The sealed bytes, unchecked.
    Bytes sealed(std::size_t i) const noexcept { return bytes_.slice(table_[i].offset, table_[i].length); }
    /// Errors: those of open_entry.
    [[nodiscard]] Result<CacheEntry> entry(std::size_t i) const { return open_entry(sealed(i), key(i)); }
    const Bytes& bytes() const noexcept { return bytes_; }

  private:
    struct Row {
        Digest key;
        std::uint64_t offset = 0, length = 0;
    };
    Bytes bytes_;
    std::vector<Row> table_;
};

}  // namespace lyo
