// A shared, immutable region of bytes: heap memory, a mapped file, or storage that somebody else keeps.
export module lyo.base:bytes;

import lyo.prelude;
import :result;

namespace lyo {

/// Shared and immutable: copying shares, never duplicates; any thread may read; the memory lives as long as one of
/// its Bytes. Regions made by `own`, `copy` and `map` start at an address aligned to at least 64 bytes.
export class Bytes {
  public:
    Bytes() = default;

    /// A copy of `source`. Errors: out_of_memory.
    [[nodiscard]] static Result<Bytes> copy(std::span<const std::byte> source);
    /// Zeroed memory that `fill` writes once, before anybody shares it. Errors: out_of_memory, and those of `fill`.
    [[nodiscard]] static Result<Bytes> make(std::size_t size,
                                            const std::function<Result<>(std::span<std::byte>)>& fill);
    /// Memory that outlives every Bytes made from it: literals, static arrays.
    static Bytes borrow(std::span<const std::byte> permanent) noexcept;
    /// Memory kept alive by `owner`.
    static Bytes share(std::shared_ptr<const void> owner, std::span<const std::byte> region) noexcept;

    const std::byte* data() const noexcept { return region_.data(); }
    std::size_t size() const noexcept { return region_.size(); }
    bool empty() const noexcept { return region_.empty(); }
    std::span<const std::byte> span() const noexcept { return region_; }
    operator std::span<const std::byte>() const noexcept { return region_; }
    std::string_view text() const noexcept { return {reinterpret_cast<const char*>(region_.data()), region_.size()}; }
    /// A part of this region that keeps the whole alive. `offset + length` must be within size().
    Bytes slice(std::size_t offset, std::size_t length) const noexcept;

    /// Equal content. O(1) when both are the same region.
    friend bool operator==(const Bytes& a, const Bytes& b) noexcept {
        if (a.region_.size() != b.region_.size()) return false;
        return a.region_.empty() || a.region_.data() == b.region_.data() ||
               std::memcmp(a.region_.data(), b.region_.data(), a.region_.size()) == 0;
    }

  private:
    std::shared_ptr<const void> owner_;
    std::span<const std::byte> region_;
};

/// 64-byte aligned memory without initial value. Null when there is none. Freed with the pointer.
export struct FreeAligned {
    void operator()(std::byte* p) const noexcept { std::free(p); }
};
export using AlignedBuffer = std::unique_ptr<std::byte, FreeAligned>;
export AlignedBuffer allocate_aligned(std::size_t size) noexcept;

}  // namespace lyo
