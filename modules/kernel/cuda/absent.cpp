// The CUDA backend of a build that has none.
module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo {
namespace {

std::unexpected<Error> absent() {
    return fail(ErrorCode::no_device, "cuda", "this build of lyo has no CUDA backend (build the preset cuda-release)");
}

}  // namespace

struct CudaImage::State {};
struct CudaProgram::State {};
struct CudaWorkspace::State {};

Result<std::vector<CudaDevice>> cuda_devices() { return absent(); }
Result<Tensor> copy_to_device(const Tensor&, Device) { return absent(); }
Result<Tensor> copy_to_cpu(const Tensor&, Stream) { return absent(); }
Result<> synchronize(Device, Stream) { return absent(); }
Result<Tensor> empty_on_device(const Dims&, DType, Device, Stream) { return absent(); }

CudaImage::CudaImage(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
CudaImage::~CudaImage() = default;
Result<std::shared_ptr<const CudaImage>> CudaImage::load(Device, const Bytes&, std::span<const Bytes>) {
    return absent();
}

CudaProgram::CudaProgram(const FunctionSpec& function, std::shared_ptr<const State> state) noexcept
    : function_(&function), state_(std::move(state)) {}
Result<CudaProgram> CudaProgram::make(const DeviceProgram&, const FunctionSpec&, std::shared_ptr<const CudaImage>,
                                      CallLimits) {
    return absent();
}

CudaWorkspace::CudaWorkspace() = default;
CudaWorkspace::CudaWorkspace(CudaWorkspace&&) noexcept = default;
CudaWorkspace::~CudaWorkspace() = default;
Result<> CudaWorkspace::prepare(const CudaProgram&, std::span<const std::int64_t>) { return absent(); }
Result<> CudaWorkspace::run(const CudaProgram&, std::span<const Tensor>, std::span<const Tensor>, Stream) {
    return absent();
}
std::span<const Dims> CudaWorkspace::output_shapes() const noexcept { return {}; }

}  // namespace lyo
