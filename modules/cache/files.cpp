module;
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

module lyo.cache;

import lyo.prelude;
import lyo.base;
import :files;

namespace lyo::files {
namespace {

std::unexpected<Error> failed(const std::string& path, std::string_view action) {
    return fail(ErrorCode::file, path, "cannot ", action, ": ", std::string_view(::strerror(errno)));
}

/// Links are not followed: in a folder that several users write to, one could lead anywhere.
int open_file(const std::string& path, int flags) {
    return ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
}

Status to_status(const struct stat& info) noexcept {
    Status out;
    out.size = static_cast<std::uint64_t>(info.st_size);
    out.inode = info.st_ino;
    out.device = info.st_dev;
    out.links = info.st_nlink;
    out.used_ns = static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
    out.is_regular = S_ISREG(info.st_mode);
    return out;
}

}  // namespace

File::~File() {
    if (fd_ >= 0) ::close(fd_);
}

Result<File> open_existing(const std::string& path) {
    const int fd = open_file(path, O_RDONLY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return File();
    if (fd < 0) return failed(path, "open");
    return File(fd);
}

Result<File> open_or_make(const std::string& path) {
    int fd = open_file(path, O_RDWR | O_CREAT);
    if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) fd = open_file(path, O_RDONLY);
    if (fd < 0) return failed(path, "open");
    return File(fd);
}

Result<std::optional<File>> make_new(const std::string& path) {
    const int fd = open_file(path, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0 && errno == EEXIST) return std::optional<File>();
    if (fd < 0) return failed(path, "create");
    return std::optional<File>(File(fd));
}

Result<Status> status(const File& file, const std::string& path) {
    struct stat info{};
    if (::fstat(file.fd(), &info) != 0) return failed(path, "examine");
    return to_status(info);
}

Result<std::optional<Status>> status(const std::string& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) == 0) return std::optional<Status>(to_status(info));
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<Status>();
    return failed(path, "examine");
}

Result<> write(const File& file, std::initializer_list<std::span<const std::byte>> parts, const std::string& path) {
    std::uint64_t at = 0;
    for (const auto part : parts) {
        if (auto ok = write_at(file, at, part, path); !ok) return ok;
        at += part.size();
    }
    return {};
}

Result<> read_at(const File& file, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
    for (std::size_t done = 0; done < out.size();) {
        const ssize_t n = ::pread(file.fd(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(path, "read");
        if (n == 0) return fail(ErrorCode::truncated, path, "became shorter while it was read");
        done += static_cast<std::size_t>(n);
    }
    return {};
}

Result<> write_at(const File& file, std::uint64_t offset, std::span<const std::byte> data, const std::string& path) {
    for (std::size_t done = 0; done < data.size();) {
        const ssize_t n =
            ::pwrite(file.fd(), data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(path, "write");
        done += static_cast<std::size_t>(n);
    }
    return {};
}

Result<Bytes> load(const File& file, std::uint64_t size, std::uint64_t map_from, const std::string& path) {
    if (size == 0) return Bytes();
    if (size < map_from)
        return Bytes::make(size, [&](std::span<std::byte> out) { return read_at(file, 0, out, path); });
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (address == MAP_FAILED) return failed(path, "map");
    std::shared_ptr<const void> owner(address, [size](void* p) { ::munmap(p, size); });
    return Bytes::share(std::move(owner), {static_cast<const std::byte*>(address), size});
}

void touch(const File& file) noexcept { static_cast<void>(::futimens(file.fd(), nullptr)); }

Result<bool> try_lock(const File& file, const std::string& path) {
    int status = 0;
    do status = ::flock(file.fd(), LOCK_EX | LOCK_NB);
    while (status != 0 && errno == EINTR);
    if (status == 0) return true;
    if (errno == EWOULDBLOCK) return false;
    return failed(path, "lock");
}

Result<> rename(const std::string& from, const std::string& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) return failed(to, cat("rename ", from, " to it"));
    return {};
}

Result<bool> link(const std::string& existing, const std::string& name) {
    if (::link(existing.c_str(), name.c_str()) == 0) return true;
    if (errno == EEXIST) return false;
    return failed(name, cat("link ", existing, " to it"));
}

Result<bool> remove(const std::string& path) {
    if (::unlink(path.c_str()) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return failed(path, "remove");
}

Result<> make_folders(const std::string& path) {
    if (::mkdir(path.c_str(), 0777) == 0) return {};
    if (errno == ENOENT) {
        const auto slash = path.find_last_not_of('/') == std::string::npos
                               ? std::string::npos
                               : path.rfind('/', path.find_last_not_of('/'));
        if (slash == std::string::npos || slash == 0) return failed(path, "create the folder");
        if (auto ok = make_folders(path.substr(0, slash)); !ok) return ok;
        if (::mkdir(path.c_str(), 0777) == 0) return {};
    }
    const int code = errno;
    struct stat info{};
    if (code == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    errno = code == EEXIST ? ENOTDIR : code;
    return failed(path, "create the folder");
}

Result<std::vector<std::string>> list(const std::string& folder) {
    std::vector<std::string> out;
    DIR* const open = ::opendir(folder.c_str());
    if (open == nullptr && (errno == ENOENT || errno == ENOTDIR)) return out;
    if (open == nullptr) return failed(folder, "list");
    const std::unique_ptr<DIR, int (*)(DIR*)> closer(open, ::closedir);
    for (;;) {
        errno = 0;
        const dirent* const entry = ::readdir(open);
        if (entry == nullptr && errno != 0) return failed(folder, "list");
        if (entry == nullptr) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") out.emplace_back(name);
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::string unique_name() {
    // A process number alone comes back, and machines that share a folder have the same ones.
    static const std::uint64_t start = [] {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    }();
    static std::atomic<std::uint64_t> counter{0};
    return cat(::getpid(), "-", start, "-", counter.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace lyo::files
