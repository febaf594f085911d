// What the CUDA backend's bodies share. Runtime types are held as the pointers that they are.
module;
#include <cuda_runtime_api.h>

module lyo.kernel:cuda_state;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :cpu;
import :cuda;

namespace lyo {

/// The runtime's error as lyo's; `what` says what was tried.
std::unexpected<Error> cuda_error(cudaError_t status, std::string_view where, std::string_view what);

/// The device is current while this lives; the caller's is again afterwards.
class CurrentDevice {
  public:
    explicit CurrentDevice(int index) noexcept : index_(index) {
        if (cudaGetDevice(&before_) != cudaSuccess) before_ = index;
        if (before_ != index) cudaSetDevice(index);
    }
    ~CurrentDevice() {
        if (before_ != index_) cudaSetDevice(before_);
    }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

  private:
    int index_, before_ = 0;
};

/// Device memory that is freed with it.
class DeviceMemory {
  public:
    DeviceMemory() = default;
    DeviceMemory(DeviceMemory&& other) noexcept
        : device_(other.device_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    DeviceMemory& operator=(DeviceMemory&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~DeviceMemory();
    /// At least so many bytes, aligned to 256; what it held is lost when it grows. Errors: out_of_memory.
    [[nodiscard]] Result<> reserve(int device, std::uint64_t bytes);
    std::byte* data() const noexcept { return data_; }
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    int device_ = 0;
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

struct CudaImage::State {
    int device = 0;
    Bytes code;  // the driver may read it as long as the library lives
    cudaLibrary_t loaded = nullptr;
    DeviceMemory constants;
    std::vector<std::uint64_t> constant_offsets;
};

/// Each launch with its kernel; a product has none.
struct CudaProgram::State {
    const DeviceProgram* program = nullptr;
    std::shared_ptr<const CudaImage> image;
    std::vector<cudaKernel_t> kernels;  // one per step
    CallLimits limits;
    bool uses_library = false;
};

/// A word of a launch's parameter that is an address known only at the call.
struct AddressPatch {
    std::uint32_t word = 0;
    Space space = Space::input;
    std::uint32_t index = 0;
    std::uint64_t offset = 0;
};

struct PreparedLaunch {
    cudaKernel_t kernel = nullptr;
    std::string_view name;
    unsigned blocks = 0, threads = 0;
    std::vector<std::uint64_t> words;
    std::vector<AddressPatch> patches;
};

/// A product resolved for its sizes; what cuBLASLt wants is in product.cpp.
struct PreparedProduct {
    std::shared_ptr<void> plan;
    std::array<std::uint64_t, 3> addresses{};  // a, b, c, where they are known
    std::vector<AddressPatch> patches;         // word 0, 1, 2: a, b, c
};

using PreparedDeviceStep = std::variant<PreparedLaunch, PreparedProduct>;

struct CudaWorkspace::State {
    const void* program = nullptr;
    int device = 0;
    std::vector<std::int64_t> symbols, exprs;
    std::vector<Dims> input_shapes, output_shapes;
    std::vector<PreparedDeviceStep> steps;
    std::vector<std::uint64_t> slot_offsets;
    DeviceMemory slots, product_memory;
    std::vector<DeviceMemory> packed, staged;  // row-major copies of inputs; aligned stand-ins for outputs
    std::vector<std::uint64_t> inputs, outputs;
    cudaEvent_t done = nullptr;
    Stream stream;
    bool in_use = false;  // memory of this workspace is read or written by work of `stream`

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State();
};

/// Workspace bytes that products may use.
inline constexpr std::uint64_t product_workspace_bytes = std::uint64_t{32} << 20;
/// Errors: no_image (cuBLASLt is not there), device (it has no algorithm).
Result<std::shared_ptr<void>> prepare_product(const Product& product, std::span<const std::int64_t> exprs, int device);
Result<> run_product(const std::shared_ptr<void>& plan, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                     void* workspace, Stream stream);

}  // namespace lyo
