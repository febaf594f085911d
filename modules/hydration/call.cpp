// What the user calls.
module lyo.hydration;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import :guard;
import :live;

namespace lyo {

std::unique_ptr<LiveWorkspace> Specialisation::take() const {
    if (LiveWorkspace* workspace = hot.exchange(nullptr, std::memory_order_acq_rel))
        return std::unique_ptr<LiveWorkspace>(workspace);
    {
        const std::lock_guard lock(mutex);
        if (!idle.empty()) {
            auto workspace = std::move(idle.back());
            idle.pop_back();
            return workspace;
        }
    }
    return std::make_unique<LiveWorkspace>();
}

void Specialisation::give_back(std::unique_ptr<LiveWorkspace> workspace) const {
    LiveWorkspace* none = nullptr;
    if (hot.compare_exchange_strong(none, workspace.get(), std::memory_order_acq_rel)) {
        // Whoever takes it from `hot` owns it.
        static_cast<void>(workspace.release());
        return;
    }
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(workspace));
}

namespace {

/// A workspace for the length of a call.
class Lease {
  public:
    explicit Lease(const Specialisation& from) : from_(&from), workspace_(from.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { from_->give_back(std::move(workspace_)); }
    LiveWorkspace& operator*() const noexcept { return *workspace_; }
    LiveWorkspace* operator->() const noexcept { return workspace_.get(); }

  private:
    const Specialisation* from_;
    std::unique_ptr<LiveWorkspace> workspace_;
};

/// Row-major addresses of the inputs; those of other strides are packed into the workspace.
Result<> gather_inputs(std::span<const Tensor> inputs, LiveWorkspace& workspace) {
    workspace.inputs.resize(inputs.size());
    workspace.packed.resize(inputs.size());
    workspace.packed_bytes.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        workspace.inputs[i] = static_cast<const std::byte*>(inputs[i].data());
        if (inputs[i].is_contiguous()) continue;
        const auto bytes =
            checked_mul(static_cast<std::uint64_t>(inputs[i].numel()), std::uint64_t{size_of(inputs[i].dtype())});
        if (!bytes) return fail(ErrorCode::out_of_memory, cat("input ", i), "its size does not fit in 64 bits");
        if (workspace.packed_bytes[i] < *bytes || !workspace.packed[i]) {
            workspace.packed[i] = allocate_aligned(*bytes);
            workspace.packed_bytes[i] = workspace.packed[i] ? *bytes : 0;
            if (!workspace.packed[i])
                return fail(ErrorCode::out_of_memory, cat("input ", i), "cannot allocate ", *bytes,
                            " bytes to pack it");
        }
        pack(inputs[i], workspace.packed[i].get());
        workspace.inputs[i] = workspace.packed[i].get();
    }
    return {};
}

/// First and one past the last byte that a tensor touches; null, null where it has no elements.
std::pair<std::uintptr_t, std::uintptr_t> byte_range(const Tensor& tensor) noexcept {
    if (tensor.numel() == 0) return {0, 0};
    std::int64_t low = 0, high = 1;
    for (std::size_t d = 0; d < tensor.rank(); ++d) {
        const std::int64_t reach = (tensor.shape()[d] - 1) * tensor.strides()[d];
        (reach < 0 ? low : high) += reach;
    }
    const auto base = reinterpret_cast<std::uintptr_t>(tensor.data());
    const auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
    return {base + static_cast<std::uintptr_t>(low * size), base + static_cast<std::uintptr_t>(high * size)};
}

bool overlap(const Tensor& a, const Tensor& b) noexcept {
    const auto [a_first, a_last] = byte_range(a);
    const auto [b_first, b_last] = byte_range(b);
    return a_first < b_last && b_first < a_last;
}

Result<> check_outputs(const FunctionSpec& spec, std::span<const Dims> shapes, std::span<const Tensor> inputs,
                       std::span<const Tensor> outputs) {
    if (outputs.size() != shapes.size())
        return mismatch(ErrorCode::guard_failed, spec.name, "outputs", shapes.size(), outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Tensor& output = outputs[i];
        const auto where = [&] { return cat("output ", i, " (", spec.outputs[i].name, ")"); };
        if (output.dtype() != spec.outputs[i].dtype)
            return mismatch(ErrorCode::guard_failed, where(), "dtype", to_string(spec.outputs[i].dtype),
                            to_string(output.dtype()));
        if (output.device() != Device::cpu())
            return mismatch(ErrorCode::wrong_device, where(), "device", "cpu", output.device().to_string());
        if (output.shape() != shapes[i])
            return mismatch(ErrorCode::guard_failed, where(), "shape", to_string(shapes[i]), to_string(output.shape()));
        if (!output.is_contiguous())
            return mismatch(ErrorCode::guard_failed, where(), "strides", "row-major", to_string(output.strides()));
        if (output.data() == nullptr && output.numel() > 0)
            return mismatch(ErrorCode::guard_failed, where(), "data", "an address", "null");
        for (std::size_t k = 0; k < inputs.size(); ++k)
            if (overlap(output, inputs[k])) return fail(ErrorCode::guard_failed, where(), "overlaps input ", k);
        for (std::size_t k = 0; k < i; ++k)
            if (overlap(output, outputs[k])) return fail(ErrorCode::guard_failed, where(), "overlaps output ", k);
    }
    return {};
}

/// Finds the specialisation whose guards hold and calls `go` with its workspace, sizes resolved.
template <class Specialisations, class Go>
auto dispatch(const Specialisations& specialisations, std::span<const Tensor> inputs, Go go)
    -> decltype(go(*specialisations[0], std::declval<LiveWorkspace&>())) {
    std::optional<Error> first;
    for (const auto& specialisation : specialisations) {
        Lease lease(*specialisation);
        if (auto ok = specialisation->guards.check(inputs, lease->symbols); !ok) {
            if (!first) first = std::move(ok.error());
            continue;
        }
        if (auto ok = lease->cpu.prepare(specialisation->program, lease->symbols); !ok)
            return std::unexpected(ok.error());
        return go(*specialisation, *lease);
    }
    return std::unexpected(std::move(*first));
}

Result<> run(const Specialisation& specialisation, LiveWorkspace& workspace, std::span<const Tensor> inputs,
             std::span<const Tensor> outputs) {
    if (auto ok = gather_inputs(inputs, workspace); !ok) return ok;
    workspace.outputs.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
        workspace.outputs[i] = static_cast<std::byte*>(outputs[i].mutable_data());
    return workspace.cpu.run(specialisation.program, workspace.inputs, workspace.outputs);
}

}  // namespace

Result<std::vector<Tensor>> Function::call(std::span<const Tensor> inputs) const try {
    if (auto ok = state_->artifact.verify_constants(); !ok) return std::unexpected(ok.error());
    return dispatch(state_->specialisations, inputs,
                    [&](const Specialisation& s, LiveWorkspace& workspace) -> Result<std::vector<Tensor>> {
                        const auto shapes = workspace.cpu.output_shapes();
                        std::vector<Tensor> outputs;
                        outputs.reserve(shapes.size());
                        for (std::size_t i = 0; i < shapes.size(); ++i) {
                            auto tensor = Tensor::empty(shapes[i], s.program.function().outputs[i].dtype);
                            if (!tensor) return std::unexpected(std::move(tensor.error()).in(cat("output ", i)));
                            outputs.push_back(std::move(*tensor));
                        }
                        if (auto ok = run(s, workspace, inputs, outputs); !ok) return std::unexpected(ok.error());
                        return outputs;
                    });
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

Result<> Function::call_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const try {
    if (auto ok = state_->artifact.verify_constants(); !ok) return ok;
    return dispatch(
        state_->specialisations, inputs, [&](const Specialisation& s, LiveWorkspace& workspace) -> Result<> {
            if (auto ok = check_outputs(s.program.function(), workspace.cpu.output_shapes(), inputs, outputs); !ok)
                return ok;
            return run(s, workspace, inputs, outputs);
        });
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

Result<std::vector<Dims>> Function::output_shapes(std::span<const Tensor> inputs) const try {
    return dispatch(state_->specialisations, inputs,
                    [&](const Specialisation&, LiveWorkspace& workspace) -> Result<std::vector<Dims>> {
                        const auto shapes = workspace.cpu.output_shapes();
                        return std::vector<Dims>(shapes.begin(), shapes.end());
                    });
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

const Bytes& Function::serialize() const noexcept { return state_->artifact.bytes(); }
const Artifact& Function::artifact() const noexcept { return state_->artifact; }
const FunctionSpec& Function::spec() const noexcept { return state_->specialisations.front()->program.function(); }
Device Function::device() const noexcept { return state_->device; }
std::string Function::backend() const { return cat("cpu (", CpuProgram::instruction_set(), ")"); }

}  // namespace lyo
