// Running a resolved plan: addresses in, steps in order.
module;
#include "cpu/vm.h"

module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :state;

namespace lyo {
namespace {

struct Addresses {
    std::span<const std::byte* const> inputs;
    std::span<std::byte* const> outputs;

    std::byte* operator()(const Patch& patch) const noexcept {
        std::byte* base =
            patch.space == Space::output ? outputs[patch.index] : const_cast<std::byte*>(inputs[patch.index]);
        return base + patch.byte_offset;
    }
};

void patch_loop(PreparedLoop& loop, const Addresses& addresses) noexcept {
    for (const Patch& patch : loop.patches) loop.operands[patch.operand].base = addresses(patch);
}

Result<> status_of(cpu::Status status, const cpu::LoopCall& call, std::size_t step) {
    if (status == cpu::Status::ok) return {};
    return fail(ErrorCode::index_out_of_range, cat("steps[", step, "]"), "index ", call.fault, " is out of range");
}

Result<> run_gemm(PreparedGemm& gemm, const Addresses& addresses, std::byte* sums, const cpu::Kernels& kernels,
                  std::size_t step) {
    if (gemm.epilogue.outer_count == 0) return {};
    patch_loop(gemm.epilogue, addresses);
    const std::byte* a = gemm.patch_a ? addresses(gemm.a) : gemm.call.a;
    const std::byte* b = gemm.patch_b ? addresses(gemm.b) : gemm.call.b;
    const auto a_size = static_cast<std::int64_t>(size_of(gemm.call.a_type));
    const auto b_size = static_cast<std::int64_t>(size_of(gemm.call.b_type));
    const auto sum_size = static_cast<std::int64_t>(gemm.sum_size);
    const std::int64_t m = gemm.call.m, n = gemm.call.n;
    const std::int64_t panel = gemm.direct ? m : std::min(gemm.panel, m);
    cpu::GemmCall call = gemm.call;
    for (std::int64_t batch = 0; batch < gemm.batch_count; ++batch) {
        std::int64_t a_offset = 0, b_offset = 0, rest = batch;
        for (std::size_t d = gemm.batch.size(); d-- > 0; rest /= gemm.batch[d]) {
            a_offset += rest % gemm.batch[d] * gemm.a_strides[d];
            b_offset += rest % gemm.batch[d] * gemm.b_strides[d];
        }
        call.b = b + b_offset * b_size;
        for (std::int64_t row = 0; row < m; row += panel) {
            const std::int64_t first = (batch * m + row) * n;
            call.a = a + (a_offset + row * gemm.call.a_m) * a_size;
            call.m = std::min(panel, m - row);
            call.c = gemm.direct ? gemm.epilogue.operands[1].base + first * sum_size : sums;
            if (!large_gemm(call)) kernels.gemm(call);
            if (gemm.direct) continue;
            // The sums' operand counts from the first element of the whole product.
            gemm.epilogue.operands[0].base = reinterpret_cast<std::byte*>(
                reinterpret_cast<std::uintptr_t>(sums) - static_cast<std::uintptr_t>(first * sum_size));
            const auto status = kernels.run(gemm.epilogue.call, first, first + call.m * n);
            if (auto ok = status_of(status, gemm.epilogue.call, step); !ok) return ok;
        }
    }
    return {};
}

/// Copies dimension `d` and those inside it.
std::byte* pack_dimension(const Tensor& tensor, std::size_t d, const std::byte* from, std::byte* out) noexcept {
    const auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
    if (d == tensor.rank()) {
        std::memcpy(out, from, static_cast<std::size_t>(size));
        return out + size;
    }
    const std::int64_t count = tensor.shape()[d], step = tensor.strides()[d] * size;
    if (d + 1 == tensor.rank() && tensor.strides()[d] == 1) {
        std::memcpy(out, from, static_cast<std::size_t>(count * size));
        return out + count * size;
    }
    for (std::int64_t i = 0; i < count; ++i) out = pack_dimension(tensor, d + 1, from + i * step, out);
    return out;
}

}  // namespace

CpuProgram::CpuProgram(const Program& program, const FunctionSpec& function, std::vector<Bytes> constants,
                       CallLimits limits)
    : program_(&program), function_(&function), constants_(std::move(constants)), limits_(limits) {}

std::string_view CpuProgram::instruction_set() noexcept { return cpu::best_kernels().name; }

CpuWorkspace::CpuWorkspace() : state_(std::make_unique<State>()) {}
CpuWorkspace::CpuWorkspace(CpuWorkspace&&) noexcept = default;
CpuWorkspace::~CpuWorkspace() = default;

Result<> CpuWorkspace::run(const CpuProgram&, std::span<const std::byte* const> inputs,
                           std::span<std::byte* const> outputs) {
    State& s = *state_;
    const cpu::Kernels& kernels = cpu::best_kernels();
    const Addresses addresses{inputs, outputs};
    for (const std::uint32_t i : s.fill) std::memset(outputs[i], 0, s.output_bytes[i]);
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
        if (auto* loop = std::get_if<PreparedLoop>(&s.steps[i])) {
            patch_loop(*loop, addresses);
            const auto status = kernels.run(loop->call, 0, loop->outer_count);
            if (auto ok = status_of(status, loop->call, i); !ok) return ok;
        } else if (auto* gemm = std::get_if<PreparedGemm>(&s.steps[i])) {
            if (auto ok = run_gemm(*gemm, addresses, s.sums, kernels, i); !ok) return ok;
        }
    }
    return {};
}

std::span<const Dims> CpuWorkspace::output_shapes() const noexcept { return state_->output_shapes; }
std::span<const Dims> CpuWorkspace::input_shapes() const noexcept { return state_->input_shapes; }
std::uint64_t CpuWorkspace::bytes() const noexcept { return state_->memory_bytes; }

void pack(const Tensor& tensor, std::byte* out) noexcept {
    if (tensor.numel() > 0) pack_dimension(tensor, 0, static_cast<const std::byte*>(tensor.data()), out);
}

}  // namespace lyo
