// Plans resolved for a call's sizes, and their launches.
module;
#include <cuda_runtime_api.h>

#include "lyo_kernels.h"

module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :cuda_state;

namespace lyo {
namespace {

constexpr ErrorCode code = ErrorCode::bad_value;
constexpr std::uint64_t alignment = 256;
/// What packed accesses of generated kernels need.
constexpr std::uint64_t pack_alignment = 16;

Result<std::vector<Dims>> shapes_of(std::span<const TensorSpec> specs, std::span<const Expr> table,
                                    std::span<const std::int64_t> symbols) {
    std::vector<std::int64_t> values(table.size());
    if (auto ok = evaluate(table, symbols, values); !ok) return std::unexpected(ok.error());
    std::vector<Dims> out;
    for (const TensorSpec& spec : specs) {
        Dims& shape = out.emplace_back();
        for (const std::uint32_t e : spec.shape) shape.push_back(values[e]);
        if (!element_count(std::span<const std::int64_t>(shape)))
            return fail(code, spec.name, "shape ", to_string(shape), " has no size");
    }
    return out;
}

class Resolver {
  public:
    Resolver(CudaWorkspace::State& state, const CudaProgram::State& program) : s_(state), p_(program) {}

    Result<> run() {
        std::uint64_t end = 0;
        s_.slot_offsets.clear();
        for (const std::uint32_t slot : p_.program->slots) {
            const std::int64_t bytes = value(slot);
            const auto start = checked_align(end, alignment);
            const auto stop =
                start && bytes >= 0 ? checked_add(*start, static_cast<std::uint64_t>(bytes)) : std::nullopt;
            if (!stop) return fail(code, "slots", "a size of ", bytes, " bytes");
            s_.slot_offsets.push_back(*start);
            end = *stop;
        }
        if (end > p_.limits.workspace_bytes)
            return mismatch(ErrorCode::limit_exceeded, "workspace", "bytes", cat("at most ", p_.limits.workspace_bytes),
                            end);
        const int device = p_.image->state().device;
        if (auto ok = s_.slots.reserve(device, end); !ok) return std::unexpected(std::move(ok.error()).in("workspace"));
        if (p_.uses_library)
            if (auto ok = s_.product_memory.reserve(device, product_workspace_bytes); !ok)
                return std::unexpected(std::move(ok.error()).in("workspace"));
        s_.steps.clear();
        for (std::size_t i = 0; i < p_.program->steps.size(); ++i) {
            const DeviceStep& step = p_.program->steps[i];
            const auto* launch = std::get_if<Launch>(&step);
            auto ok = launch != nullptr ? add(*launch, p_.kernels[i]) : add(std::get<1>(step));
            if (!ok) return std::unexpected(std::move(ok.error()).in(cat("steps[", i, "]")));
        }
        return {};
    }

  private:
    std::int64_t value(std::uint32_t expr) const { return s_.exprs[expr]; }

    /// The address of memory that stays where it is; 0 and a patch for what each call brings.
    std::uint64_t address(const Buffer& b, std::uint32_t word, std::vector<AddressPatch>& patches) const {
        const auto offset = static_cast<std::uint64_t>(value(b.offset));
        if (b.space == Space::slot)
            return reinterpret_cast<std::uintptr_t>(s_.slots.data()) + s_.slot_offsets[b.index] + offset;
        if (b.space == Space::constant) {
            const CudaImage::State& image = p_.image->state();
            return reinterpret_cast<std::uintptr_t>(image.constants.data()) + image.constant_offsets[b.index] + offset;
        }
        patches.push_back({word, b.space, b.index, offset});
        return 0;
    }

    Result<> add(const Launch& launch, cudaKernel_t kernel) {
        PreparedLaunch out;
        out.kernel = kernel;
        out.name = launch.kernel;
        const std::int64_t blocks = value(launch.blocks);
        if (blocks < 0 || blocks > std::numeric_limits<std::int32_t>::max())
            return mismatch(code, "blocks", "number", "in [0, 2147483647]", blocks);
        if (blocks == 0) return {};
        out.blocks = static_cast<unsigned>(blocks);
        out.threads = launch.threads;
        for (const Buffer& b : launch.buffers)
            out.words.push_back(address(b, static_cast<std::uint32_t>(out.words.size()), out.patches));
        for (const std::uint32_t word : launch.words) out.words.push_back(static_cast<std::uint64_t>(value(word)));
        s_.steps.emplace_back(std::move(out));
        return {};
    }

    Result<> add(const Product& product) {
        if (value(product.m) == 0 || value(product.n) == 0 || value(product.batch) == 0) return {};
        PreparedProduct out;
        auto plan = prepare_product(product, s_.exprs, p_.image->state().device);
        if (!plan) return std::unexpected(plan.error());
        out.plan = std::move(*plan);
        const Buffer* buffers[] = {&product.a, &product.b, &product.c};
        for (std::uint32_t i = 0; i < 3; ++i) out.addresses[i] = address(*buffers[i], i, out.patches);
        s_.steps.emplace_back(std::move(out));
        return {};
    }

    CudaWorkspace::State& s_;
    const CudaProgram::State& p_;
};

bool is_aligned(const void* data) noexcept { return reinterpret_cast<std::uintptr_t>(data) % pack_alignment == 0; }
std::uint64_t bytes_of(const Tensor& t) noexcept { return static_cast<std::uint64_t>(t.numel()) * size_of(t.dtype()); }

/// Addresses of row-major, aligned inputs: the caller's, or a copy made on the device.
Result<> gather_inputs(CudaWorkspace::State& s, std::span<const Tensor> inputs, cudaStream_t stream) {
    s.inputs.resize(inputs.size());
    if (s.packed.size() < inputs.size()) s.packed.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Tensor& t = inputs[i];
        s.inputs[i] = reinterpret_cast<std::uintptr_t>(t.data());
        if (t.numel() == 0 || (t.is_contiguous() && is_aligned(t.data()))) continue;
        if (auto ok = s.packed[i].reserve(s.device, bytes_of(t)); !ok)
            return std::unexpected(std::move(ok.error()).in(cat("input ", i)));
        std::int64_t sizes[max_rank], strides[max_rank];
        for (std::size_t d = 0; d < t.rank(); ++d) sizes[d] = t.shape()[d], strides[d] = t.strides()[d];
        const auto status = static_cast<cudaError_t>(
            lyo_kernels_pack(s.packed[i].data(), t.data(), static_cast<int>(size_of(t.dtype())),
                             static_cast<int>(t.rank()), sizes, strides, stream));
        if (status != cudaSuccess) return cuda_error(status, cat("input ", i), "it cannot be packed");
        s.inputs[i] = reinterpret_cast<std::uintptr_t>(s.packed[i].data());
        s.in_use = true;
    }
    return {};
}

Result<> place_outputs(CudaWorkspace::State& s, std::span<const Tensor> outputs) {
    s.outputs.resize(outputs.size());
    if (s.staged.size() < outputs.size()) s.staged.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        s.outputs[i] = reinterpret_cast<std::uintptr_t>(outputs[i].data());
        if (is_aligned(outputs[i].data())) continue;
        if (auto ok = s.staged[i].reserve(s.device, bytes_of(outputs[i])); !ok)
            return std::unexpected(std::move(ok.error()).in(cat("output ", i)));
        s.outputs[i] = reinterpret_cast<std::uintptr_t>(s.staged[i].data());
        s.in_use = true;
    }
    return {};
}

Result<> copy_staged(CudaWorkspace::State& s, std::span<const Tensor> outputs, cudaStream_t stream) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (is_aligned(outputs[i].data())) continue;
        const auto status = cudaMemcpyAsync(outputs[i].mutable_data(), s.staged[i].data(), bytes_of(outputs[i]),
                                            cudaMemcpyDeviceToDevice, stream);
        if (status != cudaSuccess) return cuda_error(status, cat("output ", i), "it cannot be copied to its place");
    }
    return {};
}

std::uint64_t patched(const CudaWorkspace::State& s, const AddressPatch& p) {
    return (p.space == Space::input ? s.inputs : s.outputs)[p.index] + p.offset;
}

Result<> launch(PreparedLaunch& step, const CudaWorkspace::State& s, cudaStream_t stream) {
    for (const AddressPatch& p : step.patches) step.words[p.word] = patched(s, p);
    void* parameters[] = {step.words.data()};
    const auto status = cudaLaunchKernel(reinterpret_cast<const void*>(step.kernel), dim3(step.blocks),
                                         dim3(step.threads), parameters, 0, stream);
    if (status != cudaSuccess) {
        cudaGetLastError();
        return cuda_error(status, step.name, "it cannot be launched, or work before it failed");
    }
    return {};
}

Result<> launch(PreparedProduct& step, const CudaWorkspace::State& s, Stream stream) {
    std::array<std::uint64_t, 3> at = step.addresses;
    for (const AddressPatch& p : step.patches) at[p.word] = patched(s, p);
    return run_product(step.plan, at[0], at[1], at[2], s.product_memory.data(), stream);
}

}  // namespace

CudaWorkspace::State::~State() {
    if (done == nullptr) return;
    const CurrentDevice current(device);
    if (in_use) cudaEventSynchronize(done);  // the memory is about to go
    cudaEventDestroy(done);
}

CudaWorkspace::CudaWorkspace() : state_(std::make_unique<State>()) {}
CudaWorkspace::CudaWorkspace(CudaWorkspace&&) noexcept = default;
CudaWorkspace::~CudaWorkspace() = default;
std::span<const Dims> CudaWorkspace::output_shapes() const noexcept { return state_->output_shapes; }

Result<> CudaWorkspace::prepare(const CudaProgram& program, std::span<const std::int64_t> symbols) {
    State& s = *state_;
    const CudaProgram::State& p = program.state();
    if (s.program == &p && std::equal(symbols.begin(), symbols.end(), s.symbols.begin(), s.symbols.end())) return {};
    const FunctionSpec& function = program.function();
    s.program = nullptr;
    s.device = p.image->state().device;
    const CurrentDevice current(s.device);
    // Slots may move: what still runs in them comes first.
    if (s.in_use && s.done != nullptr) cudaEventSynchronize(s.done);
    s.symbols.assign(symbols.begin(), symbols.end());
    s.exprs.resize(p.program->exprs.size());
    if (auto ok = evaluate(p.program->exprs, symbols, s.exprs); !ok)
        return std::unexpected(std::move(ok.error()).in(function.name));
    auto inputs = shapes_of(function.inputs, function.exprs, symbols);
    if (!inputs) return std::unexpected(std::move(inputs.error()).in(function.name));
    auto outputs = shapes_of(function.outputs, function.exprs, symbols);
    if (!outputs) return std::unexpected(std::move(outputs.error()).in(function.name));
    s.input_shapes = std::move(*inputs);
    s.output_shapes = std::move(*outputs);
    if (auto ok = Resolver(s, p).run(); !ok) return std::unexpected(std::move(ok.error()).in(function.name));
    s.program = &p;
    return {};
}

Result<> CudaWorkspace::run(const CudaProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                            Stream stream) {
    State& s = *state_;
    const CurrentDevice current(s.device);
    const auto queue = static_cast<cudaStream_t>(stream.handle);
    if (s.in_use && stream != s.stream) {
        const auto status = cudaStreamWaitEvent(queue, s.done, 0);
        if (status != cudaSuccess) return cuda_error(status, program.function().name, "the stream cannot wait");
    }
    s.in_use = !program.state().program->slots.empty() || program.state().uses_library;
    s.stream = stream;
    if (auto ok = gather_inputs(s, inputs, queue); !ok) return ok;
    if (auto ok = place_outputs(s, outputs); !ok) return ok;
    for (PreparedDeviceStep& step : s.steps) {
        auto* kernel = std::get_if<PreparedLaunch>(&step);
        auto ok = kernel != nullptr ? launch(*kernel, s, queue) : launch(std::get<1>(step), s, stream);
        if (!ok) return std::unexpected(std::move(ok.error()).in(program.function().name));
    }
    if (auto ok = copy_staged(s, outputs, queue); !ok) return ok;
    if (!s.in_use) return {};
    auto status = cudaSuccess;
    if (s.done == nullptr) status = cudaEventCreateWithFlags(&s.done, cudaEventDisableTiming);
    if (status == cudaSuccess) status = cudaEventRecord(s.done, queue);
    if (status != cudaSuccess)
        return cuda_error(status, program.function().name, "the end of the call cannot be marked");
    return {};
}

}  // namespace lyo
