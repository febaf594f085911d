module;
#include <fcntl.h>
#include <stdio.h>
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

Result<> write_file(const std::string& path, std::span<const std::byte> data) {
    // A name of our own beside the target; O_EXCL passes over what a killed process of the same number left behind.
    static std::atomic<unsigned> counter{0};
    std::string temporary;
    int opened = -1;
    for (int attempt = 0; opened < 0 && attempt < 100; ++attempt) {
        temporary = cat(path, ".", ::getpid(), ".", counter.fetch_add(1, std::memory_order_relaxed), ".tmp");
        opened = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (opened < 0 && errno != EEXIST) break;
    }
    if (opened < 0) return system_error(path, "create a file beside it", errno);
    Descriptor fd(opened);
    const auto give_up = [&](std::string_view action) {
        const int code = errno;
        ::unlink(temporary.c_str());
        return system_error(path, action, code);
    };
    for (std::size_t done = 0; done < data.size();) {
        const ssize_t n = ::write(fd.get(), data.data() + done, data.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return give_up("write");
        done += static_cast<std::size_t>(n);
    }
    if (::fsync(fd.get()) != 0) return give_up("sync");
    if (fd.reset() != 0) return give_up("close");
    if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("rename");
    return {};
}

}  // namespace lyo
