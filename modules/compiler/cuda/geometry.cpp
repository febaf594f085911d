// What a loop looks like to a GPU: fewer dimensions, 32-bit indices where they are enough, and how threads share it.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;
import :cuda;

namespace lyo::cuda {
namespace {

/// Neighbouring dimensions that every view walks as one become one; those of extent 1 go.
void collapse(Shape& extents, std::vector<View>& views, Shape View::* strides) {
    std::size_t kept = 0;
    for (std::size_t d = 0; d < extents.size(); ++d) {
        if (extents[d] == Sym(1)) continue;
        const bool merges = kept > 0 && std::all_of(views.begin(), views.end(), [&](const View& v) {
                                return (v.*strides)[kept - 1] == (v.*strides)[d] * extents[d];
                            });
        const std::size_t to = merges ? kept - 1 : kept;
        extents[to] = merges ? extents[to] * extents[d] : extents[d];
        for (View& v : views) (v.*strides)[to] = (v.*strides)[d];
        if (!merges) ++kept;
    }
    extents.resize(kept);
    for (View& v : views) (v.*strides).resize(kept);
}

/// The farthest element from a view's first, or nullopt when that is not constant.
std::optional<std::int64_t> reach_of(const Geometry& g, const View& v) {
    std::int64_t reach = 0;
    const auto add = [&](const Shape& extents, const Shape& strides) {
        for (std::size_t d = 0; d < extents.size(); ++d) {
            if (!extents[d].is_constant() || !strides[d].is_constant()) return false;
            const auto step = checked_mul(std::max<std::int64_t>(extents[d].value() - 1, 0),
                                          strides[d].value() < 0 ? -strides[d].value() : strides[d].value());
            const auto sum = step ? checked_add(reach, *step) : std::nullopt;
            if (!sum) return false;
            reach = *sum;
        }
        return true;
    };
    if (!v.offset.is_constant() || !add(g.outer, v.outer) || !add(g.reduced, v.reduced)) return std::nullopt;
    const auto total = checked_add(reach, v.offset.value() < 0 ? -v.offset.value() : v.offset.value());
    return total;
}

constexpr std::int64_t index_limit = std::int64_t{1} << 30;  // room for what is added to an index

}  // namespace

bool is_multiple(const Sym& value, std::int64_t n) {
    if (n == 1) return true;
    switch (value.kind()) {
        case Sym::Kind::constant:
            return value.value() % n == 0;
        case Sym::Kind::product:
            return std::any_of(value.operands().begin(), value.operands().end(),
                               [&](const Sym& s) { return is_multiple(s, n); });
        case Sym::Kind::sum:
            return std::all_of(value.operands().begin(), value.operands().end(),
                               [&](const Sym& s) { return is_multiple(s, n); });
        default:
            return false;
    }
}

Geometry geometry_of(const Loop& loop, const SymOf& sym, bool collapsed) {
    Geometry g;
    for (std::size_t d = 0; d < loop.extents.size(); ++d)
        (d < loop.outer_rank ? g.outer : g.reduced).push_back(sym(loop.extents[d]));
    g.reduces = loop.outer_rank < loop.extents.size();
    g.outer_count = element_count(g.outer);
    g.reduced_count = element_count(g.reduced);
    for (const Operand& o : loop.operands) {
        View& v = g.views.emplace_back();
        v.operand = &o;
        // Sums have no place in memory and no strides.
        const bool placed = o.kind != OperandKind::accumulator;
        if (placed) v.offset = sym(o.offset);
        for (std::size_t d = 0; d < loop.extents.size(); ++d)
            (d < loop.outer_rank ? v.outer : v.reduced).push_back(placed ? sym(o.strides[d]) : Sym(0));
    }
    if (collapsed) {
        collapse(g.outer, g.views, &View::outer);
        collapse(g.reduced, g.views, &View::reduced);
    }
    g.small = std::all_of(g.views.begin(), g.views.end(), [&](const View& v) {
        const auto reach = reach_of(g, v);
        return reach && *reach < index_limit;
    });
    const Sym total = g.outer_count * g.reduced_count;
    g.small = g.small && total.is_constant() && total.value() < index_limit;
    return g;
}

namespace {

/// Lanes for views along a dimension of the given extent: as many as 16 bytes of the widest contiguous view, if at
/// least one view can then be moved in packs.
int lanes_for(const std::vector<View>& views, const Sym& extent, Shape View::* inner, bool any_extent) {
    std::size_t widest = 0;
    for (const View& v : views)
        if (v.operand->kind == OperandKind::tensor && !(v.*inner).empty() && (v.*inner).back() == Sym(1))
            widest = std::max(widest, size_of(v.operand->dtype));
    if (widest == 0) return 1;
    int lanes = std::min<int>(static_cast<int>(16 / widest), 8);
    while (lanes > 1 && !any_extent && !is_multiple(extent, lanes)) lanes /= 2;
    return lanes;
}

int power_of_two_at_least(std::int64_t n) noexcept {
    int out = 1;
    while (out < n && out < 1024) out *= 2;
    return out;
}

Sym ceil_div(const Sym& a, std::int64_t b) { return b == 1 ? a : floor_div(a + Sym(b - 1), Sym(b)); }

/// Reads of the reduced space are next to one another in the outer space, not in the reduced one.
bool is_columnar(const Geometry& g) {
    bool columnar = false;
    for (const View& v : g.views) {
        if (v.operand->kind != OperandKind::tensor || v.reduced.empty() || v.reduced.back() == Sym(0)) continue;
        const Sym across = v.outer.empty() ? Sym(0) : v.outer.back();
        if (v.reduced.back() == Sym(1) && across != Sym(0)) return false;
        if (v.reduced.back() != Sym(1) && across == Sym(1)) columnar = true;
    }
    return columnar;
}

}  // namespace

Schedule schedule_of(const Geometry& g, int threads) {
    constexpr std::int64_t max_blocks = (std::int64_t{1} << 31) - 1;
    Schedule s;
    s.threads = threads != 0 ? threads : 256;
    const auto finish = [&](const Sym& blocks) {
        s.blocks = min(blocks, Sym(max_blocks));
        return s;
    };
    if (!g.reduces) {
        if (!g.outer.empty()) s.lanes = lanes_for(g.views, g.outer.back(), &View::outer, g.outer.size() == 1);
        return finish(ceil_div(g.outer_count, static_cast<std::int64_t>(s.threads) * s.lanes));
    }
    const bool known = g.reduced_count.is_constant();
    const std::int64_t count = known ? g.reduced_count.value() : 0;
    if (is_columnar(g)) {
        s.columns = true;
        // Enough threads down a column to keep the memory busy, few enough that each has something to add up.
        s.width = known ? std::clamp(power_of_two_at_least(count / 16), 1, 16) : 8;
        if (threads != 0) s.width = threads / 32;
        s.threads = s.width * 32;
        return finish(ceil_div(g.outer_count, 32));
    }
    if (!g.reduced.empty()) s.lanes = lanes_for(g.views, g.reduced.back(), &View::reduced, false);
    constexpr std::int64_t packs = 4;  // a thread's share of a row
    s.width = known ? power_of_two_at_least((count + s.lanes * packs - 1) / (s.lanes * packs)) : 256;
    if (threads != 0 && s.width > 32) s.width = threads;
    // Rows that share a block are parts of a warp each; a wider one has the block to itself.
    if (threads == 0) s.threads = s.width > 32 ? s.width : 128;
    if (known) {
        const std::int64_t items =
            (count + static_cast<std::int64_t>(s.width) * s.lanes - 1) / (static_cast<std::int64_t>(s.width) * s.lanes);
        if (items <= 8) s.items = static_cast<int>(items);
    }
    return finish(ceil_div(g.outer_count, s.threads / s.width));
}

}  // namespace lyo::cuda
