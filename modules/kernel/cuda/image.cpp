// Code and constants on the device.
module;
#include <cuda_runtime_api.h>

module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :cuda_state;

namespace lyo {
namespace {

/// Host memory to the device through a ring of pinned parts: threads fill one part while others are on their way. From
/// pageable memory, the driver alone reaches a tenth of the bus.
class Upload {
  public:
    static constexpr std::size_t part_bytes = std::size_t{4} << 20, parts = 6;

    ~Upload() {
        if (stream_ != nullptr) cudaStreamSynchronize(stream_);
        for (cudaEvent_t event : events_)
            if (event != nullptr) cudaEventDestroy(event);
        if (stream_ != nullptr) cudaStreamDestroy(stream_);
        if (pinned_ != nullptr) cudaFreeHost(pinned_);
    }

    Result<> begin() {
        auto status = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
        if (status == cudaSuccess) status = cudaHostAlloc(&pinned_, part_bytes * parts, cudaHostAllocDefault);
        for (cudaEvent_t& event : events_)
            if (status == cudaSuccess) status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        if (status != cudaSuccess) return cuda_error(status, "constants", "no pinned memory to upload through");
        return {};
    }

    Result<> copy(std::byte* to, std::span<const std::byte> from) {
        for (std::size_t at = 0; at < from.size(); at += part_bytes) {
            const std::size_t count = std::min(part_bytes, from.size() - at);
            std::byte* part = static_cast<std::byte*>(pinned_) + next_ * part_bytes;
            if (auto status = cudaEventSynchronize(events_[next_]); status != cudaSuccess)
                return cuda_error(status, "constants", "an upload failed");
            fill(part, from.subspan(at, count));
            auto status = cudaMemcpyAsync(to + at, part, count, cudaMemcpyHostToDevice, stream_);
            if (status == cudaSuccess) status = cudaEventRecord(events_[next_], stream_);
            if (status != cudaSuccess) return cuda_error(status, "constants", "an upload failed");
            next_ = (next_ + 1) % parts;
        }
        return {};
    }

    Result<> finish() {
        if (const auto status = cudaStreamSynchronize(stream_); status != cudaSuccess)
            return cuda_error(status, "constants", "an upload failed");
        return {};
    }

  private:
    /// One part, by several threads: one core copies slower than the bus takes.
    void fill(std::byte* to, std::span<const std::byte> from) {
        constexpr std::size_t least = std::size_t{512} << 10;
        const std::size_t workers = std::clamp<std::size_t>(
            std::min<std::size_t>(from.size() / least, std::thread::hardware_concurrency()), 1, 8);
        const std::size_t share = (from.size() + workers - 1) / workers;
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < workers; ++i)
            threads.emplace_back([=] {
                const std::size_t begin = std::min(from.size(), i * share), end = std::min(from.size(), begin + share);
                std::memcpy(to + begin, from.data() + begin, end - begin);
            });
        std::memcpy(to, from.data(), std::min(share, from.size()));
    }

    cudaStream_t stream_ = nullptr;
    void* pinned_ = nullptr;
    std::array<cudaEvent_t, parts> events_{};
    std::size_t next_ = 0;
};

Result<> upload_constants(CudaImage::State& state, std::span<const Bytes> constants) {
    std::uint64_t total = 0;
    constexpr std::uint64_t alignment = 256;
    for (const Bytes& c : constants) {
        const auto start = checked_align(total, alignment);
        const auto end = start ? checked_add(*start, static_cast<std::uint64_t>(c.size())) : std::nullopt;
        if (!end) return fail(ErrorCode::out_of_memory, "constants", "their sizes do not fit in 64 bits");
        state.constant_offsets.push_back(*start);
        total = *end;
    }
    if (total == 0) return {};
    if (auto ok = state.constants.reserve(state.device, total); !ok)
        return std::unexpected(std::move(ok.error()).in("constants"));
    // Few small ones go as one block, which costs one call; large ones through the ring.
    constexpr std::uint64_t small = std::uint64_t{1} << 20;
    if (total <= small) {
        std::vector<std::byte> block(total);
        for (std::size_t i = 0; i < constants.size(); ++i)
            if (!constants[i].empty())
                std::memcpy(block.data() + state.constant_offsets[i], constants[i].data(), constants[i].size());
        const auto status = cudaMemcpy(state.constants.data(), block.data(), total, cudaMemcpyHostToDevice);
        if (status != cudaSuccess) return cuda_error(status, "constants", "an upload failed");
        return {};
    }
    Upload upload;
    if (auto ok = upload.begin(); !ok) return ok;
    for (std::size_t i = 0; i < constants.size(); ++i)
        if (auto ok = upload.copy(state.constants.data() + state.constant_offsets[i], constants[i]); !ok) return ok;
    return upload.finish();
}

}  // namespace

CudaImage::CudaImage(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

CudaImage::~CudaImage() {
    const CurrentDevice current(state_->device);
    if (state_->library != nullptr) cudaLibraryUnload(state_->library);
}

Result<std::shared_ptr<const CudaImage>> CudaImage::load(Device device, const Bytes& code,
                                                         std::span<const Bytes> constants) {
    int count = 0;
    if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess)
        return fail(ErrorCode::no_device, device.to_string(), cudaGetErrorString(status));
    if (device.index < 0 || device.index >= count)
        return fail(ErrorCode::no_device, device.to_string(), "this machine has ", count,
                    count == 1 ? " CUDA device" : " CUDA devices");
    const CurrentDevice current(device.index);
    auto state = std::make_unique<State>();
    state->device = device.index;
    state->code = code;
    // The image stays where it is: `code` keeps it alive longer than the library.
    cudaLibraryOption options[] = {cudaLibraryBinaryIsPreserved};
    bool preserved = true;
    void* values[] = {&preserved};
    const auto status = cudaLibraryLoadData(&state->library, code.data(), nullptr, nullptr, 0, options, values, 1);
    if (status != cudaSuccess) {
        cudaGetLastError();
        auto error = cuda_error(status, device.to_string(), "the driver refuses the code");
        if (error.error().code == ErrorCode::device)
            return fail(ErrorCode::no_image, error.error().where, error.error().what);
        return error;
    }
    std::shared_ptr<CudaImage> image(new CudaImage(std::move(state)));
    if (auto ok = upload_constants(*image->state_, constants); !ok)
        return std::unexpected(std::move(ok.error()).in(device.to_string()));
    return std::shared_ptr<const CudaImage>(std::move(image));
}

CudaProgram::CudaProgram(const FunctionSpec& function, std::shared_ptr<const State> state) noexcept
    : function_(&function), state_(std::move(state)) {}

Result<CudaProgram> CudaProgram::make(const DeviceProgram& program, const FunctionSpec& function,
                                      std::shared_ptr<const CudaImage> image, CallLimits limits) {
    auto state = std::make_shared<State>();
    state->program = &program;
    state->limits = limits;
    const CurrentDevice current(image->state().device);
    for (const DeviceStep& step : program.steps) {
        cudaKernel_t kernel = nullptr;
        if (const auto* launch = std::get_if<Launch>(&step)) {
            if (const auto status = cudaLibraryGetKernel(&kernel, image->state().library, launch->kernel.c_str());
                status != cudaSuccess) {
                cudaGetLastError();
                return fail(ErrorCode::no_image, function.name, "the code has no kernel ", launch->kernel, ": ",
                            cudaGetErrorString(status));
            }
        } else {
            state->uses_library = true;
        }
        state->kernels.push_back(kernel);
    }
    state->image = std::move(image);
    return CudaProgram(function, std::move(state));
}

}  // namespace lyo
