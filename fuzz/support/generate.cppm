// Valid artifacts, random within the rules: loops of every kind of phase, views of every kind of stride, products,
// symbols, constants.
export module lyo.fuzz:generate;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :random;
import :parts;

namespace lyo::fuzz {

/// An expression table under construction.
export struct Exprs {
    std::vector<Expr> entries;

    std::uint32_t add(const Expr& e);
    std::uint32_t constant(std::int64_t value);
    std::uint32_t symbol(std::uint32_t index);
    std::uint32_t of(ExprOp op, std::uint32_t a, std::uint32_t b);
};

/// A single function on target "cpu" that loads, hydrates and runs: sizes are small, its views stay in their memory.
export Parts generate(Random& random);

}  // namespace lyo::fuzz
