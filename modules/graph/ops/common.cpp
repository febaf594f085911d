module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;

namespace lyo::ops {

Result<std::size_t> normalize_dim(const NodeView& node, std::int64_t dim, std::size_t rank) {
    const auto range = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
    if (dim < -range || dim >= range)
        return mismatch(ErrorCode::bad_graph, node.place(), "dim", cat("in [", -range, ", ", range, ")"), dim);
    return static_cast<std::size_t>(dim < 0 ? dim + range : dim);
}

Result<std::vector<std::size_t>> normalize_dims(const NodeView& node, std::span<const std::int64_t> dims,
                                                std::size_t rank) {
    std::vector<std::size_t> out;
    for (const std::int64_t dim : dims) {
        const auto d = normalize_dim(node, dim, rank);
        if (!d) return std::unexpected(d.error());
        if (std::find(out.begin(), out.end(), *d) != out.end()) return node.error("dim ", dim, " is given twice");
        out.push_back(*d);
    }
    return out;
}

Dims unravel(std::size_t linear, const Dims& shape) noexcept {
    Dims out = shape;
    for (std::size_t d = shape.size(); d-- > 0;) {
        const auto size = static_cast<std::size_t>(std::max<std::int64_t>(shape[d], 1));
        out[d] = static_cast<std::int64_t>(linear % size);
        linear /= size;
    }
    return out;
}

std::size_t ravel(const Dims& coordinates, const Dims& shape) noexcept {
    std::size_t out = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
        out = out * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(coordinates[d]);
    return out;
}

std::size_t broadcast_index(std::size_t linear, const Dims& to, const Dims& from) noexcept {
    std::size_t out = 0, step = 1;
    for (std::size_t d = to.size(), f = from.size(); d-- > 0;) {
        const auto size = static_cast<std::size_t>(std::max<std::int64_t>(to[d], 1));
        const std::size_t coordinate = linear % size;
        linear /= size;
        if (f == 0) continue;
        --f;
        if (from[f] != 1) out += coordinate * step;
        step *= static_cast<std::size_t>(from[f]);
    }
    return out;
}

}  // namespace lyo::ops
