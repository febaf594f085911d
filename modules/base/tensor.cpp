module lyo.base;

import lyo.prelude;

namespace lyo {
namespace {

template <class T>
T read(const void* address) noexcept {
    T value;
    std::memcpy(&value, address, sizeof value);
    return value;
}
template <class T>
void write(void* address, T value) noexcept {
    std::memcpy(address, &value, sizeof value);
}

/// Address of the element with that row-major index.
const std::byte* element(const Tensor& tensor, std::int64_t linear) noexcept {
    std::int64_t offset = 0;
    for (std::size_t d = tensor.rank(); d-- > 0;) {
        const std::int64_t size = tensor.shape()[d];
        offset += linear % size * tensor.strides()[d];
        linear /= size;
    }
    return static_cast<const std::byte*>(tensor.data()) + offset * static_cast<std::int64_t>(size_of(tensor.dtype()));
}

void print(const Tensor& tensor, std::size_t dim, std::int64_t base, std::int64_t below, std::string& out) {
    if (dim == tensor.rank()) {
        const double value = tensor.at(base);
        if (tensor.dtype() == DType::boolean) {
            out += value != 0 ? "true" : "false";
        } else if (is_float(tensor.dtype())) {
            char text[32];
            out.append(text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.6g", value)));
        } else {
            out += std::to_string(load_int(element(tensor, base), tensor.dtype()));
        }
        return;
    }
    constexpr std::int64_t edge = 4;
    const std::int64_t size = tensor.shape()[dim];
    const std::int64_t step = size == 0 ? 0 : below / size;
    out += '[';
    for (std::int64_t i = 0; i < size; ++i) {
        if (i > 0) out += ", ";
        if (size > 2 * edge + 2 && i == edge) {
            out += "..., ";
            i = size - edge;
        }
        print(tensor, dim + 1, base + i * step, step, out);
    }
    out += ']';
}

}  // namespace

std::string to_string(const Dims& dims) {
    std::string out = "[";
    for (const std::int64_t d : dims) {
        if (out.size() > 1) out += ", ";
        out += std::to_string(d);
    }
    return out + "]";
}

Dims contiguous_strides(const Dims& shape) noexcept {
    Dims strides = shape;
    std::int64_t step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        strides[d] = step;
        step = checked_mul(step, std::max<std::int64_t>(shape[d], 1)).value_or(0);
    }
    return strides;
}

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept {
    std::int64_t count = 1;
    bool zero = false;
    for (const std::int64_t d : shape) {
        if (d < 0) return std::nullopt;
        if (d == 0) zero = true;
        const auto next = checked_mul(count, std::max<std::int64_t>(d, 1));
        if (!next) return std::nullopt;
        count = *next;
    }
    return zero ? 0 : count;
}

Result<Device> Device::parse(std::string_view text) {
    if (text == "cpu") return cpu();
    constexpr std::string_view prefix = "cuda";
    if (text == prefix) return cuda(0);
    if (text.size() > prefix.size() + 1 && text.substr(0, prefix.size()) == prefix && text[prefix.size()] == ':') {
        std::int32_t index = -1;
        const char* last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data() + prefix.size() + 1, last, index);
        if (error == std::errc{} && end == last && index >= 0) return cuda(index);
    }
    return mismatch(ErrorCode::invalid_argument, "", "device", "cpu or cuda:N", text);
}

std::string Device::to_string() const { return type == Type::cpu ? "cpu" : cat("cuda:", index); }

Tensor Tensor::share(std::shared_ptr<const void> owner, const void* data, const Dims& shape, const Dims& strides,
                     DType dtype, Device device) noexcept {
    Tensor tensor;
    tensor.owner_ = std::move(owner);
    tensor.data_ = data;
    tensor.shape_ = shape;
    tensor.strides_ = strides;
    tensor.dtype_ = dtype;
    tensor.device_ = device;
    return tensor;
}

Result<Tensor> Tensor::empty(const Dims& shape, DType dtype) {
    const auto count = element_count(shape);
    const auto bytes = count ? checked_mul(*count, static_cast<std::int64_t>(size_of(dtype))) : std::nullopt;
    if (!bytes) return fail(ErrorCode::invalid_argument, "", "shape ", lyo::to_string(shape), " has no size");
    AlignedBuffer memory = allocate_aligned(static_cast<std::size_t>(*bytes));
    if (!memory) return fail(ErrorCode::out_of_memory, "", "cannot allocate ", *bytes, " bytes");
    std::byte* data = memory.release();
    return share(std::shared_ptr<std::byte>(data, FreeAligned{}), data, shape, contiguous_strides(shape), dtype,
                 Device::cpu());
}

std::int64_t Tensor::numel() const noexcept { return element_count(shape_).value_or(0); }

bool Tensor::is_contiguous() const noexcept {
    std::int64_t step = 1;
    bool rows = true;
    for (std::size_t d = shape_.size(); d-- > 0;) {
        if (shape_[d] == 0) return true;
        if (shape_[d] != 1 && strides_[d] != step) rows = false;
        step = checked_mul(step, shape_[d]).value_or(0);
    }
    return rows;
}

Result<Tensor> Tensor::contiguous() const {
    if (device_.type != Device::Type::cpu)
        return mismatch(ErrorCode::wrong_device, "", "device", "cpu", device_.to_string());
    if (is_contiguous()) return *this;
    auto out = empty(shape_, dtype_);
    if (!out) return out;
    const std::size_t size = size_of(dtype_);
    auto* to = static_cast<std::byte*>(out->mutable_data());
    for (std::int64_t i = 0, n = numel(); i < n; ++i, to += size) std::memcpy(to, element(*this, i), size);
    return out;
}

std::string Tensor::to_string() const {
    std::string out = "tensor(";
    if (device_.type != Device::Type::cpu) {
        out += cat("shape ", lyo::to_string(shape_), " on ", device_.to_string());
    } else {
        print(*this, 0, 0, numel(), out);
    }
    return cat(out, ", ", lyo::to_string(dtype_), ")");
}

double Tensor::at(std::int64_t linear) const noexcept { return load_double(element(*this, linear), dtype_); }

std::int64_t double_to_int(double value) noexcept {
    if (!(value >= -0x1p63 && value < 0x1p63)) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(value);
}

double load_double(const void* address, DType dtype) noexcept {
    switch (dtype) {
        case DType::f16:
            return static_cast<double>(f16_to_float(read<std::uint16_t>(address)));
        case DType::bf16:
            return static_cast<double>(bf16_to_float(read<std::uint16_t>(address)));
        case DType::f32:
            return static_cast<double>(read<float>(address));
        case DType::f64:
            return read<double>(address);
        default:
            return static_cast<double>(load_int(address, dtype));
    }
}

void store_double(void* address, DType dtype, double value) noexcept {
    switch (dtype) {
        case DType::f16:
            return write(address, float_to_f16(static_cast<float>(value)));
        case DType::bf16:
            return write(address, float_to_bf16(static_cast<float>(value)));
        case DType::f32:
            return write(address, static_cast<float>(value));
        case DType::f64:
            return write(address, value);
        case DType::boolean:
            return write(address, static_cast<std::uint8_t>(value != 0));
        default:
            return store_int(address, dtype, double_to_int(value));
    }
}

std::int64_t load_int(const void* address, DType dtype) noexcept {
    switch (dtype) {
        case DType::boolean:
            return read<std::uint8_t>(address) != 0 ? 1 : 0;
        case DType::u8:
            return read<std::uint8_t>(address);
        case DType::i8:
            return read<std::int8_t>(address);
        case DType::i16:
            return read<std::int16_t>(address);
        case DType::i32:
            return read<std::int32_t>(address);
        case DType::i64:
            return read<std::int64_t>(address);
        default:
            return double_to_int(load_double(address, dtype));
    }
}

void store_int(void* address, DType dtype, std::int64_t value) noexcept {
    switch (dtype) {
        case DType::boolean:
            return write(address, static_cast<std::uint8_t>(value != 0));
        case DType::u8:
            return write(address, static_cast<std::uint8_t>(value));
        case DType::i8:
            return write(address, static_cast<std::int8_t>(value));
        case DType::i16:
            return write(address, static_cast<std::int16_t>(value));
        case DType::i32:
            return write(address, static_cast<std::int32_t>(value));
        case DType::i64:
            return write(address, value);
        default:
            return store_double(address, dtype, static_cast<double>(value));
    }
}

}  // namespace lyo
