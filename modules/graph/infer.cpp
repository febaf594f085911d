module lyo.graph;

import lyo.prelude;
import lyo.base;

namespace lyo {

Result<Sym> InferContext::equal(const Sym& a, const Sym& b, std::string_view what) const {
    if (a == b) return a;
    if (a.is_constant() && b.is_constant()) return error(what, ": sizes ", a.to_string(), " and ", b.to_string());
    relations_->push_back({Relation::Kind::equal, a, b});
    return a.is_constant() ? a : b;
}

Result<Shape> InferContext::broadcast(const Shape& a, const Shape& b) const {
    const Shape& longer = a.size() >= b.size() ? a : b;
    const Shape& shorter = a.size() >= b.size() ? b : a;
    Shape out = longer;
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        Sym& size = out[longer.size() - shorter.size() + i];
        const Sym& other = shorter[i];
        if (other == Sym(1)) continue;
        if (size == Sym(1)) {
            size = other;
            continue;
        }
        auto same = equal(size, other, "operands do not broadcast");
        if (!same) return std::unexpected(same.error());
        size = *same;
    }
    return out;
}

}  // namespace lyo
