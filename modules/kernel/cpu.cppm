// The CPU backend: plans run as fused loops over blocks (cpu/vm.h) and matrix products, in a preallocated workspace.
export module lyo.kernel:cpu;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo {

/// What one call may take, for plans from strangers.
export struct CallLimits {
    std::uint64_t workspace_bytes = std::uint64_t{1} << 40;
    std::uint64_t output_bytes = std::uint64_t{1} << 40;  ///< of all outputs together
    /// Elements times instructions (a matrix product: multiplications).
    std::uint64_t work = std::numeric_limits<std::uint64_t>::max();
};

/// A plan on the CPU: immutable; any number of workspaces may run it at once.
export class CpuProgram {
  public:
    /// `constants` has the bytes of each constant of the table and must outlive the program; plan and function belong
    /// to a validated artifact that outlives it too.
    CpuProgram(const Program& program, const FunctionSpec& function, std::vector<Bytes> constants, CallLimits limits);

    const FunctionSpec& function() const noexcept { return *function_; }
    /// "avx512", ...: the kernels in use.
    static std::string_view instruction_set() noexcept;
    /// Whether large products find oneDNN; opens it.
    static bool has_onednn() noexcept;

  private:
    friend class CpuWorkspace;
    const Program* program_;
    const FunctionSpec* function_;
    std::vector<Bytes> constants_;
    CallLimits limits_;
};

/// The memory and the resolved sizes of one call at a time. Kept from call to call: when the symbols are those of the
/// call before, nothing is computed or allocated again.
export class CpuWorkspace {
  public:
    CpuWorkspace();
    CpuWorkspace(CpuWorkspace&&) noexcept;
    ~CpuWorkspace();

    /// Resolves the plan for these symbol values: sizes, strides, memory; checks that every view stays within its
    /// memory. Errors: bad_value (a plan whose views do not), limit_exceeded, out_of_memory.
    [[nodiscard]] Result<> prepare(const CpuProgram& program, std::span<const std::int64_t> symbols);
    /// Runs the prepared plan on row-major inputs and outputs. Errors: index_out_of_range.
    [[nodiscard]] Result<> run(const CpuProgram& program, std::span<const std::byte* const> inputs,
                               std::span<std::byte* const> outputs);
    /// Sizes of the outputs for the prepared symbols.
    std::span<const Dims> output_shapes() const noexcept;
    /// Sizes of the inputs for the prepared symbols.
    std::span<const Dims> input_shapes() const noexcept;
    /// Bytes of workspace memory held.
    std::uint64_t bytes() const noexcept;

    struct State;  ///< for this crate's bodies

  private:
    std::unique_ptr<State> state_;
};

/// Copies a strided CPU tensor to row-major memory.
export void pack(const Tensor& tensor, std::byte* out) noexcept;

}  // namespace lyo
