// The static memory plan: slots that are never in use at the same time become one.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;

namespace lyo {
namespace {

template <class Visit>
void each_operand(Step& step, Visit visit) {
    Loop* loop = std::get_if<Loop>(&step);
    if (auto* gemm = std::get_if<Gemm>(&step)) {
        visit(gemm->a);
        visit(gemm->b);
        loop = &gemm->epilogue;
    }
    for (Operand& operand : loop->operands) visit(operand);
}

struct Life {
    std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;
};

struct Shared {
    Sym size;
    std::size_t busy_until = 0;
};

}  // namespace

void plan_memory(Program& program, std::vector<Sym> sizes, ExprPool& exprs) {
    std::vector<Life> lives(sizes.size());
    for (std::size_t s = 0; s < program.steps.size(); ++s)
        each_operand(program.steps[s], [&](Operand& o) {
            if (o.kind != OperandKind::tensor || o.space != Space::slot) return;
            lives[o.index].first = std::min(lives[o.index].first, s);
            lives[o.index].last = std::max(lives[o.index].last, s);
        });
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < sizes.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return lives[a].first < lives[b].first; });
    std::vector<Shared> shared;
    std::vector<std::uint32_t> target(sizes.size());
    for (const std::uint32_t slot : order) {
        if (lives[slot].first > lives[slot].last) continue;  // no step uses it
        // The free one of this very size; else, among constant sizes, the largest that is free, grown if need be.
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < shared.size(); ++i) {
            if (shared[i].busy_until >= lives[slot].first) continue;
            if (shared[i].size == sizes[slot]) {
                best = i;
                break;
            }
            const bool constant = shared[i].size.is_constant() && sizes[slot].is_constant();
            if (constant && (!best || shared[i].size.value() > shared[*best].size.value())) best = i;
        }
        if (!best) {
            shared.push_back({sizes[slot], 0});
            best = shared.size() - 1;
        }
        if (shared[*best].size.is_constant() && sizes[slot].is_constant())
            shared[*best].size = std::max(shared[*best].size.value(), sizes[slot].value());
        shared[*best].busy_until = lives[slot].last;
        target[slot] = static_cast<std::uint32_t>(*best);
    }
    for (Step& step : program.steps)
        each_operand(step, [&](Operand& o) {
            if (o.kind == OperandKind::tensor && o.space == Space::slot) o.index = target[o.index];
        });
    program.slots.clear();
    for (const Shared& s : shared) program.slots.push_back(exprs(s.size));
}

}  // namespace lyo
