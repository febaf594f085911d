// What a workspace holds once a plan is resolved for a call's sizes.
module;
#include "cpu/vm.h"

module lyo.kernel:state;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :cpu;

namespace lyo {

/// Where an operand's memory comes from at run time: an input's or output's address plus bytes.
struct Patch {
    std::uint32_t operand;  // in its step
    Space space;
    std::uint32_t index;
    std::int64_t byte_offset;
};

/// A loop resolved: geometry collapsed to as few dimensions as it has.
struct PreparedLoop {
    cpu::LoopCall call{};
    std::vector<cpu::Operand> operands;
    std::vector<cpu::Instr> instrs;
    std::vector<cpu::Phase> phases;
    std::vector<Patch> patches;
    std::int64_t outer_count = 0;
};

/// A product resolved. Rows are done in panels whose sums stay in the cache until the epilogue has used them.
struct PreparedGemm {
    cpu::GemmCall call{};
    Patch a{}, b{};
    bool patch_a = false, patch_b = false;
    std::vector<std::int64_t> batch;  // extents, outermost first
    std::vector<std::int64_t> a_strides, b_strides;
    std::int64_t batch_count = 1, panel = 1;
    std::size_t sum_size = 4;
    bool direct = false;  // the epilogue only stores the sums, row-major: they are made in place
    PreparedLoop epilogue;
};

using PreparedStep = std::variant<PreparedLoop, PreparedGemm>;

struct CpuWorkspace::State {
    const CpuProgram* program = nullptr;
    std::vector<std::int64_t> symbols;
    std::vector<std::int64_t> exprs;
    std::vector<PreparedStep> steps;
    std::vector<Dims> input_shapes, output_shapes;
    std::vector<std::uint64_t> output_bytes;
    std::vector<std::uint32_t> fill;  // outputs that no step is known to cover: zeroed before the call
    std::vector<std::uint64_t> slot_offsets, slot_sizes;
    AlignedBuffer memory;  // slots, registers, sums, gemm scratch
    std::uint64_t memory_bytes = 0;
    std::byte* registers = nullptr;
    std::byte* sums = nullptr;
    std::byte* gemm_scratch = nullptr;
};

/// Sums of one panel of a matrix product, in bytes.
inline constexpr std::size_t panel_bytes = std::size_t{64} << 10;

/// C = A * B by oneDNN where it is installed and the problem is large enough for it to win; false where it was not
/// done.
bool large_gemm(const cpu::GemmCall& call) noexcept;

}  // namespace lyo
