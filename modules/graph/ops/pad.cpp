// Padding, by joining: constants, or parts of the operand turned round (reflect), repeated (replicate) or taken from
// the other end (circular). Negative padding cuts.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

enum class Mode : std::uint8_t { constant, reflect, replicate, circular };

struct Side {
    std::size_t axis = 0;
    Sym before, after;
};
struct Padding {
    Mode mode = Mode::constant;
    Argument value = Sym(0);
    std::vector<Side> sides;  ///< the last dimension first
};

/// Parameters: self, pad; then mode and value, or value, or nothing where the operator is of one mode.
template <Mode fixed, bool has_mode>
Result<Padding> padding_of(const NodeView& node) {
    Padding out{.mode = fixed, .value = Sym(0), .sides = {}};
    if (has_mode) {
        const std::string& mode = node.text(2);
        if (mode != "constant" && mode != "reflect" && mode != "replicate" && mode != "circular")
            return node.unsupported("mode ", mode);
        out.mode = mode == "constant"    ? Mode::constant
                   : mode == "reflect"   ? Mode::reflect
                   : mode == "replicate" ? Mode::replicate
                                         : Mode::circular;
    }
    if (const auto i = parameter(node, "value"); i && !node.is_none(*i)) out.value = node[*i];
    const std::vector<Sym>& pads = node.sizes(1);
    const std::size_t rank = node.type(0).rank();
    if (pads.size() % 2 != 0 || pads.size() / 2 > rank)
        return mismatch(ErrorCode::bad_graph, node.place(), "numbers in pad", cat("even, at most ", 2 * rank),
                        pads.size());
    for (std::size_t i = 0; 2 * i < pads.size(); ++i) {
        Side side{rank - 1 - i, pads[2 * i], pads[2 * i + 1]};
        if (out.mode != Mode::constant && (!side.before.is_constant() || !side.after.is_constant()))
            return node.unsupported("symbolic padding in this mode");
        if (side.before != Sym(0) || side.after != Sym(0)) out.sides.push_back(std::move(side));
    }
    return out;
}

/// The place in the operand for a place in the padded dimension, or nullopt for the constant.
std::optional<std::int64_t> source(Mode mode, std::int64_t at, std::int64_t size) noexcept {
    if (at >= 0 && at < size) return at;
    switch (mode) {
        case Mode::constant:
            return std::nullopt;
        case Mode::reflect:
            return at < 0 ? -at : 2 * (size - 1) - at;
        case Mode::replicate:
            return at < 0 ? 0 : size - 1;
        default:
            return floor_mod(at, size);
    }
}

template <Mode fixed, bool has_mode = false>
struct Pad {
    static Types infer(const InferContext& context) {
        const auto padding = padding_of<fixed, has_mode>(context);
        if (!padding) return std::unexpected(padding.error());
        TensorType type = context.type(0);
        for (const Side& side : padding->sides) {
            Sym& size = type.shape[side.axis];
            for (const Sym* amount : {&side.before, &side.after}) {
                Result<> ok;
                if (!amount->is_constant()) ok = at_least(context, *amount, 0, "padding");
                // A reflection leaves the border out; a circle goes round once.
                if (padding->mode == Mode::reflect) ok = at_least(context, size, *amount + 1, "size");
                if (padding->mode == Mode::circular) ok = at_least(context, size, *amount, "size");
                if (padding->mode == Mode::replicate) ok = at_least(context, size, 1, "size");
                if (!ok) return std::unexpected(ok.error());
            }
            size = size + side.before + side.after;
            if (const auto ok = at_least(context, size, 0, "padded size"); !ok) return std::unexpected(ok.error());
        }
        return one(std::move(type));
    }
    static Values eval(const EvalContext& context) {
        const auto padding = padding_of<fixed, has_mode>(context.node());
        auto out = make_result(context);
        if (!padding) return std::unexpected(padding.error());
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        std::vector<std::int64_t> before(in.shape.size(), 0);
        for (const Side& side : padding->sides) {
            const auto amount = context.dims({side.before});
            if (!amount) return std::unexpected(amount.error());
            before[side.axis] = (*amount)[0];
        }
        HostTensor fill{in.dtype, {1}, {0.0}, {0}};
        if (const auto* real = std::get_if<double>(&padding->value))
            fill.set(0, *real);
        else if (const auto* size = std::get_if<Sym>(&padding->value))
            fill.set(0, size->value());
        else
            fill.set(0, std::int64_t{*std::get_if<bool>(&padding->value)});
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            const Dims at = unravel(i, out->shape);
            std::optional<Dims> from = Dims();
            for (std::size_t d = 0; d < at.size() && from; ++d) {
                const auto place = source(padding->mode, at[d] - before[d], in.shape[d]);
                if (place)
                    from->push_back(*place);
                else
                    from.reset();
            }
            if (from)
                copy_element(in, ravel(*from, in.shape), *out, i);
            else
                copy_element(fill, 0, *out, i);
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto padding = padding_of<fixed, has_mode>(node);
        if (!padding) return std::unexpected(padding.error());
        const DType dtype = node.type(0).dtype;
        Shape shape = node.type(0).shape;
        Steps steps(builder);
        ValueId x = node.tensor(0);
        for (const Side& side : padding->sides) {
            const auto cut = [](const Sym& s) { return s.is_constant() && s.value() < 0 ? s.value() * -1 : 0; };
            const Sym before = cut(side.before) > 0 ? Sym(0) : side.before;
            const Sym after = cut(side.after) > 0 ? Sym(0) : side.after;
            const Sym size = shape[side.axis];
            std::vector<ValueId> parts;
            if (before != Sym(0)) parts.push_back(border(steps, *padding, x, shape, side.axis, before, true, dtype));
            parts.push_back(x);
            if (after != Sym(0)) parts.push_back(border(steps, *padding, x, shape, side.axis, after, false, dtype));
            x = steps.cat(parts, side.axis);
            const Sym whole = size + before + after, start = cut(side.before), end = whole - Sym(cut(side.after));
            if (start != Sym(0) || end != whole)
                x = steps.call("narrow", {x, Sym(static_cast<std::int64_t>(side.axis)), start, end - start});
            shape[side.axis] = end - start;
        }
        return steps.done({x});
    }

  private:
    /// What comes before or after x along the axis.
    static ValueId border(Steps& steps, const Padding& padding, ValueId x, const Shape& shape, std::size_t axis,
                          const Sym& amount, bool before, DType dtype) {
        const Sym& size = shape[axis];
        Shape own = shape;
        own[axis] = amount;
        const auto narrow = [&](const Sym& start, const Sym& length) {
            return steps.call("narrow", {x, Sym(static_cast<std::int64_t>(axis)), start, length});
        };
        switch (padding.mode) {
            case Mode::constant:
                return steps.full(own, padding.value, dtype);
            case Mode::reflect:
                return steps.call("flip", {narrow(before ? Sym(1) : size - amount - 1, amount), to_syms({axis})});
            case Mode::replicate:
                return steps.expand(narrow(before ? Sym(0) : size - 1, 1), own);
            default:
                return narrow(before ? size - amount : Sym(0), amount);
        }
    }
};

constexpr OpDef defs[] = {
    made<Pad<Mode::constant, true>>(
        "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor"),
    made<Pad<Mode::constant>>("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"),
    made<Pad<Mode::reflect>>("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor"),
    made<Pad<Mode::reflect>>("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor"),
    made<Pad<Mode::reflect>>("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor"),
    made<Pad<Mode::replicate>>("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor"),
    made<Pad<Mode::replicate>>("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor"),
    made<Pad<Mode::replicate>>("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor"),
    made<Pad<Mode::circular>>("_pad_circular(Tensor self, SymInt[] pad) -> Tensor"),
};

}  // namespace

std::span<const OpDef> pad() { return defs; }

}  // namespace lyo::ops
