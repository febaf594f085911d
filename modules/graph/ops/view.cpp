// Views that permute, regroup or repeat dimensions. A view of a view is a view as long as strides can say it.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

// Permutations: the function gives, for each dimension of the result, that of the operand.

Result<Axes> permute_axes(const NodeView& node) {
    const std::size_t rank = node.type(0).rank();
    const auto dims = node.integers(1);
    if (!dims) return std::unexpected(dims.error());
    if (dims->size() != rank) return mismatch(ErrorCode::bad_graph, node.place(), "dims", rank, dims->size());
    return normalize_dims(node, *dims, rank);
}

Result<Axes> transpose_axes(const NodeView& node) {
    const std::size_t rank = node.type(0).rank();
    const auto a = axis_at(node, 1, rank), b = axis_at(node, 2, rank);
    if (!a) return std::unexpected(a.error());
    if (!b) return std::unexpected(b.error());
    Axes axes = all_axes(rank);
    if (rank > 0) std::swap(axes[*a], axes[*b]);
    return axes;
}

Result<Axes> t_axes(const NodeView& node) {
    Axes axes = all_axes(node.type(0).rank());
    if (axes.size() > 2) return mismatch(ErrorCode::bad_graph, node.place(), "rank", "at most 2", axes.size());
    std::reverse(axes.begin(), axes.end());
    return axes;
}

Result<Axes> reversed_axes(const NodeView& node) {
    Axes axes = all_axes(node.type(0).rank());
    std::reverse(axes.begin(), axes.end());
    return axes;
}

Result<Axes> matrix_transpose_axes(const NodeView& node) {
    Axes axes = all_axes(node.type(0).rank());
    if (axes.size() < 2) return mismatch(ErrorCode::bad_graph, node.place(), "rank", "at least 2", axes.size());
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return axes;
}

Result<Axes> movedim_axes(const NodeView& node) {
    const std::size_t rank = node.type(0).rank();
    const auto dims = [&](std::size_t i) -> Result<Axes> {
        if (const auto* single = std::get_if<Sym>(&node[i])) {
            if (!single->is_constant()) return node.unsupported("dim is not constant");
            const auto axis = normalize_dim(node, single->value(), rank);
            if (!axis) return std::unexpected(axis.error());
            return Axes{*axis};
        }
        const auto list = node.integers(i);
        if (!list) return std::unexpected(list.error());
        return normalize_dims(node, *list, rank);
    };
    const auto source = dims(1), destination = dims(2);
    if (!source) return source;
    if (!destination) return destination;
    if (source->size() != destination->size())
        return mismatch(ErrorCode::bad_graph, node.place(), "destination dims", source->size(), destination->size());
    if (rank == 0) return Axes();
    Axes rest;
    for (std::size_t d = 0; d < rank; ++d)
        if (!contains(*source, d)) rest.push_back(d);
    Axes axes(rank);
    auto next = rest.begin();
    for (std::size_t d = 0; d < rank; ++d) {
        const auto at = std::find(destination->begin(), destination->end(), d);
        axes[d] = at == destination->end() ? *next++ : (*source)[static_cast<std::size_t>(at - destination->begin())];
    }
    return axes;
}

template <auto axes_of>
struct Permuted {
    static Types infer(const InferContext& context) {
        const auto axes = axes_of(context);
        if (!axes) return std::unexpected(axes.error());
        Shape shape;
        for (const std::size_t axis : *axes) shape.push_back(context.type(0).shape[axis]);
        return one(context.type(0).dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        const auto axes = axes_of(context.node());
        auto out = make_result(context);
        if (!axes) return std::unexpected(axes.error());
        if (!out) return std::unexpected(out.error());
        gather(context.tensor(0), *out, [&](const Dims& at) {
            Dims from = at;
            for (std::size_t d = 0; d < at.size(); ++d) from[(*axes)[d]] = at[d];
            return from;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto axes = axes_of(node);
        if (!axes) return std::unexpected(axes.error());
        StridedView out{operand.offset, result.shape, {}};
        for (const std::size_t axis : *axes) out.strides.push_back(operand.strides[axis]);
        return out;
    }
};

// Regroupings: the elements stay in row-major order. The function gives the new shape.

/// `requested` with its -1 replaced, for `count` elements.
Result<Shape> resolve(const InferContext& context, const Sym& count, Shape requested) {
    std::optional<std::size_t> open;
    Sym known = 1;
    for (std::size_t d = 0; d < requested.size(); ++d) {
        if (requested[d] == Sym(-1)) {
            if (open) return context.error("shape ", to_string(requested), " has more than one -1");
            open = d;
        } else {
            if (requested[d].is_constant() && requested[d].value() < 0)
                return context.error("shape ", to_string(requested), " has a negative size");
            known = known * requested[d];
        }
    }
    if (open) {
        if (known == Sym(0)) return context.error("shape ", to_string(requested), " leaves its -1 undetermined");
        requested[*open] = floor_div(count, known);
        known = known * requested[*open];
    }
    const auto same = context.equal(count, known, cat("elements of shape ", to_string(requested)));
    if (!same) return std::unexpected(same.error());
    return requested;
}

Result<Shape> reshape_shape(const InferContext& context) {
    return resolve(context, element_count(context.type(0).shape), context.sizes(1));
}

Result<Shape> ravel_shape(const InferContext& context) { return Shape{element_count(context.type(0).shape)}; }

Result<Shape> flatten_shape(const InferContext& context) {
    const Shape& shape = context.type(0).shape;
    const auto first = axis_at(context, 1, shape.size()), last = axis_at(context, 2, shape.size());
    if (!first) return std::unexpected(first.error());
    if (!last) return std::unexpected(last.error());
    if (shape.empty()) return Shape{1};
    if (*first > *last) return context.error("start_dim ", *first, " is after end_dim ", *last);
    Shape out(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*first));
    Sym merged = 1;
    for (std::size_t d = *first; d <= *last; ++d) merged = merged * shape[d];
    out.push_back(merged);
    out.insert(out.end(), shape.begin() + static_cast<std::ptrdiff_t>(*last + 1), shape.end());
    return out;
}

Result<Shape> unflatten_shape(const InferContext& context) {
    const Shape& shape = context.type(0).shape;
    if (shape.empty()) return context.error("a tensor without dimensions cannot be unflattened");
    const auto axis = axis_at(context, 1, shape.size());
    if (!axis) return std::unexpected(axis.error());
    const auto parts = resolve(context, shape[*axis], context.sizes(2));
    if (!parts) return parts;
    Shape out = shape;
    const auto at = out.erase(out.begin() + static_cast<std::ptrdiff_t>(*axis));
    out.insert(at, parts->begin(), parts->end());
    return out;
}

Result<Shape> unsqueeze_shape(const InferContext& context) {
    Shape out = context.type(0).shape;
    const auto axis = axis_at(context, 1, out.size() + 1);
    if (!axis) return std::unexpected(axis.error());
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(*axis), Sym(1));
    return out;
}

/// Sizes that are 1 go; a symbolic size does not count as 1, as in the exporter.
Shape squeezed(const Shape& shape, const Axes& axes) {
    Shape out;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (!(contains(axes, d) && shape[d] == Sym(1))) out.push_back(shape[d]);
    return out;
}

Result<Shape> squeeze_shape(const InferContext& context) {
    const Shape& shape = context.type(0).shape;
    return squeezed(shape, all_axes(shape.size()));
}

Result<Shape> squeeze_dim_shape(const InferContext& context) {
    const Shape& shape = context.type(0).shape;
    const auto axis = axis_at(context, 1, shape.size());
    if (!axis) return std::unexpected(axis.error());
    return squeezed(shape, {*axis});
}

Result<Shape> squeeze_dims_shape(const InferContext& context) {
    const Shape& shape = context.type(0).shape;
    const auto axes = axes_at(context, 1, shape.size(), true);
    if (!axes) return std::unexpected(axes.error());
    return squeezed(shape, *axes);
}

template <int rank>
Result<Shape> at_least_shape(const InferContext& context) {
    Shape out = context.type(0).shape;
    // [n] becomes [1, n] and then [1, n, 1]; [m, n] becomes [m, n, 1].
    if (rank >= 1 && out.empty()) out.emplace_back(1);
    if (rank >= 2 && out.size() == 1) out.insert(out.begin(), Sym(1));
    if (rank >= 3 && out.size() == 2) out.emplace_back(1);
    return out;
}

/// Dimensions that lie one after the other in memory, as one.
struct Run {
    Sym size, stride;
};

/// The fewest runs that describe the operand; none when it has one element.
std::vector<Run> runs_of(const StridedView& operand) {
    std::vector<Run> runs;
    for (std::size_t d = 0; d < operand.shape.size(); ++d) {
        if (operand.shape[d] == Sym(1)) continue;
        if (!runs.empty() && runs.back().stride == operand.strides[d] * operand.shape[d])
            runs.back() = {runs.back().size * operand.shape[d], operand.strides[d]};
        else
            runs.push_back({operand.shape[d], operand.strides[d]});
    }
    return runs;
}

/// Strides under which `operand` has the elements of `shape` in the same order. Runs are matched to the new dimensions
/// from both ends, by the product of the sizes; the one run that is left when sizes cannot be compared (s0 // 4) takes
/// the dimensions that are left, because the element counts are equal.
std::optional<Shape> regrouped_strides(const StridedView& operand, const Shape& shape) {
    if (element_count(shape) == Sym(0)) return row_major(shape);
    std::vector<Run> runs = runs_of(operand);
    if (runs.empty()) runs.push_back({1, 1});
    Shape strides(shape.size(), Sym(1));
    const auto assign = [&](const Run& run, std::size_t from, std::size_t to) {
        Sym step = run.stride;
        for (std::size_t d = to; d-- > from;) {
            strides[d] = step;
            step = step * shape[d];
        }
    };
    std::size_t first_run = 0, last_run = runs.size(), first = 0, last = shape.size();
    for (bool matched = true; matched && last_run - first_run > 1;) {
        matched = false;
        Sym count = 1;
        for (std::size_t d = last; d-- > first && !matched;) {
            count = count * shape[d];
            if (count != runs[last_run - 1].size) continue;
            assign(runs[--last_run], d, last);
            last = d;
            matched = true;
        }
    }
    for (bool matched = true; matched && last_run - first_run > 1;) {
        matched = false;
        Sym count = 1;
        for (std::size_t d = first; d < last && !matched; ++d) {
            count = count * shape[d];
            if (count != runs[first_run].size) continue;
            assign(runs[first_run++], first, d + 1);
            first = d + 1;
            matched = true;
        }
    }
    if (last_run - first_run > 1) return std::nullopt;
    assign(runs[first_run], first, last);
    return strides;
}

template <auto shape_of>
struct Regrouped {
    static Types infer(const InferContext& context) {
        auto shape = shape_of(context);
        if (!shape) return std::unexpected(shape.error());
        return one(context.type(0).dtype, std::move(*shape));
    }
    static Values eval(const EvalContext& context) {
        const auto like = make_result(context);
        if (!like) return std::unexpected(like.error());
        HostTensor out = context.tensor(0);
        if (like->numel() != out.numel())
            return mismatch(ErrorCode::guard_failed, context.node().place(), "elements", out.numel(), like->numel());
        out.shape = like->shape;
        return one(std::move(out));
    }
    static View view(const NodeView&, const StridedView& operand, const TensorType& result) {
        auto strides = regrouped_strides(operand, result.shape);
        if (!strides) return std::nullopt;
        return StridedView{operand.offset, result.shape, std::move(*strides)};
    }
};

struct Expanded {
    static Types infer(const InferContext& context) {
        const Shape& from = context.type(0).shape;
        Shape to = context.sizes(1);
        if (to.size() < from.size())
            return mismatch(ErrorCode::bad_graph, context.place(), "sizes", cat("at least ", from.size()), to.size());
        const std::size_t lead = to.size() - from.size();
        for (std::size_t d = 0; d < to.size(); ++d) {
            if (to[d] == Sym(-1)) {
                if (d < lead) return context.error("-1 stands for a dimension that the operand does not have");
                to[d] = from[d - lead];
            } else if (d >= lead && from[d - lead] != Sym(1)) {
                const auto same = context.equal(from[d - lead], to[d], cat("dimension ", d));
                if (!same) return std::unexpected(same.error());
                to[d] = *same;
            }
        }
        return one(context.type(0).dtype, std::move(to));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i)
            copy_element(in, broadcast_index(i, out->shape, in.shape), *out, i);
        return one(std::move(*out));
    }
    static View view(const NodeView&, const StridedView& operand, const TensorType& result) {
        StridedView out{operand.offset, result.shape, Shape(result.shape.size(), Sym(0))};
        const std::size_t lead = result.shape.size() - operand.shape.size();
        for (std::size_t d = 0; d < operand.shape.size(); ++d)
            if (operand.shape[d] != Sym(1)) out.strides[lead + d] = operand.strides[d];
        return out;
    }
};

template <class T>
constexpr OpDef view_of(std::string_view schema) {
    return {.schema = schema, .infer = T::infer, .eval = T::eval, .view = T::view};
}

constexpr OpDef defs[] = {
    view_of<Permuted<permute_axes>>("permute(Tensor(a) self, int[] dims) -> Tensor(a)"),
    view_of<Permuted<transpose_axes>>("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"),
    view_of<Permuted<transpose_axes>>("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)"),
    view_of<Permuted<transpose_axes>>("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"),
    view_of<Permuted<t_axes>>("t(Tensor(a) self) -> Tensor(a)"),
    view_of<Permuted<reversed_axes>>("numpy_T(Tensor(a) self) -> Tensor(a)"),
    view_of<Permuted<matrix_transpose_axes>>("mT(Tensor(a) self) -> Tensor(a)"),
    view_of<Permuted<matrix_transpose_axes>>("adjoint(Tensor(a) self) -> Tensor(a)"),
    view_of<Permuted<movedim_axes>>("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)"),
    view_of<Permuted<movedim_axes>>("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"),
    view_of<Permuted<movedim_axes>>("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)"),
    view_of<Permuted<movedim_axes>>("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"),

    view_of<Regrouped<reshape_shape>>("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"),
    view_of<Regrouped<reshape_shape>>("view(Tensor(a) self, SymInt[] size) -> Tensor(a)"),
    view_of<Regrouped<reshape_shape>>("_unsafe_view(Tensor self, SymInt[] size) -> Tensor"),
    view_of<Regrouped<ravel_shape>>("ravel(Tensor(a) self) -> Tensor(a)"),
    view_of<Regrouped<flatten_shape>>(
        "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"),
    view_of<Regrouped<unflatten_shape>>("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)"),
    view_of<Regrouped<unsqueeze_shape>>("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"),
    view_of<Regrouped<squeeze_shape>>("squeeze(Tensor(a) self) -> Tensor(a)"),
    view_of<Regrouped<squeeze_dim_shape>>("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)"),
    view_of<Regrouped<squeeze_dims_shape>>("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"),
    view_of<Regrouped<at_least_shape<1>>>("atleast_1d(Tensor self) -> Tensor"),
    view_of<Regrouped<at_least_shape<2>>>("atleast_2d(Tensor self) -> Tensor"),
    view_of<Regrouped<at_least_shape<3>>>("atleast_3d(Tensor self) -> Tensor"),

    view_of<Expanded>("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"),
    view_of<Expanded>("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)"),
};

}  // namespace

std::span<const OpDef> view() {
    static const std::vector<OpDef> all = joined({defs, view_index(), view_split(), view_shape()});
    return all;
}

}  // namespace lyo::ops
