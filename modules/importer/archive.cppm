// Zip archives read from memory. The library behind it is in zip.cpp alone.
module lyo.importer:archive;

import lyo.prelude;
import lyo.base;
import :support;

namespace lyo {

/// An archive in which every entry lies under one top folder; paths are below that folder.
class Archive {
  public:
    /// Reads the table of contents. Errors: bad_archive (no zip, damaged, a name twice, more than one top folder),
    /// limit_exceeded (too many entries).
    static Result<Archive> open(const Bytes& bytes);

    bool contains(std::string_view path) const;
    /// The paths that start so, sorted.
    std::vector<std::string> list(std::string_view prefix) const;
    /// An entry's bytes, 64-byte aligned, checksum verified. Errors: bad_archive (missing, damaged, encrypted),
    /// limit_exceeded, out_of_memory.
    Result<Bytes> read(std::string_view path, Budget& budget) const;

  private:
    std::shared_ptr<void> zip_;
    Bytes bytes_;
    std::map<std::string, std::uint64_t, std::less<>> entries_;
};

}  // namespace lyo
