// One group to steps. A group with reductions becomes phases: what the first reductions need, the reductions, what
// follows from them once per row, what the next ones need, and so on; values of whole rows are computed again in each
// phase that needs them, which costs less than memory to keep them in.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;
import :emit;

namespace lyo {
namespace {

Operand memory_operand(const LowerContext& c, BaseId base, const Sym& offset, const Shape& strides) {
    const Placement place = c.places.find(base)->second;
    Operand out;
    out.dtype = dtype_of(c.f, base);
    out.space = place.space;
    out.index = place.index;
    out.offset = c.exprs(offset);
    for (const Sym& s : strides) out.strides.push_back(c.exprs(s));
    return out;
}

/// The matrix product of a group that has one. Other items may come before it: what a mask is made of, for example.
const Item& product_of(const LowerContext& c, const Group& group) {
    const auto is_product = [&](std::uint32_t i) { return c.f.items[i].kind == Item::Kind::matmul; };
    return c.f.items[*std::find_if(group.items.begin(), group.items.end(), is_product)];
}

class GroupLowering {
  public:
    GroupLowering(const LowerContext& context, const Group& group)
        : c_(context), group_(group), writer_(context.exprs) {
        for (std::size_t d = 0; d < group.space.size(); ++d)
            if (!is_reduced(d)) axes_.push_back(d);
        outer_rank_ = axes_.size();
        axes_.insert(axes_.end(), group.reduced.begin(), group.reduced.end());
        for (const std::uint32_t i : group.items) levels_[i] = level_of(c_.f.items[i]);
    }

    Result<Loop> run() {
        Loop loop;
        for (const std::size_t d : axes_) loop.extents.push_back(c_.exprs(group_.space[d]));
        loop.outer_rank = static_cast<std::uint32_t>(outer_rank_);
        if (group_.matmul) add_accumulator();
        std::size_t last = 0;
        for (const auto& [item, level] : levels_) last = std::max(last, level);
        const bool reduces = !group_.reduced.empty();
        for (std::size_t level = 0; level <= last; ++level) {
            if (reduces) {
                writer_.begin_phase(true);
                full_.clear();
                for (const std::uint32_t i : group_.items)
                    if (is_outer(i) && levels_[i] == level) store(i, value(i));
            }
            writer_.begin_phase(false);
            full_.clear();
            for (const std::uint32_t i : group_.items) {
                const Item& item = c_.f.items[i];
                if (item.kind == Item::Kind::reduction) {
                    if (operand_level(item) == level) outer_[i] = reduce(item);
                } else if (!is_outer(i) && levels_[i] == level) {
                    store(i, value(i));
                }
            }
        }
        if (auto ok = writer_.finish(loop); !ok) return std::unexpected(ok.error());
        std::erase_if(loop.phases, [](const Phase& p) { return p.instrs.empty(); });
        return loop;
    }

  private:
    bool is_reduced(std::size_t d) const {
        return std::find(group_.reduced.begin(), group_.reduced.end(), d) != group_.reduced.end();
    }
    bool in_group(BaseId base) const {
        return base.kind == BaseId::Kind::item &&
               std::binary_search(group_.items.begin(), group_.items.end(), base.index);
    }
    /// Its value is one per row.
    bool is_outer(std::uint32_t i) const {
        return c_.f.items[i].kind == Item::Kind::reduction ||
               (!group_.reduced.empty() && c_.f.items[i].type.shape != group_.space);
    }
    std::size_t operand_level(const Item& item) const {
        std::size_t level = 0;
        for (const auto& o : item.operands)
            if (o && in_group(o->base) && !c_.f.items[o->base.index].is_inline())
                level = std::max(level, levels_.find(o->base.index)->second);
        return level;
    }
    std::size_t level_of(const Item& item) const {
        return operand_level(item) + (item.kind == Item::Kind::reduction ? 1 : 0);
    }

    /// Strides over the space, in the loop's order of axes.
    Shape strides_of(const Access& access, const Shape& reader) const {
        const auto strides = space_strides(access, reader, group_);
        Shape out;
        for (const std::size_t d : axes_) out.push_back(strides ? (*strides)[d] : Sym(0));
        return out;
    }

    void add_accumulator() {
        const DType dtype = product_of(c_, group_).type.dtype;
        Operand sums;
        sums.kind = OperandKind::accumulator;
        sums.dtype = class_of(dtype) == RegClass::f32   ? DType::f32
                     : class_of(dtype) == RegClass::f64 ? DType::f64
                                                        : DType::i64;
        writer_.operand(sums);
    }

    Scalar value(std::uint32_t i) {
        auto& known = is_outer(i) ? outer_ : full_;
        if (const auto at = known.find(i); at != known.end()) return at->second;
        const Item& item = c_.f.items[i];
        const Scalar out = item.kind == Item::Kind::matmul ? sums(item) : compute(item, item.type.shape, nullptr);
        known[i] = out;
        return out;
    }

    Scalar sums(const Item& item) {
        const DType dtype = item.type.dtype;
        if (is_float(dtype)) return writer_.load(0, dtype);
        return writer_.cast(writer_.load(0, DType::i64), dtype);
    }

    /// A pointwise item's value at each element of `reader`'s shape. `through` is the access by which an inline item is
    /// read, or null for an item of this group.
    Scalar compute(const Item& item, const Shape& reader, const Access* through) {
        if (item.kind == Item::Kind::copy) return read(*item.operands[0], reader);
        if (item.kind == Item::Kind::arange) return arange(item, reader, through);
        if (item.kind == Item::Kind::take) {
            const Operand from = memory_operand(c_, item.operands[0]->base, 0, Shape(axes_.size(), Sym(0)));
            return writer_.load_at(writer_.operand(from), read(*item.operands[1], reader), from.dtype);
        }
        std::vector<Scalar> operands;
        for (const auto& o : item.operands) operands.push_back(o ? read(*o, reader) : Scalar{});
        const NodeView view(*c_.f.graph, *item.node->op, item.node->arguments);
        return writer_.cast(item.node->op->def.emit(writer_, view, operands), item.type.dtype);
    }

    Scalar arange(const Item& item, const Shape& reader, const Access* through) {
        const Access whole{{}, {0, item.type.shape, row_major(item.type.shape)}};
        const Access& access = through != nullptr ? *through : whole;
        Operand operand;
        operand.kind = OperandKind::iota;
        operand.dtype = DType::i64;
        operand.offset = c_.exprs(access.view.offset);
        for (const Sym& s : strides_of(access, reader)) operand.strides.push_back(c_.exprs(s));
        const NodeView view(*c_.f.graph, *item.node->op, item.node->arguments);
        const Scalar index = writer_.iota(writer_.operand(operand));
        // Integer sequences stay exact; real ones are computed as start + i * step in double, as PyTorch does.
        const DType wide = is_float(item.type.dtype) ? DType::f64 : DType::i64;
        const auto number = [&](std::size_t i) {
            if (const auto* size = std::get_if<Sym>(&view[i]); size != nullptr && !size->is_constant())
                return writer_.cast(writer_.size(*size), wide);
            if (const auto* size = std::get_if<Sym>(&view[i])) return writer_.constant(size->value(), wide);
            return writer_.constant(view.real(i), wide);
        };
        const Scalar scaled = writer_.op(ScalarOp::mul, writer_.cast(index, wide), number(1));
        return writer_.cast(writer_.op(ScalarOp::add, scaled, number(0)), item.type.dtype);
    }

    /// The element that an operand has at each element of the reader's shape.
    Scalar read(const Access& access, const Shape& reader) {
        if (access.base.kind == BaseId::Kind::item) {
            const Item& item = c_.f.items[access.base.index];
            if (item.is_inline()) return compute(item, reader, &access);
            if (in_group(access.base)) return value(access.base.index);
        }
        const Operand operand = memory_operand(c_, access.base, access.view.offset, strides_of(access, reader));
        return writer_.load(writer_.operand(operand), operand.dtype);
    }

    Scalar reduce(const Item& item) {
        const Scalar operand = read(*item.operands[0], group_.space);
        // A dtype narrower than its register gives its own neutral element where nothing is reduced; infer refuses
        // that.
        return writer_.reduce(item.node->op->def.reduce, operand, item.type.dtype);
    }

    void store(std::uint32_t i, Scalar value) {
        const auto at = c_.stores.find(i);
        if (at == c_.stores.end()) return;
        const Item& item = c_.f.items[i];
        const Access whole{{BaseId::Kind::item, i}, {0, item.type.shape, row_major(item.type.shape)}};
        for (const Placement place : at->second) {
            Operand operand;
            operand.dtype = item.type.dtype;
            operand.space = place.space;
            operand.index = place.index;
            operand.offset = c_.exprs(Sym(0));
            for (const Sym& s : strides_of(whole, item.type.shape)) operand.strides.push_back(c_.exprs(s));
            writer_.store(writer_.operand(operand), value);
        }
    }

    const LowerContext& c_;
    const Group& group_;
    LoopWriter writer_;
    std::vector<std::size_t> axes_;  // of the space, in the loop's order: outer, then reduced
    std::size_t outer_rank_ = 0;
    std::map<std::uint32_t, std::size_t> levels_;
    std::map<std::uint32_t, Scalar> outer_, full_;
};

Result<Gemm> lower_matmul(const LowerContext& c, const Group& group, Loop epilogue) {
    const Item& item = product_of(c, group);
    Gemm out;
    const std::size_t rank = group.space.size(), batch = rank - 2;
    const auto factor = [&](const Access& access, const Sym& rows, const Sym& columns) {
        Shape strides(rank, Sym(0));
        const Shape& shape = access.view.shape;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const std::size_t to = rank - shape.size() + d;
            const Sym& extent = to + 2 == rank ? rows : to + 1 == rank ? columns : group.space[to];
            if (!(shape[d] == Sym(1) && extent != Sym(1))) strides[to] = access.view.strides[d];
        }
        return memory_operand(c, access.base, access.view.offset, strides);
    };
    const Access &a = *item.operands[0], &b = *item.operands[1];
    const Sym k = a.view.shape.back();
    out.a = factor(a, group.space[batch], k);
    out.b = factor(b, k, group.space[batch + 1]);
    for (std::size_t d = 0; d < batch; ++d) out.batch.push_back(c.exprs(group.space[d]));
    out.m = c.exprs(group.space[batch]);
    out.n = c.exprs(group.space[batch + 1]);
    out.k = c.exprs(k);
    out.epilogue = std::move(epilogue);
    return out;
}

/// Each operand copied to its part of the result.
std::vector<Step> lower_cat(const LowerContext& c, std::uint32_t index) {
    const Item& item = c.f.items[index];
    std::vector<Step> steps;
    for (const Placement place : c.stores.find(index)->second) {
        Sym at = 0;
        const Shape strides = row_major(item.type.shape);
        for (const auto& o : item.operands) {
            Loop loop = copy_loop(c, *o, item.type.dtype, place);
            // The copy's target is a window of the result instead of the whole of it.
            Operand& target = loop.operands.back();
            target.offset = c.exprs(at * strides[item.cat_dim]);
            target.strides.clear();
            for (const Sym& s : strides) target.strides.push_back(c.exprs(s));
            steps.emplace_back(std::move(loop));
            at = at + o->view.shape[item.cat_dim];
        }
    }
    return steps;
}

}  // namespace

Loop copy_loop(const LowerContext& c, const Access& access, DType dtype, Placement to) {
    // A flow of one copy, lowered like any other group: the access may be of an inline item.
    Flow flow;
    flow.graph = c.f.graph;
    flow.items = c.f.items;
    Item copy;
    copy.kind = Item::Kind::copy;
    copy.type = {dtype, access.view.shape};
    copy.operands.push_back(access);
    const auto index = static_cast<std::uint32_t>(flow.items.size());
    flow.items.push_back(std::move(copy));
    Group group;
    group.items = {index};
    group.space = access.view.shape;
    const std::map<std::uint32_t, std::vector<Placement>> stores{{index, {to}}};
    const LowerContext context{flow, c.exprs, c.places, stores};
    return std::move(*GroupLowering(context, group).run());
}

Result<std::vector<Step>> lower_group(const LowerContext& c, const Group& group) {
    if (group.cat) return lower_cat(c, group.items[0]);
    auto loop = GroupLowering(c, group).run();
    if (!loop) return std::unexpected(loop.error());
    std::vector<Step> steps;
    if (group.matmul) {
        auto gemm = lower_matmul(c, group, std::move(*loop));
        if (!gemm) return std::unexpected(gemm.error());
        steps.emplace_back(std::move(*gemm));
    } else {
        steps.emplace_back(std::move(*loop));
    }
    return steps;
}

}  // namespace lyo
