// Devices, memory, copies.
module;
#include <cuda_runtime_api.h>

module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :cuda_state;

namespace lyo {
namespace {

/// One pool a device, which keeps what is freed: an allocation is then a fraction of a microsecond.
class Pools {
  public:
    Result<cudaMemPool_t> of(int device) {
        const std::lock_guard lock(mutex_);
        const auto at = pools_.find(device);
        if (at != pools_.end()) return at->second;
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        cudaMemPool_t pool = nullptr;
        if (const auto status = cudaMemPoolCreate(&pool, &properties); status != cudaSuccess)
            return cuda_error(status, "cuda", "no memory pool");
        std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
        pools_.emplace(device, pool);
        return pool;
    }

  private:
    std::mutex mutex_;
    std::map<int, cudaMemPool_t> pools_;
};

Pools& pools() {
    // Never destroyed: the driver may be gone by then.
    static Pools& instance = *new Pools;
    return instance;
}

Result<> check_device(Device device) {
    int count = 0;
    const auto status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return fail(ErrorCode::no_device, device.to_string(), cudaGetErrorString(status));
    if (device.type != Device::Type::cuda || device.index < 0 || device.index >= count)
        return fail(ErrorCode::no_device, device.to_string(), "this machine has ", count,
                    count == 1 ? " CUDA device" : " CUDA devices");
    return {};
}

}  // namespace

std::unexpected<Error> cuda_error(cudaError_t status, std::string_view where, std::string_view what) {
    ErrorCode code = ErrorCode::device;
    if (status == cudaErrorMemoryAllocation) code = ErrorCode::out_of_memory;
    if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver || status == cudaErrorInvalidDevice)
        code = ErrorCode::no_device;
    return fail(code, where, what, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
}

Result<std::vector<CudaDevice>> cuda_devices() {
    int count = 0;
    if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess)
        return fail(ErrorCode::no_device, "cuda", cudaGetErrorString(status));
    std::vector<CudaDevice> out;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp properties{};
        if (const auto status = cudaGetDeviceProperties(&properties, i); status != cudaSuccess)
            return cuda_error(status, "cuda", "no properties of a device");
        out.push_back({i, properties.name, properties.major, properties.minor, properties.totalGlobalMem});
    }
    if (out.empty()) return fail(ErrorCode::no_device, "cuda", "this machine has no CUDA device");
    return out;
}

DeviceMemory::~DeviceMemory() {
    if (data_ == nullptr) return;
    const CurrentDevice current(device_);
    cudaFree(data_);
}

Result<> DeviceMemory::reserve(int device, std::uint64_t bytes) {
    if (bytes <= bytes_) return {};
    DeviceMemory old = std::move(*this);
    const CurrentDevice current(device);
    void* data = nullptr;
    if (const auto status = cudaMalloc(&data, bytes); status != cudaSuccess) {
        cudaGetLastError();
        return cuda_error(status, "cuda", cat("cannot allocate ", bytes, " bytes"));
    }
    device_ = device;
    data_ = static_cast<std::byte*>(data);
    bytes_ = bytes;
    return {};
}

Result<Tensor> empty_on_device(const Dims& shape, DType dtype, Device device, Stream stream) {
    const auto count = element_count(std::span<const std::int64_t>(shape));
    const auto bytes = count ? checked_mul(*count, static_cast<std::int64_t>(size_of(dtype))) : std::nullopt;
    if (!bytes) return fail(ErrorCode::invalid_argument, "cuda", "shape ", to_string(shape), " has no size");
    if (*bytes == 0) return Tensor::share(nullptr, nullptr, shape, contiguous_strides(shape), dtype, device);
    const CurrentDevice current(device.index);
    const auto pool = pools().of(device.index);
    if (!pool) return std::unexpected(pool.error());
    void* data = nullptr;
    const auto queue = static_cast<cudaStream_t>(stream.handle);
    if (const auto status = cudaMallocFromPoolAsync(&data, static_cast<std::size_t>(*bytes), *pool, queue);
        status != cudaSuccess) {
        cudaGetLastError();
        return cuda_error(status, device.to_string(), cat("cannot allocate ", *bytes, " bytes"));
    }
    std::shared_ptr<const void> owner(data, [queue, index = device.index](void* p) {
        const CurrentDevice device_of_memory(index);
        cudaFreeAsync(p, queue);
    });
    return Tensor::share(std::move(owner), data, shape, contiguous_strides(shape), dtype, device);
}

Result<Tensor> copy_to_device(const Tensor& tensor, Device device) {
    if (tensor.device() != Device::cpu())
        return mismatch(ErrorCode::wrong_device, "copy_to_device", "device", "cpu", tensor.device().to_string());
    if (auto ok = check_device(device); !ok) return std::unexpected(ok.error());
    const auto compact = tensor.contiguous();
    if (!compact) return std::unexpected(compact.error());
    auto out = empty_on_device(tensor.shape(), tensor.dtype(), device);
    if (!out || out->numel() == 0) return out;
    const CurrentDevice current(device.index);
    const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
    // The stream's order makes the allocation before the copy.
    auto status = cudaMemcpyAsync(out->mutable_data(), compact->data(), bytes, cudaMemcpyHostToDevice, nullptr);
    if (status == cudaSuccess) status = cudaStreamSynchronize(nullptr);
    if (status != cudaSuccess) return cuda_error(status, device.to_string(), "a copy to the device failed");
    return out;
}

Result<Tensor> copy_to_cpu(const Tensor& tensor, Stream stream) {
    if (tensor.device().type != Device::Type::cuda)
        return mismatch(ErrorCode::wrong_device, "copy_to_cpu", "device", "a CUDA device", tensor.device().to_string());
    if (!tensor.is_contiguous()) return fail(ErrorCode::invalid_argument, "copy_to_cpu", "the tensor is not row-major");
    auto out = Tensor::empty(tensor.shape(), tensor.dtype());
    if (!out) return out;
    const CurrentDevice current(tensor.device().index);
    const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
    auto status = cudaSuccess;
    const auto queue = static_cast<cudaStream_t>(stream.handle);
    if (bytes > 0) status = cudaMemcpyAsync(out->mutable_data(), tensor.data(), bytes, cudaMemcpyDeviceToHost, queue);
    if (status == cudaSuccess) status = cudaStreamSynchronize(queue);
    if (status != cudaSuccess)
        return cuda_error(status, tensor.device().to_string(), "a copy from the device, or work before it, failed");
    return out;
}

Result<> synchronize(Device device, Stream stream) {
    if (auto ok = check_device(device); !ok) return ok;
    const CurrentDevice current(device.index);
    const auto status = cudaStreamSynchronize(static_cast<cudaStream_t>(stream.handle));
    if (status != cudaSuccess) return cuda_error(status, device.to_string(), "work of the stream failed");
    return {};
}

}  // namespace lyo
