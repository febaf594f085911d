// Which items run as one kernel. Each starts alone; a reader joins what it reads when both fit one iteration space and
// the value is read exactly where it is made, so that it can stay in a register.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;

namespace lyo {

std::optional<Shape> space_strides(const Access& access, const Shape& shape, const Group& group) {
    Shape strides(shape.size(), Sym(0));
    const Shape& from = access.view.shape;
    if (from.size() > shape.size()) return std::nullopt;
    for (std::size_t d = 0; d < from.size(); ++d)
        if (from[d] != Sym(1)) strides[shape.size() - from.size() + d] = access.view.strides[d];
    if (shape == group.space) return strides;
    if (group.reduced.empty()) return std::nullopt;
    if (shape == kept_shape(group.space, group.reduced)) return strides;
    if (shape != squeezed_shape(group.space, group.reduced)) return std::nullopt;
    Shape out;
    for (std::size_t d = 0, next = 0; d < group.space.size(); ++d) {
        const bool reduced = std::find(group.reduced.begin(), group.reduced.end(), d) != group.reduced.end();
        out.push_back(reduced ? Sym(0) : strides[next++]);
    }
    return out;
}

bool reads_in_place(const Access& access, const Shape& reader, const Item& item, const Group& group) {
    if (access.view.offset != Sym(0)) return false;
    const Access made{access.base, {0, item.type.shape, row_major(item.type.shape)}};
    const auto read = space_strides(access, reader, group);
    const auto written = space_strides(made, item.type.shape, group);
    if (!read || !written) return false;
    for (std::size_t d = 0; d < group.space.size(); ++d)
        if (group.space[d] != Sym(1) && (*read)[d] != (*written)[d]) return false;
    return true;
}

namespace {

/// Reading an inline item costs no memory, except for kernels that take addresses.
bool reads_memory(const Flow& f, const Item& reader, const std::optional<Access>& operand) {
    if (!operand || operand->base.kind != BaseId::Kind::item) return false;
    return reader.takes_address(operand) || !f.items[operand->base.index].is_inline();
}

class Grouper {
  public:
    Grouper(Flow& f, std::size_t max_items) : f_(f), max_items_(max_items) {}

    void run() {
        f_.groups.clear();
        for (std::uint32_t i = 0; i < f_.items.size(); ++i) {
            Item& item = f_.items[i];
            item.group = i;
            Group group;
            group.items = {i};
            group.matmul = item.kind == Item::Kind::matmul;
            group.cat = item.kind == Item::Kind::cat;
            group.space = item.kind == Item::Kind::reduction ? item.operands[0]->view.shape : item.type.shape;
            group.reduced = item.reduced;
            f_.groups.push_back(std::move(group));
        }
        for (std::uint32_t i = 0; i < f_.items.size(); ++i) {
            const Item& item = f_.items[i];
            if (item.kind == Item::Kind::matmul || item.kind == Item::Kind::cat || item.is_inline()) continue;
            for (const auto& o : item.operands)
                if (reads_memory(f_, item, o) && !item.takes_address(o))
                    merge(f_.items[o->base.index].group, f_.items[i].group);
        }
        drop_unread();
        order();
    }

  private:
    std::set<std::uint32_t> reads(std::uint32_t g) const {
        std::set<std::uint32_t> out;
        for (const std::uint32_t i : f_.groups[g].items)
            for (const auto& o : f_.items[i].operands)
                if (reads_memory(f_, f_.items[i], o)) {
                    const std::uint32_t other = f_.items[o->base.index].group;
                    if (other != g) out.insert(other);
                }
        return out;
    }

    /// Does `from` depend on `to` by way of a third group?
    bool reaches_around(std::uint32_t from, std::uint32_t to) const {
        std::vector<std::uint32_t> stack;
        std::set<std::uint32_t> seen;
        for (const std::uint32_t g : reads(from))
            if (g != to && seen.insert(g).second) stack.push_back(g);
        while (!stack.empty()) {
            const std::uint32_t g = stack.back();
            stack.pop_back();
            for (const std::uint32_t next : reads(g)) {
                if (next == to) return true;
                if (seen.insert(next).second) stack.push_back(next);
            }
        }
        return false;
    }

    /// The group that both would be, or nullopt.
    std::optional<Group> joined(const Group& a, const Group& b) const {
        if (a.cat || b.cat || (a.matmul && b.matmul) || a.items.size() + b.items.size() > max_items_)
            return std::nullopt;
        Group out;
        const bool a_reduces = !a.reduced.empty(), b_reduces = !b.reduced.empty();
        if (a_reduces == b_reduces) {
            if (a.space != b.space || a.reduced != b.reduced) return std::nullopt;
            out.space = a.space;
            out.reduced = a.reduced;
        } else {
            const Group& reducing = a_reduces ? a : b;
            const Shape& other = a_reduces ? b.space : a.space;
            if (other != reducing.space && other != kept_shape(reducing.space, reducing.reduced) &&
                other != squeezed_shape(reducing.space, reducing.reduced))
                return std::nullopt;
            out.space = reducing.space;
            out.reduced = reducing.reduced;
        }
        out.matmul = a.matmul || b.matmul;
        if (out.matmul && !out.reduced.empty()) return std::nullopt;
        out.items = a.items;
        out.items.insert(out.items.end(), b.items.begin(), b.items.end());
        std::sort(out.items.begin(), out.items.end());
        for (const std::uint32_t i : out.items) {
            const Item& reader = f_.items[i];
            const Shape& shape = reader.kind == Item::Kind::reduction ? out.space : reader.type.shape;
            for (const auto& o : reader.operands) {
                if (!reads_memory(f_, reader, o)) continue;
                if (!std::binary_search(out.items.begin(), out.items.end(), o->base.index)) continue;
                if (reader.takes_address(o)) return std::nullopt;
                if (!reads_in_place(*o, shape, f_.items[o->base.index], out)) return std::nullopt;
            }
        }
        return out;
    }

    void merge(std::uint32_t into, std::uint32_t from) {
        if (into == from) return;
        auto group = joined(f_.groups[into], f_.groups[from]);
        if (!group || reaches_around(into, from) || reaches_around(from, into)) return;
        for (const std::uint32_t i : group->items) f_.items[i].group = into;
        f_.groups[into] = std::move(*group);
        f_.groups[from].alive = false;
    }

    /// Groups of inline items live only where somebody needs their memory.
    void drop_unread() {
        std::set<std::uint32_t> needed;
        for (const Item& item : f_.items)
            for (const auto& o : item.operands)
                if (reads_memory(f_, item, o)) needed.insert(f_.items[o->base.index].group);
        for (const Access& o : f_.outputs)
            if (o.base.kind == BaseId::Kind::item) needed.insert(f_.items[o.base.index].group);
        for (std::uint32_t g = 0; g < f_.groups.size(); ++g)
            if (f_.groups[g].alive && !needed.contains(g)) {
                const bool only_inline = f_.groups[g].items.size() == 1 && f_.items[f_.groups[g].items[0]].is_inline();
                if (only_inline) f_.groups[g].alive = false;
            }
    }

    /// Every group after those that it reads; among the ready ones, the one with the earliest item first.
    void order() {
        f_.order.clear();
        std::vector<bool> done(f_.groups.size());
        const auto place = [&](auto& self, std::uint32_t g) -> void {
            if (done[g]) return;
            done[g] = true;
            for (const std::uint32_t other : reads(g)) self(self, other);
            f_.order.push_back(g);
        };
        for (const Item& item : f_.items)
            if (f_.groups[item.group].alive) place(place, item.group);
    }

    Flow& f_;
    std::size_t max_items_;
};

}  // namespace

void make_groups(Flow& f, std::size_t max_items) { Grouper(f, max_items).run(); }

}  // namespace lyo
