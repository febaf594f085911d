module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {

std::vector<OpDef> joined(std::initializer_list<std::span<const OpDef>> families) {
    std::vector<OpDef> out;
    for (const auto family : families) out.insert(out.end(), family.begin(), family.end());
    return out;
}

namespace {

using Bound = std::optional<std::int64_t>;

/// f(a, b) if both are known and the result fits.
template <class F>
Bound both(const Bound& a, const Bound& b, F f) {
    return a && b ? f(*a, *b) : Bound();
}

/// Smallest and largest product of two intervals; without bound as soon as one end is open, except for the lower end
/// of two non-negative ones.
Bounds product(const Bounds& a, const Bounds& b) {
    const bool non_negative = a.low && b.low && *a.low >= 0 && *b.low >= 0;
    if (non_negative) return {checked_mul(*a.low, *b.low), both(a.high, b.high, checked_mul<std::int64_t>)};
    const auto scaled = [](std::int64_t factor, const Bounds& x) -> Bounds {
        const auto times = [&](const Bound& v) { return v ? checked_mul(factor, *v) : Bound(); };
        return factor >= 0 ? Bounds{times(x.low), times(x.high)} : Bounds{times(x.high), times(x.low)};
    };
    if (a.low && a.low == a.high) return scaled(*a.low, b);
    if (b.low && b.low == b.high) return scaled(*b.low, a);
    return {};
}

}  // namespace

Bounds bounds_of(const Graph& graph, const Sym& value) {
    if (value.is_constant()) return {value.value(), value.value()};
    if (value.kind() == Sym::Kind::symbol) {
        for (const SymbolRange& range : graph.symbols) {
            if (range.name != value.name()) continue;
            const bool open = range.max == std::numeric_limits<std::int64_t>::max();
            return {range.min, open ? Bound() : Bound(range.max)};
        }
        return {};
    }
    const auto operands = value.operands();
    Bounds out = bounds_of(graph, operands[0]);
    for (const Sym& operand : operands.subspan(1)) {
        const Bounds next = bounds_of(graph, operand);
        switch (value.kind()) {
            case Sym::Kind::sum:
                out = {both(out.low, next.low, checked_add<std::int64_t>),
                       both(out.high, next.high, checked_add<std::int64_t>)};
                break;
            case Sym::Kind::product:
                out = product(out, next);
                break;
            case Sym::Kind::max: {
                const Bound low = out.low && next.low ? std::max(*out.low, *next.low) : out.low ? out.low : next.low;
                out = {low, both(out.high, next.high, [](auto a, auto b) { return Bound(std::max(a, b)); })};
                break;
            }
            case Sym::Kind::min: {
                const Bound high = out.high && next.high ? std::min(*out.high, *next.high)
                                   : out.high            ? out.high
                                                         : next.high;
                out = {both(out.low, next.low, [](auto a, auto b) { return Bound(std::min(a, b)); }), high};
                break;
            }
            case Sym::Kind::floor_div:
                if (operand.is_constant() && operand.value() > 0) {
                    const auto divided = [&](const Bound& v) {
                        return v ? Bound(lyo::floor_div(*v, operand.value())) : Bound();
                    };
                    out = {divided(out.low), divided(out.high)};
                } else {
                    out = {out.low && *out.low >= 0 && next.low && *next.low > 0 ? Bound(0) : Bound(), {}};
                }
                break;
            default:  // mod: as Python's, of the divisor's sign
                out = next.low && *next.low > 0 ? Bounds{0, next.high ? Bound(*next.high - 1) : Bound()} : Bounds{};
        }
    }
    return out;
}

Sym larger(const Graph& graph, const Sym& a, const Sym& b) {
    const Bounds difference = bounds_of(graph, a - b);
    if (difference.low && *difference.low >= 0) return a;
    if (difference.high && *difference.high <= 0) return b;
    return max(a, b);
}

Sym smaller(const Graph& graph, const Sym& a, const Sym& b) {
    const Bounds difference = bounds_of(graph, a - b);
    if (difference.low && *difference.low >= 0) return b;
    if (difference.high && *difference.high <= 0) return a;
    return min(a, b);
}

Result<> at_least(const InferContext& context, const Sym& a, const Sym& b, std::string_view what) {
    const Bounds difference = bounds_of(context.graph(), a - b);
    if (difference.low && *difference.low >= 0) return {};
    if (difference.high && *difference.high < 0)
        return mismatch(ErrorCode::bad_graph, context.place(), what, cat("at least ", b.to_string()), a.to_string());
    const auto same = context.equal(max(a, b), a, what);
    if (!same) return std::unexpected(same.error());
    return {};
}

Sym ceil_div(const Sym& a, const Sym& b) {
    const Sym exact = floor_div(a, b);
    return exact * b == a ? exact : floor_div(a + b - 1, b);
}

Shape row_major(const Shape& shape) {
    Shape strides(shape.size());
    Sym step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        strides[d] = step;
        step = step * shape[d];
    }
    return strides;
}

Axes all_axes(std::size_t rank) {
    Axes out(rank);
    std::iota(out.begin(), out.end(), std::size_t{0});
    return out;
}

Result<std::size_t> axis_at(const NodeView& node, std::size_t i, std::size_t rank) {
    const auto dim = node.integer(i);
    if (!dim) return std::unexpected(dim.error());
    return normalize_dim(node, *dim, rank);
}

Result<Axes> axes_at(const NodeView& node, std::size_t i, std::size_t rank, bool empty_is_none) {
    if (node.is_none(i)) return all_axes(rank);
    const auto dims = node.integers(i);
    if (!dims) return std::unexpected(dims.error());
    if (dims->empty()) return empty_is_none ? Axes() : all_axes(rank);
    auto axes = normalize_dims(node, *dims, rank);
    if (!axes) return axes;
    if (rank == 0) return Axes();
    std::sort(axes->begin(), axes->end());
    return axes;
}

std::optional<std::size_t> parameter(const NodeView& node, std::string_view name) noexcept {
    const auto& params = node.op().params;
    for (std::size_t i = 0; i < params.size(); ++i)
        if (params[i].name == name) return i;
    return std::nullopt;
}

Result<Request> request_of(const NodeView& node, bool empty_is_none) {
    const std::size_t rank = node.type(0).rank();
    Request out;
    const auto dim = parameter(node, "dim");
    if (dim && std::holds_alternative<Sym>(node[*dim])) {
        const auto axis = axis_at(node, *dim, rank);
        if (!axis) return std::unexpected(axis.error());
        if (rank > 0) out.axes = {*axis};
    } else {
        auto axes = dim ? axes_at(node, *dim, rank, empty_is_none) : all_axes(rank);
        if (!axes) return std::unexpected(axes.error());
        out.axes = std::move(*axes);
    }
    if (const auto i = parameter(node, "keepdim")) out.keepdim = node.boolean(*i);
    if (const auto i = parameter(node, "dtype"); i && !node.is_none(*i)) out.dtype = node.dtype(*i);
    return out;
}

std::vector<Sym> to_syms(const Axes& axes) {
    std::vector<Sym> out;
    for (const std::size_t axis : axes) out.emplace_back(static_cast<std::int64_t>(axis));
    return out;
}

bool contains(const Axes& axes, std::size_t axis) noexcept {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Shape reduced(const Shape& shape, const Axes& axes, bool keepdim) {
    Shape out;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (!contains(axes, d))
            out.push_back(shape[d]);
        else if (keepdim)
            out.emplace_back(1);
    }
    return out;
}

Sym count_along(const Shape& shape, const Axes& axes) {
    Sym out = 1;
    for (const std::size_t axis : axes) out = out * shape[axis];
    return out;
}

Result<HostTensor> make_result(const EvalContext& context, std::size_t output) {
    std::vector<Relation> relations;
    const NodeView& node = context.node();
    const auto types = node.op().def.infer(InferContext(node, relations));
    if (!types) return std::unexpected(types.error());
    const auto shape = context.dims((*types)[output].shape);
    if (!shape) return std::unexpected(shape.error());
    return context.make((*types)[output].dtype, *shape);
}

HostTensor converted(const HostTensor& tensor, DType dtype) {
    if (tensor.dtype == dtype) return tensor;
    HostTensor out{dtype, tensor.shape, {}, {}};
    const auto count = static_cast<std::size_t>(tensor.numel());
    (out.is_real() ? out.reals.resize(count) : out.ints.resize(count));
    for (std::size_t i = 0; i < count; ++i) {
        if (tensor.is_real())
            out.set(i, tensor.reals[i]);
        else if (dtype == DType::boolean)
            out.set(i, std::int64_t{tensor.ints[i] != 0});
        else
            out.set(i, tensor.ints[i]);
    }
    return out;
}

void copy_element(const HostTensor& in, std::size_t from, HostTensor& out, std::size_t to) noexcept {
    if (in.is_real())
        out.reals[to] = in.reals[from];
    else
        out.ints[to] = in.ints[from];
}

namespace {

/// The place in the group of the element that max or min picks.
std::size_t extremum(const HostTensor& in, std::span<const std::size_t> group, bool greatest) noexcept {
    std::size_t best = 0;
    for (std::size_t m = 1; m < group.size(); ++m) {
        if (in.is_real()) {
            const double held = in.reals[group[best]], next = in.reals[group[m]];
            if (!std::isnan(held) && (std::isnan(next) || (greatest ? next > held : next < held))) best = m;
        } else {
            const std::int64_t held = in.ints[group[best]], next = in.ints[group[m]];
            if (greatest ? next > held : next < held) best = m;
        }
    }
    return best;
}

/// Sets the highest or lowest value of the dtype.
void set_limit(HostTensor& out, std::size_t at, bool highest) noexcept {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (out.is_real()) {
        out.set(at, highest ? infinity : -infinity);
    } else if (out.dtype == DType::boolean || out.dtype == DType::u8) {
        out.set(at, std::int64_t{highest ? (out.dtype == DType::u8 ? 255 : 1) : 0});
    } else {
        const std::int64_t top = std::numeric_limits<std::int64_t>::max() >> (64 - 8 * size_of(out.dtype));
        out.set(at, highest ? top : -top - 1);
    }
}

}  // namespace

void fold(ScalarOp op, const HostTensor& in, std::span<const std::size_t> group, HostTensor& out, std::size_t at) {
    const bool product = op == ScalarOp::reduce_prod;
    switch (op) {
        case ScalarOp::reduce_argmax:
        case ScalarOp::reduce_argmin:
            out.set(at, static_cast<std::int64_t>(extremum(in, group, op == ScalarOp::reduce_argmax)));
            return;
        case ScalarOp::reduce_max:
        case ScalarOp::reduce_min: {
            const bool greatest = op == ScalarOp::reduce_max;
            if (group.empty())
                set_limit(out, at, !greatest);
            else
                copy_element(in, group[extremum(in, group, greatest)], out, at);
            return;
        }
        default:
            break;
    }
    if (in.is_real()) {
        double total = product ? 1 : 0;
        for (const std::size_t i : group) total = product ? total * in.reals[i] : total + in.reals[i];
        out.set(at, total);
    } else {
        std::uint64_t total = product ? 1 : 0;  // unsigned: it wraps
        for (const std::size_t i : group) {
            const auto value = static_cast<std::uint64_t>(in.ints[i]);
            total = product ? total * value : total + value;
        }
        out.set(at, static_cast<std::int64_t>(total));
    }
}

TensorType Steps::type(ValueId x) const { return builder_->error() ? TensorType{} : builder_->type(x); }

ValueId Steps::cast(ValueId x, DType dtype) {
    if (builder_->error() || type(x).dtype == dtype) return x;
    return call("to.dtype", {x, dtype});
}

ValueId Steps::full(const Shape& shape, Argument value, DType dtype) {
    return call("full", {shape, std::move(value)}, {{"dtype", dtype}});
}

ValueId Steps::iota(const Sym& length, const Sym& start, DType dtype) {
    return call("lyo_arange", {start, Sym(1), length}, {{"dtype", dtype}});
}

ValueId Steps::reshape(ValueId x, const Shape& shape) {
    if (builder_->error() || type(x).shape == shape) return x;
    return call("reshape", {x, shape});
}

ValueId Steps::expand(ValueId x, const Shape& shape) {
    if (builder_->error() || type(x).shape == shape) return x;
    return call("expand", {x, shape});
}

ValueId Steps::permute(ValueId x, const Axes& axes) {
    if (axes == all_axes(axes.size())) return x;
    return call("permute", {x, to_syms(axes)});
}

ValueId Steps::unsqueeze(ValueId x, std::size_t axis) {
    return call("unsqueeze", {x, Sym(static_cast<std::int64_t>(axis))});
}

ValueId Steps::squeeze(ValueId x, std::size_t axis) {
    return call("squeeze.dim", {x, Sym(static_cast<std::int64_t>(axis))});
}

ValueId Steps::slice(ValueId x, std::size_t axis, const Sym& start, const Sym& end) {
    return call("slice.Tensor", {x, Sym(static_cast<std::int64_t>(axis)), start, end});
}

ValueId Steps::reduce(std::string_view op, ValueId x, const Axes& axes, bool keepdim) {
    if (axes.empty()) return x;
    return call(op, {x, to_syms(axes), keepdim});
}

ValueId Steps::mean(ValueId x, const Axes& axes, bool keepdim) {
    if (builder_->error()) return x;
    const Sym count = count_along(type(x).shape, axes);
    return div(reduce("lyo_sum", x, axes, keepdim), count);
}

ValueId Steps::cat(const std::vector<ValueId>& parts, std::size_t axis) {
    if (parts.size() == 1) return parts[0];
    return call("lyo_cat", {tensor_list(parts), Sym(static_cast<std::int64_t>(axis))});
}

Ids Steps::done(std::vector<ValueId> outputs) const {
    if (builder_->error()) return std::unexpected(*builder_->error());
    return outputs;
}

Argument tensor_list(const std::vector<ValueId>& tensors) {
    return std::vector<std::optional<ValueId>>(tensors.begin(), tensors.end());
}

}  // namespace lyo::ops
