// The CUDA backend: images loaded through the CUDA runtime, constants resident, plans launched on the caller's stream.
// A build without LYO_CUDA has the same interface, and says so when it is asked for anything.
export module lyo.kernel:cuda;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :cpu;

namespace lyo {

/// A queue of work on a CUDA device: a cudaStream_t. Null is the device's default stream.
export struct Stream {
    void* handle = nullptr;
    friend bool operator==(const Stream&, const Stream&) = default;
};

export struct CudaDevice {
    int index = 0;
    std::string name;
    int major = 0, minor = 0;  ///< compute capability
    std::uint64_t bytes = 0;   ///< of memory
};
/// The devices of this machine; no context is made. Errors: no_device (no driver, no device, a build without CUDA).
export [[nodiscard]] Result<std::vector<CudaDevice>> cuda_devices();

/// The target whose code runs on a device of this compute capability: a cubin of its architecture, else one of the same
/// major version and a lower minor, else PTX (which the driver compiles at load) if `allow_jit`. Errors: no_image,
/// which says what there is.
export [[nodiscard]] Result<std::string> choose_cuda_target(std::span<const std::string> targets, int major, int minor,
                                                            bool allow_jit);

/// A row-major copy on the device, ready when this returns. Errors: no_device, wrong_device (the tensor is not on the
/// CPU), out_of_memory, device.
export [[nodiscard]] Result<Tensor> copy_to_device(const Tensor& tensor, Device device);
/// A copy of a row-major tensor on the CPU, after all work of the stream. Errors: wrong_device, out_of_memory, device
/// (also of kernels that ran before).
export [[nodiscard]] Result<Tensor> copy_to_cpu(const Tensor& tensor, Stream stream = {});
/// Waits for the stream. Errors: device, of any kernel that ran before.
export [[nodiscard]] Result<> synchronize(Device device, Stream stream = {});
/// Fresh device memory, freed in the stream's order when the last view goes: the stream must outlive it.
export [[nodiscard]] Result<Tensor> empty_on_device(const Dims& shape, DType dtype, Device device, Stream stream = {});

/// Code and constants on one device, shared by the plans that use them. The bytes given stay alive with it.
export class CudaImage {
  public:
    /// `kernels` are loaded at once, or each at its first launch. Errors: no_device, no_image (code that the driver
    /// refuses), out_of_memory, device.
    [[nodiscard]] static Result<std::shared_ptr<const CudaImage>> load(Device device, const Bytes& code,
                                                                       std::span<const Bytes> constants);
    ~CudaImage();
    CudaImage(const CudaImage&) = delete;
    CudaImage& operator=(const CudaImage&) = delete;

    struct State;  ///< for this crate's bodies
    const State& state() const noexcept { return *state_; }

  private:
    explicit CudaImage(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

/// A plan on a CUDA device: immutable; any number of workspaces may run it at once.
export class CudaProgram {
  public:
    /// Plan and function belong to a validated artifact that outlives the program. Errors: no_image (a kernel that the
    /// code does not have).
    [[nodiscard]] static Result<CudaProgram> make(const DeviceProgram& program, const FunctionSpec& function,
                                                  std::shared_ptr<const CudaImage> image, CallLimits limits);
    const FunctionSpec& function() const noexcept { return *function_; }

    struct State;  ///< for this crate's bodies
    const State& state() const noexcept { return *state_; }

  private:
    CudaProgram(const FunctionSpec& function, std::shared_ptr<const State> state) noexcept;
    const FunctionSpec* function_;
    std::shared_ptr<const State> state_;
};

/// The memory and the launches of one call at a time, kept from call to call. A call returns before its work is done;
/// one on another stream waits, on the device, for the work before it.
export class CudaWorkspace {
  public:
    CudaWorkspace();
    CudaWorkspace(CudaWorkspace&&) noexcept;
    ~CudaWorkspace();

    /// Resolves the plan for these symbol values. Errors: bad_value, limit_exceeded.
    [[nodiscard]] Result<> prepare(const CudaProgram& program, std::span<const std::int64_t> symbols);
    /// Enqueues the prepared plan. Inputs of any strides and alignment; outputs row-major. Errors: out_of_memory,
    /// device (names the kernel), no_image (a plan that needs cuBLASLt, which is not there).
    [[nodiscard]] Result<> run(const CudaProgram& program, std::span<const Tensor> inputs,
                               std::span<const Tensor> outputs, Stream stream);
    std::span<const Dims> output_shapes() const noexcept;

    struct State;  ///< for this crate's bodies

  private:
    std::unique_ptr<State> state_;
};

}  // namespace lyo
