// The live function.
export module lyo.hydration:function;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;

namespace lyo {

export struct HydrateOptions {
    /// Which function of the artifact; empty: the first.
    std::string function = {};
    /// For artifacts from strangers: what one call may take.
    CallLimits limits = {};
    /// CUDA: whether PTX may be compiled by the driver where there is no machine code for the device.
    bool allow_jit = true;
};

/// A function on a device. Copying shares. Every member may be called from many threads at once.
export class Function {
  public:
    /// Runs the function on borrowed views of any strides; outputs are fresh, row-major tensors. Inputs on another
    /// device are refused, never copied there.
    /// On a CUDA device the work is enqueued on `stream`, and the call returns without waiting for it; outputs are
    /// freed in the stream's order, so it must outlive them. On the CPU the stream means nothing. Errors: guard_failed
    /// (names input, property, expected, got), wrong_device, index_out_of_range, bad_digest (a lazy check of the
    /// constants that fails), limit_exceeded, out_of_memory.
    [[nodiscard]] Result<std::vector<Tensor>> call(std::span<const Tensor> inputs, Stream stream = {}) const;
    [[nodiscard]] Result<std::vector<Tensor>> call(std::initializer_list<Tensor> inputs, Stream stream = {}) const {
        return call(std::span<const Tensor>(inputs.begin(), inputs.size()), stream);
    }
    /// The same into memory of the caller: row-major tensors of the outputs' shapes and dtypes that overlap no input
    /// and not one another. Further errors: guard_failed (an output that does not fit or overlaps).
    [[nodiscard]] Result<> call_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                     Stream stream = {}) const;
    /// Whether the guards hold for these inputs. Errors: guard_failed (with every specialisation's reason),
    /// wrong_device.
    [[nodiscard]] Result<> accepts(std::span<const Tensor> inputs) const;
    /// Shapes of the outputs for these inputs, without running. Errors: guard_failed.
    [[nodiscard]] Result<std::vector<Dims>> output_shapes(std::span<const Tensor> inputs) const;

    /// Exactly the bytes the function was loaded from: shared, not copied, at any time, on any thread.
    const Bytes& serialize() const noexcept;
    const Artifact& artifact() const noexcept;
    /// Inputs, outputs, symbols and guards; of the first specialisation where there are several.
    const FunctionSpec& spec() const noexcept;
    Device device() const noexcept;
    /// What runs it: "cpu (avx512)", "cuda:0 (cuda:sm_90)".
    std::string backend() const;

    struct State;  ///< for this crate's bodies

  private:
    explicit Function(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
    friend Result<Function> hydrate(const Artifact& artifact, Device device, const HydrateOptions& options);
    std::shared_ptr<const State> state_;
};

/// Makes an artifact's function live on a device. Compatibility is checked before anything is loaded.
/// Errors: no_image (the artifact has none for the device; says which it has), no_device, invalid_argument (no such
/// function), bad_value (a plan whose views leave their memory), limit_exceeded, out_of_memory.
export [[nodiscard]] Result<Function> hydrate(const Artifact& artifact, Device device,
                                              const HydrateOptions& options = {});

}  // namespace lyo
