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

/// Host memory to the device through pinned memory: from pageable memory, the driver alone reaches a tenth of the bus.
/// Several workers, since one core copies slower than the bus takes; each fills one of its two parts while the other is
/// on its way.
class Upload {
  public:
    static constexpr std::size_t part_bytes = std::size_t{2} << 20;

    struct Piece {
        std::byte* to;
        std::span<const std::byte> from;
    };

    Upload(int device, std::span<const Piece> pieces) : device_(device) {
        for (const Piece& piece : pieces)
            for (std::size_t at = 0; at < piece.from.size(); at += part_bytes)
                parts_.push_back({piece.to + at, piece.from.subspan(at, std::min(part_bytes, piece.from.size() - at))});
    }

    Result<> run() {
        const std::size_t cores = std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
        const std::size_t workers = std::clamp<std::size_t>(std::min(cores, parts_.size() / 2), 1, 8);
        {
            std::vector<std::jthread> threads;
            try {
                for (std::size_t i = 1; i < workers; ++i) threads.emplace_back([this] { work(); });
            } catch (const std::exception&) {
                // No more threads are to be had: those that there are do it.
            }
            work();
        }
        if (error_) return std::unexpected(*error_);
        return {};
    }

  private:
    /// What one worker needs of the runtime.
    struct Lane {
        cudaStream_t stream = nullptr;
        void* pinned = nullptr;
        std::array<cudaEvent_t, 2> events{};

        cudaError_t open() {
            auto status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            if (status == cudaSuccess) status = cudaHostAlloc(&pinned, 2 * part_bytes, cudaHostAllocDefault);
            for (cudaEvent_t& event : events)
                if (status == cudaSuccess) status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
            return status;
        }
        Lane() = default;
        Lane(const Lane&) = delete;
        Lane& operator=(const Lane&) = delete;
        ~Lane() {
            if (stream != nullptr) cudaStreamSynchronize(stream);
            for (cudaEvent_t event : events)
                if (event != nullptr) cudaEventDestroy(event);
            if (stream != nullptr) cudaStreamDestroy(stream);
            if (pinned != nullptr) cudaFreeHost(pinned);
        }
    };

    void work() {
        const CurrentDevice current(device_);
        Lane lane;
        auto status = lane.open();
        for (std::size_t turn = 0; status == cudaSuccess; ++turn) {
            const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
            if (i >= parts_.size()) {
                status = cudaStreamSynchronize(lane.stream);
                break;
            }
            const Piece& part = parts_[i];
            const std::size_t side = turn % 2;
            std::byte* pinned = static_cast<std::byte*>(lane.pinned) + side * part_bytes;
            status = cudaEventSynchronize(lane.events[side]);
            if (status != cudaSuccess) break;
            std::memcpy(pinned, part.from.data(), part.from.size());
            status = cudaMemcpyAsync(part.to, pinned, part.from.size(), cudaMemcpyHostToDevice, lane.stream);
            if (status == cudaSuccess) status = cudaEventRecord(lane.events[side], lane.stream);
        }
        if (status == cudaSuccess) return;
        const std::lock_guard lock(mutex_);
        error_ = cuda_error(status, "constants", "an upload failed").error();
    }

    int device_;
    std::vector<Piece> parts_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::optional<Error> error_;
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
    // Few small ones go as one block, which costs one call; large ones through pinned parts.
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
    std::vector<Upload::Piece> pieces;
    for (std::size_t i = 0; i < constants.size(); ++i)
        pieces.push_back({state.constants.data() + state.constant_offsets[i], constants[i]});
    return Upload(state.device, pieces).run();
}

}  // namespace

CudaImage::CudaImage(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

CudaImage::~CudaImage() {
    const CurrentDevice current(state_->device);
    if (state_->loaded != nullptr) cudaLibraryUnload(state_->loaded);
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
    const auto status = cudaLibraryLoadData(&state->loaded, code.data(), nullptr, nullptr, 0, options, values, 1);
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
            if (const auto status = cudaLibraryGetKernel(&kernel, image->state().loaded, launch->kernel.c_str());
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
