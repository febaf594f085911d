// What the user calls.
module lyo.hydration;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import :guard;
import :live;

namespace lyo {

namespace {

/// A workspace for the length of a call.
template <class Live>
class Lease {
  public:
    explicit Lease(Pool<Live>& from) : from_(&from), live_(from.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { from_->give_back(std::move(live_)); }
    Live& operator*() const noexcept { return *live_; }
    Live* operator->() const noexcept { return live_.get(); }

  private:
    Pool<Live>* from_;
    std::unique_ptr<Live> live_;
};

/// Row-major addresses of the inputs; those of other strides are packed into the workspace.
Result<> gather_inputs(std::span<const Tensor> inputs, CpuLive& workspace) {
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
                       std::span<const Tensor> outputs, Device device) {
    if (outputs.size() != shapes.size())
        return mismatch(ErrorCode::guard_failed, spec.name, "outputs", shapes.size(), outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Tensor& output = outputs[i];
        const auto where = [&] { return cat("output ", i, " (", spec.outputs[i].name, ")"); };
        if (output.dtype() != spec.outputs[i].dtype)
            return mismatch(ErrorCode::guard_failed, where(), "dtype", to_string(spec.outputs[i].dtype),
                            to_string(output.dtype()));
        if (output.device() != device)
            return mismatch(ErrorCode::wrong_device, where(), "device", device.to_string(),
                            output.device().to_string());
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

/// The reasons of all specialisations that refused, as one error.
class Refusal {
  public:
    void add(Error error) {
        if (count_++ == 0)
            error_ = std::move(error);
        else
            error_.what += cat("; specialisation ", count_, ": ", error.to_string());
    }
    std::unexpected<Error> take() {
        if (count_ > 1) error_.what = cat("no specialisation of ", count_, " takes these inputs: 1: ", error_.what);
        return std::unexpected(std::move(error_));
    }

  private:
    Error error_;
    std::size_t count_ = 0;
};

/// Finds the specialisation whose guards hold and calls `go` with its workspace, sizes resolved.
template <class S, class Go>
auto dispatch(const std::vector<std::unique_ptr<S>>& specialisations, std::span<const Tensor> inputs, Go go)
    -> decltype(go(*specialisations[0], std::declval<typename S::LiveType&>())) {
    Refusal refusal;
    for (const auto& specialisation : specialisations) {
        Lease lease(specialisation->pool);
        if (auto ok = specialisation->guards.check(inputs, lease->symbols); !ok) {
            refusal.add(std::move(ok.error()));
            continue;
        }
        if (auto ok = lease->workspace.prepare(specialisation->program, lease->symbols); !ok)
            return std::unexpected(ok.error());
        return go(*specialisation, *lease);
    }
    return refusal.take();
}

template <class S>
Result<> accepted_by(const std::vector<std::unique_ptr<S>>& specialisations, std::span<const Tensor> inputs) {
    Refusal refusal;
    for (const auto& specialisation : specialisations) {
        const Lease lease(specialisation->pool);
        auto ok = specialisation->guards.check(inputs, lease->symbols);
        if (ok) return ok;
        refusal.add(std::move(ok.error()));
    }
    return refusal.take();
}

Result<> run(const CpuSpecialisation& specialisation, CpuLive& live, std::span<const Tensor> inputs,
             std::span<const Tensor> outputs, Device, Stream) {
    if (auto ok = gather_inputs(inputs, live); !ok) return ok;
    live.outputs.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
        live.outputs[i] = static_cast<std::byte*>(outputs[i].mutable_data());
    return live.workspace.run(specialisation.program, live.inputs, live.outputs);
}

Result<> run(const CudaSpecialisation& specialisation, CudaLive& live, std::span<const Tensor> inputs,
             std::span<const Tensor> outputs, Device, Stream stream) {
    return live.workspace.run(specialisation.program, inputs, outputs, stream);
}

Result<Tensor> make_output(const Dims& shape, DType dtype, Device device, Stream stream) {
    return device.type == Device::Type::cpu ? Tensor::empty(shape, dtype)
                                            : empty_on_device(shape, dtype, device, stream);
}

template <class S>
Result<std::vector<Tensor>> call_on(const std::vector<std::unique_ptr<S>>& specialisations,
                                    std::span<const Tensor> inputs, Device device, Stream stream) {
    return dispatch(specialisations, inputs,
                    [&](const S& s, typename S::LiveType& live) -> Result<std::vector<Tensor>> {
                        const auto shapes = live.workspace.output_shapes();
                        std::vector<Tensor> outputs;
                        outputs.reserve(shapes.size());
                        for (std::size_t i = 0; i < shapes.size(); ++i) {
                            auto tensor = make_output(shapes[i], s.program.function().outputs[i].dtype, device, stream);
                            if (!tensor) return std::unexpected(std::move(tensor.error()).in(cat("output ", i)));
                            outputs.push_back(std::move(*tensor));
                        }
                        if (auto ok = run(s, live, inputs, outputs, device, stream); !ok)
                            return std::unexpected(ok.error());
                        return outputs;
                    });
}

template <class S>
Result<> call_on_into(const std::vector<std::unique_ptr<S>>& specialisations, std::span<const Tensor> inputs,
                      std::span<const Tensor> outputs, Device device, Stream stream) {
    return dispatch(specialisations, inputs, [&](const S& s, typename S::LiveType& live) -> Result<> {
        if (auto ok = check_outputs(s.program.function(), live.workspace.output_shapes(), inputs, outputs, device); !ok)
            return ok;
        return run(s, live, inputs, outputs, device, stream);
    });
}

template <class S>
Result<std::vector<Dims>> shapes_on(const std::vector<std::unique_ptr<S>>& specialisations,
                                    std::span<const Tensor> inputs) {
    return dispatch(specialisations, inputs, [&](const S&, typename S::LiveType& live) -> Result<std::vector<Dims>> {
        const auto shapes = live.workspace.output_shapes();
        return std::vector<Dims>(shapes.begin(), shapes.end());
    });
}

}  // namespace

Result<std::vector<Tensor>> Function::call(std::span<const Tensor> inputs, Stream stream) const try {
    const State& s = *state_;
    if (auto ok = s.artifact.verify_constants(); !ok) return std::unexpected(ok.error());
    return s.device.type == Device::Type::cpu ? call_on(s.cpu, inputs, s.device, stream)
                                              : call_on(s.cuda.specialisations, inputs, s.device, stream);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

Result<> Function::call_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs, Stream stream) const try {
    const State& s = *state_;
    if (auto ok = s.artifact.verify_constants(); !ok) return ok;
    return s.device.type == Device::Type::cpu ? call_on_into(s.cpu, inputs, outputs, s.device, stream)
                                              : call_on_into(s.cuda.specialisations, inputs, outputs, s.device, stream);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

Result<> Function::accepts(std::span<const Tensor> inputs) const try {
    const State& s = *state_;
    return s.device.type == Device::Type::cpu ? accepted_by(s.cpu, inputs)
                                              : accepted_by(s.cuda.specialisations, inputs);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

Result<std::vector<Dims>> Function::output_shapes(std::span<const Tensor> inputs) const try {
    const State& s = *state_;
    return s.device.type == Device::Type::cpu ? shapes_on(s.cpu, inputs) : shapes_on(s.cuda.specialisations, inputs);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

const Bytes& Function::serialize() const noexcept { return state_->artifact.bytes(); }
const Artifact& Function::artifact() const noexcept { return state_->artifact; }
const FunctionSpec& Function::spec() const noexcept { return *state_->spec; }
Device Function::device() const noexcept { return state_->device; }
std::string Function::backend() const {
    if (state_->device.type == Device::Type::cpu) return cat("cpu (", CpuProgram::instruction_set(), ")");
    return cat(state_->device.to_string(), " (", state_->cuda.target, ")");
}

}  // namespace lyo
