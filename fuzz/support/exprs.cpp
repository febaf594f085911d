module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {

std::uint32_t Exprs::add(const Expr& e) {
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (entries[i] == e) return static_cast<std::uint32_t>(i);
    entries.push_back(e);
    return static_cast<std::uint32_t>(entries.size() - 1);
}
std::uint32_t Exprs::constant(std::int64_t value) { return add({ExprOp::constant, value, 0, 0}); }
std::uint32_t Exprs::symbol(std::uint32_t index) { return add({ExprOp::symbol, 0, index, 0}); }
std::uint32_t Exprs::of(ExprOp op, std::uint32_t a, std::uint32_t b) { return add({op, 0, a, b}); }

}  // namespace lyo::fuzz
