// Resolving a plan for a call's sizes: the one place where a plan's views are held against the memory that there is.
module;
#include "cpu/vm.h"

module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :state;

namespace lyo {
namespace {

constexpr ErrorCode code = ErrorCode::bad_value;

/// Everything that resolving one step needs.
struct Resolver {
    const Program& program;
    const FunctionSpec& function;
    std::span<const Bytes> constants;
    CpuWorkspace::State& state;
    std::uint64_t work = 0;

    std::int64_t value(std::uint32_t expr) const noexcept { return state.exprs[expr]; }

    /// Bytes of the memory that an operand is a view of.
    std::uint64_t memory_size(const Operand& o) const noexcept {
        switch (o.space) {
            case Space::input: {
                const auto count = element_count(state.input_shapes[o.index]).value_or(0);
                return static_cast<std::uint64_t>(count) * size_of(function.inputs[o.index].dtype);
            }
            case Space::output:
                return state.output_bytes[o.index];
            case Space::constant:
                return constants[o.index].size();
            case Space::slot:
                return state.slot_sizes[o.index];
        }
        return 0;
    }

    /// The view's elements all lie in its memory. Nothing to check where an extent is 0.
    Result<> check_view(const Operand& o, std::span<const std::int64_t> extents) const {
        std::optional<std::int64_t> low = value(o.offset), high = low;
        for (std::size_t d = 0; d < extents.size(); ++d) {
            if (extents[d] == 0) return {};
            const auto reach = checked_mul(extents[d] - 1, value(o.strides[d]));
            if (!reach) low = std::nullopt;
            if (low && *reach < 0) low = checked_add(*low, *reach);
            if (low && high && *reach > 0) high = checked_add(*high, *reach);
            if (!low || !high) return fail(code, "", "a view's extent does not fit in 64 bits");
        }
        if (*low < 0 || *high >= elements(o))
            return mismatch(code, "", "a view's elements", cat("within [0, ", elements(o), ")"),
                            cat("[", *low, ", ", *high, "]"));
        return {};
    }

    /// Elements of the memory that an operand is a view of.
    std::int64_t elements(const Operand& o) const noexcept {
        return static_cast<std::int64_t>(memory_size(o) / size_of(o.dtype));
    }
    /// The element that a view starts at. Where an extent of 0 leaves it without elements its offset may be any number,
    /// and nothing is read or written: then it starts at 0.
    std::int64_t start(const Operand& o) const noexcept {
        const std::int64_t offset = value(o.offset);
        return offset >= 0 && offset <= elements(o) ? offset : 0;
    }

    /// The address if it is known now; else the patch to make at each call.
    std::byte* address(const Operand& o, Patch& patch, bool& patched) const noexcept {
        patch = {0, o.space, o.index, start(o) * static_cast<std::int64_t>(size_of(o.dtype))};
        patched = false;
        if (o.space == Space::slot) return state.memory.get() + state.slot_offsets[o.index] + patch.byte_offset;
        if (o.space == Space::constant) return const_cast<std::byte*>(constants[o.index].data()) + patch.byte_offset;
        patched = true;
        return nullptr;
    }

    Result<std::int64_t> count(std::span<const std::int64_t> extents) const {
        const auto total = element_count(extents);
        if (!total) return fail(code, "", "extents without a size: ", to_string(Dims(extents)));
        return *total;
    }

    Result<> spend(std::int64_t elements, std::int64_t each, const CallLimits& limits) {
        const auto more = checked_mul(static_cast<std::uint64_t>(elements),
                                      static_cast<std::uint64_t>(std::max<std::int64_t>(each, 1)));
        const auto total = more ? checked_add(work, *more) : std::nullopt;
        if (!total || *total > limits.work)
            return mismatch(ErrorCode::limit_exceeded, "", "work of a call", cat("at most ", limits.work),
                            total ? std::to_string(*total) : "beyond 64 bits");
        work = *total;
        return {};
    }
};

/// Merges neighbouring dimensions that every operand walks as one, and drops those of extent 1.
/// `strides[d]` points to each operand's stride of dimension d.
void collapse(int& rank, std::int64_t* extents, std::span<cpu::Operand> operands,
              std::int64_t (cpu::Operand::*strides)[cpu::max_rank]) noexcept {
    int kept = 0;
    for (int d = 0; d < rank; ++d) {
        if (extents[d] == 1) continue;
        const bool merges =
            kept > 0 && std::all_of(operands.begin(), operands.end(), [&](const cpu::Operand& o) {
                // The products wrap like the addresses they stand for.
                return static_cast<std::uint64_t>((o.*strides)[kept - 1]) ==
                       static_cast<std::uint64_t>((o.*strides)[d]) * static_cast<std::uint64_t>(extents[d]);
            });
        const int to = merges ? kept - 1 : kept;
        extents[to] = merges ? extents[to] * extents[d] : extents[d];
        for (cpu::Operand& o : operands) (o.*strides)[to] = (o.*strides)[d];
        if (!merges) ++kept;
    }
    for (int d = kept; d < cpu::max_rank; ++d) {
        extents[d] = 1;
        for (cpu::Operand& o : operands) (o.*strides)[d] = 0;
    }
    rank = kept;
}

/// The operand's elements, in the order of the loop, are row-major memory from its beginning to `count`.
bool covers(const PreparedLoop& loop, const cpu::Operand& o, std::int64_t count) noexcept {
    const cpu::LoopCall& c = loop.call;
    if (c.outer_rank > 1 || c.reduced_rank > 1) return false;
    const std::int64_t outer = c.outer_rank == 1 ? c.outer_extent[0] : 1;
    const std::int64_t reduced = c.reduced_rank == 1 ? c.reduced_extent[0] : 1;
    return outer * reduced == count && (reduced == 1 || o.reduced[0] == 1) && (outer == 1 || o.outer[0] == reduced);
}

bool is_used_by_outer_phase(const Loop& loop, std::size_t operand) noexcept {
    for (const Phase& phase : loop.phases)
        for (const Instr& i : phase.instrs) {
            const bool memory = i.op == ScalarOp::load || i.op == ScalarOp::store || i.op == ScalarOp::load_at;
            if (phase.outer && memory && i.b == operand) return true;
        }
    return false;
}

/// Only load_at reads it, which holds every position against the memory.
bool is_read_by_position(const Loop& loop, std::size_t operand) noexcept {
    for (const Phase& phase : loop.phases)
        for (const Instr& i : phase.instrs)
            if ((i.op == ScalarOp::load || i.op == ScalarOp::store) && i.b == operand) return false;
    return true;
}

Result<PreparedLoop> resolve_loop(Resolver& r, const Loop& loop, const CallLimits& limits) {
    PreparedLoop out;
    std::vector<std::int64_t> extents;
    for (const std::uint32_t e : loop.extents) extents.push_back(r.value(e));
    const auto outer_extents = std::span(extents).first(loop.outer_rank);
    const auto outer = r.count(outer_extents);
    if (!outer) return std::unexpected(outer.error());
    const auto total = r.count(extents);
    if (!total) return std::unexpected(total.error());
    std::int64_t instrs = 0;
    for (const Phase& phase : loop.phases) instrs += static_cast<std::int64_t>(phase.instrs.size());
    if (auto ok = r.spend(std::max(*total, *outer), instrs, limits); !ok) return std::unexpected(ok.error());

    out.outer_count = *outer;
    out.call.outer_rank = static_cast<int>(loop.outer_rank);
    out.call.reduced_rank = static_cast<int>(extents.size() - loop.outer_rank);
    for (int d = 0; d < cpu::max_rank; ++d) out.call.outer_extent[d] = out.call.reduced_extent[d] = 1;
    for (std::size_t d = 0; d < extents.size(); ++d)
        (d < loop.outer_rank ? out.call.outer_extent[d] : out.call.reduced_extent[d - loop.outer_rank]) = extents[d];

    for (std::size_t i = 0; i < loop.operands.size(); ++i) {
        const Operand& o = loop.operands[i];
        cpu::Operand& to = out.operands.emplace_back();
        to = {};
        to.dtype = o.dtype;
        if (o.kind == OperandKind::accumulator) {
            // Sums are row-major over the whole outer space.
            std::int64_t step = 1;
            for (std::size_t d = extents.size(); d-- > 0; step *= extents[d]) to.outer[d] = step;
            continue;
        }
        for (std::size_t d = 0; d < extents.size(); ++d)
            (d < loop.outer_rank ? to.outer[d] : to.reduced[d - loop.outer_rank]) = r.value(o.strides[d]);
        if (o.kind == OperandKind::iota) {
            to.start = r.value(o.offset);
            continue;
        }
        // An outer phase reads and writes its operands even where a reduced extent is 0; a full one does not run then.
        std::vector<std::int64_t> reach = extents;
        if (is_used_by_outer_phase(loop, i))
            for (std::size_t d = loop.outer_rank; d < reach.size(); ++d) reach[d] = std::max<std::int64_t>(reach[d], 1);
        // Positions in no memory are found out of range one by one.
        const bool is_nowhere = r.elements(o) == 0 && is_read_by_position(loop, i);
        if (auto ok = is_nowhere ? Result<>() : r.check_view(o, reach); !ok)
            return std::unexpected(std::move(ok.error()).in(cat("operands[", i, "]")));
        to.lo = -r.start(o);
        to.hi = r.elements(o) - r.start(o);
        Patch patch{};
        bool patched = false;
        to.base = r.address(o, patch, patched);
        patch.operand = static_cast<std::uint32_t>(i);
        if (patched) out.patches.push_back(patch);
    }
    collapse(out.call.outer_rank, out.call.outer_extent, out.operands, &cpu::Operand::outer);
    collapse(out.call.reduced_rank, out.call.reduced_extent, out.operands, &cpu::Operand::reduced);
    // A reduction over dimensions of extent 1 is still one.
    if (loop.outer_rank < extents.size() && out.call.reduced_rank == 0) out.call.reduced_rank = 1;

    std::set<std::uint32_t> covered;
    for (const Phase& phase : loop.phases) {
        out.phases.push_back({static_cast<std::uint32_t>(out.instrs.size()),
                              static_cast<std::uint32_t>(phase.instrs.size()), phase.outer});
        for (const Instr& i : phase.instrs) {
            out.instrs.push_back({i.op, i.cls, i.from, i.to, i.dst, i.a, i.b, i.c});
            if (i.op != ScalarOp::store || loop.operands[i.b].space != Space::output) continue;
            const Operand& o = loop.operands[i.b];
            const auto count = element_count(r.state.output_shapes[o.index]).value_or(0);
            PreparedLoop outer_only;
            outer_only.call = out.call;
            if (phase.outer) outer_only.call.reduced_rank = 0;
            if (r.value(o.offset) == 0 && covers(outer_only, out.operands[i.b], count)) covered.insert(o.index);
        }
    }
    std::erase_if(r.state.fill, [&](std::uint32_t index) { return covered.contains(index); });
    return out;
}

Result<PreparedGemm> resolve_gemm(Resolver& r, const Gemm& gemm, const CallLimits& limits) {
    PreparedGemm out;
    const std::int64_t m = r.value(gemm.m), n = r.value(gemm.n), k = r.value(gemm.k);
    std::vector<std::int64_t> a_extents, b_extents;
    for (const std::uint32_t e : gemm.batch) a_extents.push_back(r.value(e));
    out.batch = a_extents;
    b_extents = a_extents;
    a_extents.insert(a_extents.end(), {m, k});
    b_extents.insert(b_extents.end(), {k, n});
    const std::size_t rank = out.batch.size();
    for (const auto& extents : {a_extents, b_extents})
        if (const auto ok = r.count(extents); !ok) return std::unexpected(ok.error());
    if (auto ok = r.check_view(gemm.a, a_extents); !ok) return std::unexpected(std::move(ok.error()).in("a"));
    if (auto ok = r.check_view(gemm.b, b_extents); !ok) return std::unexpected(std::move(ok.error()).in("b"));
    auto epilogue = resolve_loop(r, gemm.epilogue, limits);
    if (!epilogue) return std::unexpected(std::move(epilogue.error()).in("epilogue"));
    out.epilogue = std::move(*epilogue);
    if (auto ok = r.spend(out.epilogue.outer_count, k, limits); !ok) return std::unexpected(ok.error());

    out.call.a_type = gemm.a.dtype;
    out.call.b_type = gemm.b.dtype;
    out.call.m = m;
    out.call.n = n;
    out.call.k = k;
    // A factor without elements is not read, and its strides may be any numbers.
    const auto is_empty = [](const auto& extents) {
        return std::find(extents.begin(), extents.end(), 0) != extents.end();
    };
    const bool a_empty = is_empty(a_extents), b_empty = is_empty(b_extents);
    const auto stride = [&](const Operand& o, std::size_t d) {
        return (&o == &gemm.a ? a_empty : b_empty) ? 0 : r.value(o.strides[d]);
    };
    out.call.a_m = stride(gemm.a, rank);
    out.call.a_k = stride(gemm.a, rank + 1);
    out.call.b_k = stride(gemm.b, rank);
    out.call.b_n = stride(gemm.b, rank + 1);
    for (std::size_t d = 0; d < rank; ++d) {
        out.a_strides.push_back(stride(gemm.a, d));
        out.b_strides.push_back(stride(gemm.b, d));
    }
    out.call.a = r.address(gemm.a, out.a, out.patch_a);
    out.call.b = r.address(gemm.b, out.b, out.patch_b);

    // A batch that shares B and continues A's rows is one taller product.
    while (!out.batch.empty() && out.b_strides.back() == 0 &&
           (out.call.m == 1 || out.batch.back() == 1 || out.a_strides.back() == out.call.m * out.call.a_m)) {
        if (out.call.m == 1) out.call.a_m = out.a_strides.back();
        out.call.m *= out.batch.back();
        out.batch.pop_back();
        out.a_strides.pop_back();
        out.b_strides.pop_back();
    }
    for (const std::int64_t e : out.batch) out.batch_count *= e;

    const RegClass sums = class_of(gemm.epilogue.operands[0].dtype);
    out.sum_size = sums == RegClass::f32 ? 4 : 8;
    // A row wider than a panel is still done whole.
    const auto row = static_cast<std::int64_t>(out.sum_size) * std::max<std::int64_t>(n, 1);
    out.panel = std::max<std::int64_t>(1, static_cast<std::int64_t>(panel_bytes) / row);

    // load accumulator, store it unchanged into row-major memory of its own class: nothing to do after the product.
    const auto& e = out.epilogue;
    if (e.instrs.size() == 2 && e.instrs[0].op == ScalarOp::load && e.instrs[0].b == 0 &&
        e.instrs[1].op == ScalarOp::store && e.operands.size() == 2) {
        const DType stored = e.operands[1].dtype;
        const bool same =
            (sums == RegClass::f32 && stored == DType::f32) || stored == DType::f64 || stored == DType::i64;
        const bool flat = e.call.outer_rank == 0 || (e.call.outer_rank == 1 && e.operands[1].outer[0] == 1);
        out.direct = same && flat;
    }
    return out;
}

}  // namespace

Result<> CpuWorkspace::prepare(const CpuProgram& program, std::span<const std::int64_t> symbols) {
    State& s = *state_;
    if (s.program == &program && std::equal(symbols.begin(), symbols.end(), s.symbols.begin(), s.symbols.end()))
        return {};
    s = State();
    const Program& plan = *program.program_;
    const FunctionSpec& function = *program.function_;
    s.exprs.resize(std::max(plan.exprs.size(), function.exprs.size()));

    // Shapes come from the function's own table, everything else from the plan's.
    if (auto ok = evaluate(function.exprs, symbols, s.exprs); !ok) return ok;
    const auto dims = [&](const TensorSpec& spec) {
        Dims out;
        for (const std::uint32_t e : spec.shape) out.push_back(s.exprs[e]);
        return out;
    };
    std::uint64_t total_output = 0;
    for (const TensorSpec& spec : function.inputs) s.input_shapes.push_back(dims(spec));
    for (std::size_t i = 0; i < function.outputs.size(); ++i) {
        const TensorSpec& spec = function.outputs[i];
        s.output_shapes.push_back(dims(spec));
        const auto count = element_count(s.output_shapes.back());
        const auto bytes = count ? checked_mul(*count, static_cast<std::int64_t>(size_of(spec.dtype))) : std::nullopt;
        if (!bytes)
            return fail(code, cat("outputs[", i, "]"), "shape ", to_string(s.output_shapes.back()), " has no size");
        if (static_cast<std::uint64_t>(*bytes) > program.limits_.output_bytes - total_output)
            return mismatch(ErrorCode::limit_exceeded, cat("outputs[", i, "]"), "bytes of all outputs",
                            cat("at most ", program.limits_.output_bytes), cat(total_output, " and ", *bytes, " more"));
        total_output += static_cast<std::uint64_t>(*bytes);
        s.output_bytes.push_back(static_cast<std::uint64_t>(*bytes));
        s.fill.push_back(static_cast<std::uint32_t>(i));
    }
    if (auto ok = evaluate(plan.exprs, symbols, s.exprs); !ok) return ok;

    std::uint64_t end = 0;
    const auto reserve = [&](std::int64_t size) -> Result<std::uint64_t> {
        const auto start = size < 0 ? std::nullopt : checked_align(end, 64);
        const auto stop = start ? checked_add(*start, static_cast<std::uint64_t>(size)) : std::nullopt;
        if (!stop) return fail(code, "slots", "a slot of ", size, " bytes");
        end = *stop;
        return *start;
    };
    for (const std::uint32_t e : plan.slots) {
        const auto at = reserve(s.exprs[e]);
        if (!at) return std::unexpected(at.error());
        s.slot_offsets.push_back(*at);
        s.slot_sizes.push_back(static_cast<std::uint64_t>(s.exprs[e]));
    }
    std::size_t registers = 0;
    std::int64_t widest = 0;
    bool gemm = false;
    const auto count_registers = [&](const Loop& loop) {
        for (const Phase& phase : loop.phases)
            for (const Instr& i : phase.instrs) registers = std::max<std::size_t>(registers, i.dst + 1u);
    };
    for (const Step& step : plan.steps) {
        if (const auto* loop = std::get_if<Loop>(&step)) count_registers(*loop);
        if (const auto* product = std::get_if<Gemm>(&step)) {
            gemm = true;
            count_registers(product->epilogue);
            widest = std::max(widest, s.exprs[product->n]);
        }
    }
    const auto row = checked_mul<std::int64_t>(widest, 8);
    if (!row) return fail(code, "slots", "a row of ", widest, " sums");
    const auto registers_at =
        reserve(static_cast<std::int64_t>((registers + cpu::scratch_registers) * cpu::register_bytes));
    const auto sums_at = reserve(gemm ? std::max(*row, static_cast<std::int64_t>(panel_bytes)) : 0);
    const auto scratch_at = reserve(gemm ? static_cast<std::int64_t>(cpu::gemm_scratch_bytes) : 0);
    if (!registers_at) return std::unexpected(registers_at.error());
    if (!sums_at) return std::unexpected(sums_at.error());
    if (!scratch_at) return std::unexpected(scratch_at.error());
    if (end > program.limits_.workspace_bytes)
        return mismatch(ErrorCode::limit_exceeded, "", "workspace bytes",
                        cat("at most ", program.limits_.workspace_bytes), end);
    s.memory = allocate_aligned(end);
    if (!s.memory) return fail(ErrorCode::out_of_memory, "", "cannot allocate ", end, " bytes of workspace");
    s.memory_bytes = end;
    // A plan that reads what it never wrote must find nothing of somebody else's there.
    std::memset(s.memory.get(), 0, *registers_at);
    s.registers = s.memory.get() + *registers_at;
    s.sums = s.memory.get() + *sums_at;
    s.gemm_scratch = s.memory.get() + *scratch_at;

    Resolver resolver{plan, function, program.constants_, s};
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const auto in_step = [&](Error& error) { return std::unexpected(std::move(error).in(cat("steps[", i, "]"))); };
        if (const auto* loop = std::get_if<Loop>(&plan.steps[i])) {
            auto prepared = resolve_loop(resolver, *loop, program.limits_);
            if (!prepared) return in_step(prepared.error());
            s.steps.emplace_back(std::move(*prepared));
        } else if (const auto* product = std::get_if<Gemm>(&plan.steps[i])) {
            auto prepared = resolve_gemm(resolver, *product, program.limits_);
            if (!prepared) return in_step(prepared.error());
            s.steps.emplace_back(std::move(*prepared));
        }
    }
    // Pointers into the steps' own vectors, set once these no longer move.
    for (PreparedStep& step : s.steps) {
        const bool product = std::holds_alternative<PreparedGemm>(step);
        PreparedLoop& loop = product ? std::get_if<PreparedGemm>(&step)->epilogue : *std::get_if<PreparedLoop>(&step);
        const Step& source = plan.steps[static_cast<std::size_t>(&step - s.steps.data())];
        loop.call.instrs = loop.instrs.data();
        loop.call.phases = loop.phases.data();
        loop.call.phase_count = static_cast<std::uint32_t>(loop.phases.size());
        loop.call.constants =
            (product ? std::get_if<Gemm>(&source)->epilogue : *std::get_if<Loop>(&source)).constants.data();
        loop.call.symbols = s.exprs.data();
        loop.call.operands = loop.operands.data();
        loop.call.registers = s.registers;
        if (product) std::get_if<PreparedGemm>(&step)->call.scratch = s.gemm_scratch;
    }
    s.symbols.assign(symbols.begin(), symbols.end());
    s.program = &program;
    return {};
}

}  // namespace lyo
