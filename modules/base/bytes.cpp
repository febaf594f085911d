module lyo.base;

import lyo.prelude;

namespace lyo {

AlignedBuffer allocate_aligned(std::size_t size) noexcept {
    constexpr std::size_t alignment = 64;
    if (size > std::numeric_limits<std::size_t>::max() - alignment) return nullptr;
    const std::size_t rounded = std::max((size + alignment - 1) & ~(alignment - 1), alignment);
    return AlignedBuffer(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
}

Result<Bytes> Bytes::make(std::size_t size, const std::function<Result<>(std::span<std::byte>)>& fill) {
    AlignedBuffer memory = allocate_aligned(size);
    if (!memory) return fail(ErrorCode::out_of_memory, "", "cannot allocate ", size, " bytes");
    std::memset(memory.get(), 0, size);
    const std::span<std::byte> region(memory.get(), size);
    if (auto filled = fill(region); !filled) return std::unexpected(std::move(filled).error());
    return share(std::shared_ptr<std::byte>(memory.release(), FreeAligned{}), region);
}

Result<Bytes> Bytes::copy(std::span<const std::byte> source) {
    return make(source.size(), [&](std::span<std::byte> out) -> Result<> {
        if (!source.empty()) std::memcpy(out.data(), source.data(), source.size());
        return {};
    });
}

Bytes Bytes::borrow(std::span<const std::byte> permanent) noexcept { return share(nullptr, permanent); }

Bytes Bytes::share(std::shared_ptr<const void> owner, std::span<const std::byte> region) noexcept {
    Bytes bytes;
    bytes.owner_ = std::move(owner);
    bytes.region_ = region;
    return bytes;
}

Bytes Bytes::slice(std::size_t offset, std::size_t length) const noexcept {
    return share(owner_, region_.subspan(offset, length));
}

}  // namespace lyo
