module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;

namespace lyo {

ExprPool::ExprPool(std::span<const SymbolRange> symbols) {
    for (const SymbolRange& s : symbols) symbols_.emplace(s.name, static_cast<std::uint32_t>(symbols_.size()));
    // In the order of declaration, which is the order of the function's symbol table.
    std::uint32_t index = 0;
    for (const SymbolRange& s : symbols) symbols_[s.name] = index++;
}

std::uint32_t ExprPool::add(const Expr& expr) {
    const auto [at, fresh] =
        entries_.try_emplace({expr.op, expr.value, expr.a, expr.b}, static_cast<std::uint32_t>(exprs_.size()));
    if (fresh) exprs_.push_back(expr);
    return at->second;
}

std::uint32_t ExprPool::operator()(const Sym& sym) {
    const std::string text = sym.to_string();
    if (const auto at = known_.find(text); at != known_.end()) return at->second;
    std::uint32_t out = 0;
    switch (sym.kind()) {
        case Sym::Kind::constant:
            out = add({ExprOp::constant, sym.value(), 0, 0});
            break;
        case Sym::Kind::symbol:
            out = add({ExprOp::symbol, 0, symbols_.find(sym.name())->second, 0});
            break;
        default: {
            static constexpr ExprOp ops[] = {ExprOp::constant,  ExprOp::symbol, ExprOp::add, ExprOp::mul,
                                             ExprOp::floor_div, ExprOp::mod,    ExprOp::max, ExprOp::min};
            const ExprOp op = ops[static_cast<std::size_t>(sym.kind())];
            const auto operands = sym.operands();
            out = (*this)(operands[0]);
            for (const Sym& operand : operands.subspan(1)) {
                const std::uint32_t next = (*this)(operand);
                out = add({op, 0, out, next});
            }
        }
    }
    known_.emplace(text, out);
    syms_.emplace(out, sym);
    return out;
}

}  // namespace lyo
