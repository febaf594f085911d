// Files: read whole, map, and replace in one step.
export module lyo.base:file;

import lyo.prelude;
import :result;
import :bytes;

namespace lyo {

/// The file's content, copied: immune to later changes of the file. Errors: file (not there, not a regular file, not
/// readable, larger than `limit` bytes), out_of_memory.
export [[nodiscard]] Result<Bytes> read_file(const std::string& path, std::uint64_t limit = std::uint64_t{1} << 40);

/// The file's content, mapped. The file must not be changed in place while the region lives; unlinking or replacing
/// it is harmless. Errors: file.
export [[nodiscard]] Result<Bytes> map_file(const std::string& path);

/// Small files copied, and so immune to changes in place; larger ones mapped. Errors: those of the two above.
export [[nodiscard]] Result<Bytes> load_file(const std::string& path,
                                             std::uint64_t copy_limit = std::uint64_t{64} << 20);

/// Writes `data` beside `path`, syncs, and renames over `path`: readers see the old file or the new one, and a
/// failure leaves the old one. A link is followed: the file it leads to is replaced. Errors: file (also for a path that
/// leads to a folder, a device, a pipe or a socket, which a rename would destroy).
export [[nodiscard]] Result<> write_file(const std::string& path, std::span<const std::byte> data);

}  // namespace lyo
