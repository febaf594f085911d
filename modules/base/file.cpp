module;
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

module lyo.base;

import lyo.prelude;

namespace lyo {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { reset(); }
    int get() const noexcept { return fd_; }
    int reset() noexcept { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

  private:
    int fd_;
};

std::unexpected<Error> system_error(const std::string& path, std::string_view action, int code) {
    return fail(ErrorCode::file, path, "cannot ", action, ": ", std::string_view(::strerror(code)));
}

struct Opened {
    int fd;
    std::uint64_t size;
};

Result<Opened> open_regular(const std::string& path) {
    // Non-blocking, so that a FIFO given as a path is refused below and not waited for.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return system_error(path, "open", errno);
    struct stat info{};
    if (::fstat(fd, &info) != 0) {
        const int code = errno;
        ::close(fd);
        return system_error(path, "examine", code);
    }
    if (!S_ISREG(info.st_mode)) {
        ::close(fd);
        return fail(ErrorCode::file, path, "not a regular file");
    }
    return Opened{fd, static_cast<std::uint64_t>(info.st_size)};
}

}  // namespace

Result<Bytes> read_file(const std::string& path, std::uint64_t limit) {
    const auto opened = open_regular(path);
    if (!opened) return std::unexpected(opened.error());
    const Descriptor fd(opened->fd);
    if (opened->size > limit)
        return mismatch(ErrorCode::file, path, "size in bytes", cat("at most ", limit), opened->size);
    auto bytes = Bytes::make(opened->size, [&](std::span<std::byte> out) -> Result<> {
        for (std::size_t done = 0; done < out.size();) {
            const ssize_t n = ::read(fd.get(), out.data() + done, out.size() - done);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return system_error(path, "read", errno);
            if (n == 0) return fail(ErrorCode::file, path, "became shorter while it was read");
            done += static_cast<std::size_t>(n);
        }
        return {};
    });
    if (!bytes && bytes.error().where.empty()) return std::unexpected(std::move(bytes.error()).in(path));
    return bytes;
}

Result<Bytes> map_file(const std::string& path) {
    const auto opened = open_regular(path);
    if (!opened) return std::unexpected(opened.error());
    const Descriptor fd(opened->fd);
    if (opened->size == 0) return Bytes();
    const std::size_t size = opened->size;
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (address == MAP_FAILED) return system_error(path, "map", errno);
    std::shared_ptr<const void> owner(address, [size](void* p) { ::munmap(p, size); });
    return Bytes::share(std::move(owner), {static_cast<const std::byte*>(address), size});
}

Result<Bytes> load_file(const std::string& path, std::uint64_t copy_limit) {
    auto bytes = read_file(path, copy_limit);
    if (bytes) return bytes;
    auto mapped = map_file(path);
    if (!mapped || mapped->size() <= copy_limit) return bytes;
    return mapped;
}

namespace {

/// Another name beside the target with each call.
std::string name_beside(const std::string& path) {
    static std::atomic<unsigned> counter{0};
    return cat(path, ".", ::getpid(), ".", counter.fetch_add(1, std::memory_order_relaxed), ".tmp");
}

/// A file in the target's folder that has no name yet, so that a process that is killed leaves nothing behind; -1 where
/// the file system or the system has no such thing.
int open_unnamed(const std::string& path) {
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    return ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

// What a killed process of the same number left behind is passed over.
constexpr int attempts = 100;

bool give_name(int fd, const std::string& path, std::string& temporary) {
    const std::string self = cat("/proc/self/fd/", fd);
    for (int attempt = 0; attempt < attempts; ++attempt) {
        temporary = name_beside(path);
        if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
        if (errno != EEXIST) break;
    }
    temporary.clear();
    return false;
}

int open_named(const std::string& path, std::string& temporary) {
    for (int attempt = 0; attempt < attempts; ++attempt) {
        temporary = name_beside(path);
        const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/// Writes and syncs; the action that failed, with errno set, or nothing.
std::string_view fill(int fd, std::span<const std::byte> data) {
    for (std::size_t written = 0; written < data.size();) {
        const ssize_t n = ::write(fd, data.data() + written, data.size() - written);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return "write";
        written += static_cast<std::size_t>(n);
    }
    return ::fsync(fd) != 0 ? "sync" : "";
}

/// The regular file that `path` leads to, or `path` where there is none yet.
Result<std::string> destination(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return path;
    if (!S_ISREG(info.st_mode)) return fail(ErrorCode::file, path, "not a regular file");
    char* const resolved = ::realpath(path.c_str(), nullptr);
    if (resolved == nullptr) return system_error(path, "resolve", errno);
    std::string out = resolved;
    ::free(resolved);
    return out;
}

Result<> replace_file(const std::string& path, std::span<const std::byte> data) {
    std::string temporary;
    Descriptor fd(open_unnamed(path));
    if (fd.get() >= 0) {
        if (const auto failed = fill(fd.get(), data); !failed.empty()) return system_error(path, failed, errno);
        if (!give_name(fd.get(), path, temporary)) fd.reset();  // no /proc, say: the other way
    }
    if (fd.get() < 0) {
        const int opened = open_named(path, temporary);
        if (opened < 0) return system_error(path, "create a file beside it", errno);
        Descriptor named(opened);
        std::string_view failed = fill(named.get(), data);
        if (failed.empty() && named.reset() != 0) failed = "close";
        if (!failed.empty()) {
            const int code = errno;
            ::unlink(temporary.c_str());
            return system_error(path, failed, code);
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const int code = errno;
        ::unlink(temporary.c_str());
        return system_error(path, "rename", code);
    }
    return {};
}

}  // namespace

Result<> write_file(const std::string& path, std::span<const std::byte> data) {
    const auto to = destination(path);
    if (!to) return std::unexpected(to.error());
    return replace_file(*to, data);
}

}  // namespace lyo
