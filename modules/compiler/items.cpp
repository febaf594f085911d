// Graph to items: views become strided accesses, everything else becomes an operation that reads through them.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;

namespace lyo {

bool Item::is_inline() const noexcept {
    return kind == Kind::arange ||
           (kind == Kind::pointwise &&
            std::none_of(operands.begin(), operands.end(), [](const auto& o) { return o.has_value(); }));
}

Shape row_major(const Shape& shape) {
    Shape strides(shape.size(), Sym(1));
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * (shape[d] == Sym(0) ? Sym(1) : shape[d]);
    return strides;
}

Shape kept_shape(const Shape& space, std::span<const std::size_t> reduced) {
    Shape out = space;
    for (const std::size_t d : reduced) out[d] = 1;
    return out;
}

Shape squeezed_shape(const Shape& space, std::span<const std::size_t> reduced) {
    Shape out;
    for (std::size_t d = 0; d < space.size(); ++d)
        if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) out.push_back(space[d]);
    return out;
}

DType dtype_of(const Flow& f, BaseId base) {
    switch (base.kind) {
        case BaseId::Kind::input:
            return f.graph->type(f.graph->inputs[base.index]).dtype;
        case BaseId::Kind::constant:
            return f.graph->constants[base.index].data.dtype();
        case BaseId::Kind::item:
            break;
    }
    return f.items[base.index].type.dtype;
}

const Shape& shape_of(const Flow& f, BaseId base) {
    switch (base.kind) {
        case BaseId::Kind::input:
            return f.graph->type(f.graph->inputs[base.index]).shape;
        case BaseId::Kind::constant:
            return f.graph->type(f.graph->constants[base.index].value).shape;
        case BaseId::Kind::item:
            break;
    }
    return f.items[base.index].type.shape;
}

namespace {

Access whole(BaseId base, const Shape& shape) { return {base, {0, shape, row_major(shape)}}; }

class ItemMaker {
  public:
    explicit ItemMaker(const Graph& graph) : graph_(graph), values_(graph.values.size()) { f_.graph = &graph; }

    Result<Flow> run() {
        for (std::uint32_t i = 0; i < graph_.inputs.size(); ++i)
            set(graph_.inputs[i], whole({BaseId::Kind::input, i}, graph_.type(graph_.inputs[i]).shape));
        for (std::uint32_t i = 0; i < graph_.constants.size(); ++i)
            set(graph_.constants[i].value,
                whole({BaseId::Kind::constant, i}, graph_.type(graph_.constants[i].value).shape));
        for (const Node& node : graph_.nodes)
            if (auto ok = add(node); !ok) return std::unexpected(ok.error());
        for (const ValueId id : graph_.outputs) f_.outputs.push_back(get(id));
        widen_small_producers();
        return std::move(f_);
    }

  private:
    void set(ValueId id, Access access) { values_[id.index] = std::move(access); }
    const Access& get(ValueId id) const { return *values_[id.index]; }

    Access push(Item item) {
        const BaseId base{BaseId::Kind::item, static_cast<std::uint32_t>(f_.items.size())};
        Access access = whole(base, item.type.shape);
        f_.items.push_back(std::move(item));
        return access;
    }

    /// A row-major copy of a value. Whoever reads the value from now on reads the copy too: it is at hand.
    Access copied(ValueId id) {
        Item copy;
        copy.kind = Item::Kind::copy;
        copy.type = graph_.type(id);
        copy.operands.push_back(get(id));
        Access access = push(std::move(copy));
        set(id, access);
        return access;
    }

    Result<> add(const Node& node) {
        const OpDef& def = node.op->def;
        const NodeView view(graph_, *node.op, node.arguments);
        const TensorType& type = graph_.type(node.outputs[0]);
        if (def.view != nullptr) return add_view(node, view, type);
        Item item;
        item.node = &node;
        item.type = type;
        if (def.emit != nullptr) {
            for (std::size_t i = 0; i < view.size(); ++i)
                item.operands.push_back(view.is_tensor(i) ? std::optional(get(view.tensor(i))) : std::nullopt);
        } else if (def.core == Core::arange) {
            item.kind = Item::Kind::arange;
        } else if (def.core == Core::reduction) {
            item.kind = Item::Kind::reduction;
            item.operands.push_back(get(view.tensor(0)));
            const auto dims = view.integers(1);
            if (!dims) return std::unexpected(dims.error());
            for (const std::int64_t d : *dims) item.reduced.push_back(static_cast<std::size_t>(d));
            item.keepdim = view.boolean(2);
        } else if (def.core == Core::matmul) {
            item.kind = Item::Kind::matmul;
            item.operands = {get(view.tensor(0)), get(view.tensor(1))};
        } else if (def.core == Core::take) {
            item.kind = Item::Kind::take;
            Access from = get(view.tensor(0));
            // Positions are those of row-major memory.
            if (from.view.offset != Sym(0) || from.view.shape != shape_of(f_, from.base) ||
                from.view.strides != row_major(from.view.shape))
                from = copied(view.tensor(0));
            item.operands = {from, get(view.tensor(1))};
        } else if (def.core == Core::cat) {
            item.kind = Item::Kind::cat;
            for (const auto& id : view.tensors(0))
                if (id) item.operands.push_back(get(*id));
            const auto dim = view.integer(1);
            if (!dim) return std::unexpected(dim.error());
            item.cat_dim = static_cast<std::size_t>(*dim);
        } else {
            return fail(ErrorCode::unsupported_operator, node.op->name, "no kernel can be made for it");
        }
        set(node.outputs[0], push(std::move(item)));
        return {};
    }

    Result<> add_view(const Node& node, const NodeView& view, const TensorType& type) {
        const ValueId operand = view.tensor(0);
        Access access = get(operand);
        auto strided = node.op->def.view(view, access.view, type);
        if (!strided) return std::unexpected(strided.error());
        if (!*strided) {
            access = copied(operand);
            strided = node.op->def.view(view, access.view, type);
            if (!strided) return std::unexpected(strided.error());
            if (!*strided) return view.error("no strides describe it, even of a row-major operand");
        }
        set(node.outputs[0], {access.base, std::move(**strided)});
        return {};
    }

    /// A small pointwise result that one larger pointwise item broadcasts is computed at the larger shape instead, and
    /// so becomes part of its kernel; unless that repeats much work.
    void widen_small_producers() {
        std::vector<std::uint32_t> uses(f_.items.size()), user(f_.items.size());
        for (std::uint32_t i = 0; i < f_.items.size(); ++i)
            for (const auto& o : f_.items[i].operands)
                if (o && o->base.kind == BaseId::Kind::item) {
                    ++uses[o->base.index];
                    user[o->base.index] = i;
                }
        for (const Access& o : f_.outputs)
            if (o.base.kind == BaseId::Kind::item) uses[o.base.index] += 2;
        std::vector<bool> after_reduction(f_.items.size());
        for (std::uint32_t i = 0; i < f_.items.size(); ++i) {
            const Item& item = f_.items[i];
            after_reduction[i] = item.kind == Item::Kind::reduction || item.kind == Item::Kind::matmul;
            for (const auto& o : item.operands)
                if (o && o->base.kind == BaseId::Kind::item && after_reduction[o->base.index])
                    after_reduction[i] = true;
        }
        for (std::uint32_t i = static_cast<std::uint32_t>(f_.items.size()); i-- > 0;) {
            Item& small = f_.items[i];
            if (small.kind != Item::Kind::pointwise || small.is_inline() || uses[i] != 1 || after_reduction[i])
                continue;
            Item& large = f_.items[user[i]];
            if (large.kind != Item::Kind::pointwise || large.type.shape == small.type.shape) continue;
            for (auto& o : large.operands) {
                if (!o || o->base != BaseId{BaseId::Kind::item, i}) continue;
                if (o->view.offset != Sym(0) || !is_plain_broadcast(o->view, small.type.shape)) continue;
                if (!is_worth_repeating(small, large)) continue;
                small.type.shape = large.type.shape;
                *o = whole(o->base, small.type.shape);
            }
        }
    }

    /// The view's axes are the shape's, right-aligned, kept as they are or of size 1 and repeated.
    static bool is_plain_broadcast(const StridedView& view, const Shape& shape) {
        if (view.shape.size() < shape.size()) return false;
        const Shape strides = row_major(shape);
        const std::size_t extra = view.shape.size() - shape.size();
        for (std::size_t d = 0; d < view.shape.size(); ++d) {
            const bool repeated = view.strides[d] == Sym(0) || view.shape[d] == Sym(1);
            if (d < extra
                    ? !repeated
                    : !(view.shape[d] == shape[d - extra] && (repeated || view.strides[d] == strides[d - extra])) &&
                          !(shape[d - extra] == Sym(1) && repeated))
                return false;
        }
        return true;
    }

    bool is_worth_repeating(const Item& small, const Item& large) const {
        static constexpr std::array<std::string_view, 8> cheap = {"add", "sub",   "mul",     "neg",
                                                                  "abs", "where", "maximum", "minimum"};
        const std::string_view name = small.node->op->name;
        if (std::find(cheap.begin(), cheap.end(), name.substr(0, name.find('.'))) != cheap.end()) return true;
        const Sym times = floor_div(element_count(large.type.shape), element_count(small.type.shape));
        constexpr std::int64_t few = 8;
        return times.is_constant() && times.value() <= few;
    }

    const Graph& graph_;
    Flow f_;
    std::vector<std::optional<Access>> values_;
};

}  // namespace

Result<Flow> make_items(const Graph& graph) { return ItemMaker(graph).run(); }

}  // namespace lyo
