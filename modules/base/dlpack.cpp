module;
#include <dlpack/dlpack.h>

module lyo.base;

import lyo.prelude;

namespace lyo {
namespace {

std::optional<DType> dtype_of(DLDataType type) noexcept {
    if (type.lanes != 1) return std::nullopt;
    switch (type.code) {
        case kDLInt:
            if (type.bits == 8) return DType::i8;
            if (type.bits == 16) return DType::i16;
            if (type.bits == 32) return DType::i32;
            if (type.bits == 64) return DType::i64;
            return std::nullopt;
        case kDLUInt:
            if (type.bits == 8) return DType::u8;
            if (type.bits == 1) return DType::boolean;
            return std::nullopt;
        case kDLFloat:
            if (type.bits == 16) return DType::f16;
            if (type.bits == 32) return DType::f32;
            if (type.bits == 64) return DType::f64;
            return std::nullopt;
        case kDLBfloat:
            return type.bits == 16 ? std::optional(DType::bf16) : std::nullopt;
        // kDLBool came with DLPack 0.7; its code is 6 and the element one byte.
        case 6:
            return type.bits == 8 ? std::optional(DType::boolean) : std::nullopt;
        default:
            return std::nullopt;
    }
}

DLDataType type_of(DType dtype) noexcept {
    const auto bits = static_cast<std::uint8_t>(size_of(dtype) * 8);
    if (dtype == DType::boolean) return {6, 8, 1};
    if (dtype == DType::u8) return {kDLUInt, bits, 1};
    if (dtype == DType::bf16) return {kDLBfloat, bits, 1};
    return {static_cast<std::uint8_t>(is_float(dtype) ? kDLFloat : kDLInt), bits, 1};
}

struct Exported {
    DLManagedTensor managed{};
    Tensor tensor;
    std::array<std::int64_t, max_rank> shape{}, strides{};
};

}  // namespace

Result<Tensor> from_dlpack(DLManagedTensor* managed) try {
    if (managed == nullptr) return fail(ErrorCode::invalid_argument, "dlpack", "no tensor");
    std::shared_ptr<const void> owner(managed, [](DLManagedTensor* t) {
        if (t->deleter != nullptr) t->deleter(t);
    });
    const DLTensor& t = managed->dl_tensor;
    const auto dtype = dtype_of(t.dtype);
    if (!dtype)
        return fail(ErrorCode::invalid_argument, "dlpack", "no such dtype: code ", int{t.dtype.code}, ", bits ",
                    int{t.dtype.bits}, ", lanes ", int{t.dtype.lanes});
    if (t.ndim < 0 || static_cast<std::size_t>(t.ndim) > max_rank)
        return mismatch(ErrorCode::invalid_argument, "dlpack", "rank", cat("at most ", max_rank), t.ndim);
    if (t.device.device_type != kDLCPU && t.device.device_type != kDLCUDA)
        return mismatch(ErrorCode::invalid_argument, "dlpack", "device type", "cpu or cuda",
                        static_cast<int>(t.device.device_type));
    const auto rank = static_cast<std::size_t>(t.ndim);
    if (rank > 0 && t.shape == nullptr) return fail(ErrorCode::invalid_argument, "dlpack", "no shape");
    const Dims shape(std::span<const std::int64_t>(t.shape, rank));
    if (!element_count(shape))
        return fail(ErrorCode::invalid_argument, "dlpack", "shape ", to_string(shape), " has no size");
    const Dims strides =
        t.strides == nullptr ? contiguous_strides(shape) : Dims(std::span<const std::int64_t>(t.strides, rank));
    const Device device = t.device.device_type == kDLCPU ? Device::cpu() : Device::cuda(t.device.device_id);
    // Tensors without elements may have no address.
    const auto* data = t.data == nullptr ? nullptr : static_cast<const std::byte*>(t.data) + t.byte_offset;
    return Tensor::share(std::move(owner), data, shape, strides, *dtype, device);
} catch (const std::bad_alloc&) {
    // The tensor's deleter ran when its owner could not be made.
    return fail(ErrorCode::out_of_memory, "dlpack", "no memory for a tensor");
}

Result<DLManagedTensor*> to_dlpack(const Tensor& tensor) {
    auto* out = new (std::nothrow) Exported;
    if (out == nullptr) return fail(ErrorCode::out_of_memory, "dlpack", "cannot allocate a managed tensor");
    out->tensor = tensor;
    std::copy(tensor.shape().begin(), tensor.shape().end(), out->shape.begin());
    std::copy(tensor.strides().begin(), tensor.strides().end(), out->strides.begin());
    DLTensor& t = out->managed.dl_tensor;
    t.data = tensor.mutable_data();
    t.device = {tensor.device().type == Device::Type::cpu ? kDLCPU : kDLCUDA, tensor.device().index};
    t.ndim = static_cast<int>(tensor.rank());
    t.dtype = type_of(tensor.dtype());
    t.shape = out->shape.data();
    t.strides = out->strides.data();
    t.byte_offset = 0;
    out->managed.manager_ctx = out;
    out->managed.deleter = [](DLManagedTensor* managed) { delete static_cast<Exported*>(managed->manager_ctx); };
    return &out->managed;
}

}  // namespace lyo
