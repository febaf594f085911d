// What the importer's parts share: a budget for bytes that a file makes lyo allocate, and the edge where exceptions
// end.
module lyo.importer:support;

import lyo.prelude;
import lyo.base;

namespace lyo {

/// Bytes that may still be made from a file. Every allocation whose size the file chose is taken from it first.
struct Budget {
    std::uint64_t left = 0;

    Result<> take(std::uint64_t bytes, std::string_view where) {
        if (bytes > left)
            return mismatch(ErrorCode::limit_exceeded, where, "bytes to unpack", cat("at most ", left, " more"), bytes);
        left -= bytes;
        return {};
    }
};

/// Runs `body`, which returns a Result, and turns what the standard library or a third party throws into an Error.
template <class Body>
std::invoke_result_t<Body> no_throw(ErrorCode code, const Body& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return std::unexpected(Error{ErrorCode::out_of_memory, "no memory left", {}});
    } catch (const std::exception& e) {
        return std::unexpected(Error{code, e.what(), {}});
    }
}

/// A view of `region` as elements of a tensor, or a copy where its address is not aligned to them. `strides` must keep
/// within the region.
inline Result<Tensor> view_or_copy(const Bytes& region, const Dims& shape, const Dims& strides, DType dtype) {
    Bytes aligned = region;
    if (reinterpret_cast<std::uintptr_t>(region.data()) % size_of(dtype) != 0) {
        auto copy = Bytes::copy(region);
        if (!copy) return std::unexpected(copy.error());
        aligned = std::move(*copy);
    }
    auto owner = std::make_shared<Bytes>(std::move(aligned));
    const void* data = owner->data();
    return Tensor::share(std::move(owner), data, shape, strides, dtype, Device::cpu());
}

/// Bytes of a row-major tensor of that shape; nullopt when the shape has no size.
inline std::optional<std::uint64_t> byte_size(const Dims& shape, DType dtype) noexcept {
    const auto count = element_count(std::span<const std::int64_t>(shape));
    const auto bytes = count ? checked_mul(*count, static_cast<std::int64_t>(size_of(dtype))) : std::nullopt;
    if (!bytes) return std::nullopt;
    return static_cast<std::uint64_t>(*bytes);
}

}  // namespace lyo
