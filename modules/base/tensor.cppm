// Shapes, devices, and tensors as views: an address, a shape, strides.
export module lyo.base:tensor;

import lyo.prelude;
import :result;
import :checked;
import :bytes;
import :dtype;

namespace lyo {

/// Highest number of dimensions of any tensor.
export inline constexpr std::size_t max_rank = 8;

/// A short list of sizes or strides, held in place: at most `max_rank` numbers.
export class Dims {
  public:
    constexpr Dims() = default;
    constexpr Dims(std::initializer_list<std::int64_t> values) noexcept {
        for (const std::int64_t v : values) push_back(v);
    }
    constexpr explicit Dims(std::span<const std::int64_t> values) noexcept {
        for (const std::int64_t v : values) push_back(v);
    }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr std::int64_t operator[](std::size_t i) const noexcept { return values_[i]; }
    constexpr std::int64_t& operator[](std::size_t i) noexcept { return values_[i]; }
    constexpr const std::int64_t* begin() const noexcept { return values_.data(); }
    constexpr const std::int64_t* end() const noexcept { return values_.data() + size_; }
    constexpr operator std::span<const std::int64_t>() const noexcept { return {values_.data(), size_}; }
    /// Numbers beyond `max_rank` are dropped: check the count before where it is not known.
    constexpr void push_back(std::int64_t v) noexcept {
        if (size_ < max_rank) values_[size_++] = v;
    }
    friend constexpr bool operator==(const Dims& a, const Dims& b) noexcept {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

  private:
    std::array<std::int64_t, max_rank> values_{};
    std::uint8_t size_ = 0;
};

/// "[2, 3]".
export std::string to_string(const Dims& dims);
/// Row-major strides in elements. Dimensions of size 0 count as 1.
export Dims contiguous_strides(const Dims& shape) noexcept;
/// Product of the sizes; nullopt when negative sizes or an overflow make it meaningless.
export std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept;

/// Where data lives.
export struct Device {
    enum class Type : std::uint8_t { cpu, cuda };
    Type type = Type::cpu;
    std::int32_t index = 0;

    static constexpr Device cpu() noexcept { return {}; }
    static constexpr Device cuda(std::int32_t index) noexcept { return {Type::cuda, index}; }
    /// "cpu" or "cuda:N". Errors: invalid_argument.
    [[nodiscard]] static Result<Device> parse(std::string_view text);
    std::string to_string() const;
    friend bool operator==(const Device&, const Device&) = default;
};

/// A strided view of elements in memory that it borrows or shares. Copying a Tensor never copies elements.
export class Tensor {
  public:
    Tensor() = default;

    /// A row-major view of memory that the caller keeps alive and that is as large as the shape says.
    static Tensor borrow(const void* data, const Dims& shape, DType dtype, Device device = Device::cpu()) noexcept {
        return borrow(data, shape, contiguous_strides(shape), dtype, device);
    }
    /// A view with any strides, in elements; negative and zero ones included. `data` is the element at index 0.
    static Tensor borrow(const void* data, const Dims& shape, const Dims& strides, DType dtype,
                         Device device = Device::cpu()) noexcept {
        return share(nullptr, data, shape, strides, dtype, device);
    }
    /// A view of memory that `owner` keeps alive.
    static Tensor share(std::shared_ptr<const void> owner, const void* data, const Dims& shape, const Dims& strides,
                        DType dtype, Device device) noexcept;
    /// Fresh, 64-byte aligned, row-major CPU memory without initial values. Errors: out_of_memory,
    /// invalid_argument (a shape without a size).
    [[nodiscard]] static Result<Tensor> empty(const Dims& shape, DType dtype);

    const void* data() const noexcept { return data_; }
    /// For whoever owns the memory; a borrowed input may be read-only.
    void* mutable_data() const noexcept { return const_cast<void*>(data_); }
    const Dims& shape() const noexcept { return shape_; }
    const Dims& strides() const noexcept { return strides_; }
    std::size_t rank() const noexcept { return shape_.size(); }
    DType dtype() const noexcept { return dtype_; }
    Device device() const noexcept { return device_; }
    /// Number of elements.
    std::int64_t numel() const noexcept;
    /// Elements follow one another in row-major order; dimensions of size 1 do not count.
    bool is_contiguous() const noexcept;
    /// A row-major tensor with the same elements: this one if it is, else a copy. CPU only.
    /// Errors: out_of_memory, wrong_device.
    [[nodiscard]] Result<Tensor> contiguous() const;

    /// "tensor([[1, 2], [3, 4]], f32)"; long dimensions are shortened. CPU only.
    std::string to_string() const;
    /// The element at a linear row-major index, as a double. CPU only.
    double at(std::int64_t linear) const noexcept;

  private:
    std::shared_ptr<const void> owner_;
    const void* data_ = nullptr;
    Dims shape_, strides_;
    DType dtype_ = DType::f32;
    Device device_;
};

/// One element at `address`, as a double, and back (rounding to the dtype).
export double load_double(const void* address, DType dtype) noexcept;
export void store_double(void* address, DType dtype, double value) noexcept;
/// One element at `address` as an integer (floats truncate), and back (wrapping to the dtype's width).
export std::int64_t load_int(const void* address, DType dtype) noexcept;
export void store_int(void* address, DType dtype, std::int64_t value) noexcept;
/// A double as an int64: truncated; NaN and values out of range give the lowest int64, as x86 processors do.
export std::int64_t double_to_int(double value) noexcept;

}  // namespace lyo
