// The file system as the local store needs it: small, without exceptions, and never waiting for another process.
module lyo.cache:files;

import lyo.prelude;
import lyo.base;

namespace lyo::files {

/// An open file.
class File {
  public:
    File() = default;
    explicit File(int fd) noexcept : fd_(fd) {}
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    File(const File&) = delete;
    ~File();
    bool is_open() const noexcept { return fd_ >= 0; }
    int fd() const noexcept { return fd_; }

  private:
    int fd_ = -1;
};

struct Status {
    std::uint64_t size = 0;
    std::uint64_t inode = 0, device = 0;
    std::uint64_t links = 0;
    std::int64_t used_ns = 0;  // time of last modification, which a hit sets
    bool is_regular = false;
};

/// Errors name the path and what the system said. `missing` is not an error: an unopened File.
Result<File> open_existing(const std::string& path);
/// Opens for reading and writing, or for reading alone where that is all that is allowed; makes it if it is missing.
Result<File> open_or_make(const std::string& path);
/// A new file that nobody else has; nullopt when the name is taken.
Result<std::optional<File>> make_new(const std::string& path);
Result<Status> status(const File& file, const std::string& path);
/// nullopt where nothing is there.
Result<std::optional<Status>> status(const std::string& path);
/// All parts, one after the other.
Result<> write(const File& file, std::initializer_list<std::span<const std::byte>> parts, const std::string& path);
/// Fills `out` from `offset` on; fails where the file is shorter.
Result<> read_at(const File& file, std::uint64_t offset, std::span<std::byte> out, const std::string& path);
Result<> write_at(const File& file, std::uint64_t offset, std::span<const std::byte> data, const std::string& path);
/// The whole regular file of this size: mapped from `map_from` bytes on, else copied. Errors: file, out_of_memory.
Result<Bytes> load(const File& file, std::uint64_t size, std::uint64_t map_from, const std::string& path);
/// Sets the time of last modification to now; whether that was allowed does not matter.
void touch(const File& file) noexcept;
/// The exclusive lock of an open file, if nobody has it. It ends with the file, or with the process, however it ends.
/// Errors: file (the file system has no locks).
Result<bool> try_lock(const File& file, const std::string& path);
Result<> rename(const std::string& from, const std::string& to);
/// Another name for a file; false when the name is taken.
Result<bool> link(const std::string& existing, const std::string& name);
/// True when it was there.
Result<bool> remove(const std::string& path);
/// The folder and those above it.
Result<> make_folders(const std::string& path);
/// Names in a folder, sorted; none where it is missing.
Result<std::vector<std::string>> list(const std::string& folder);

/// A name that no other process or thread makes.
std::string unique_name();

}  // namespace lyo::files
