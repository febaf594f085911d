// Views that pick a regular part of their operand: slices, single indices, diagonals, windows, reversed order.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

std::unexpected<Error> no_dimensions(const NodeView& node) { return node.error("a tensor without dimensions"); }

/// Python's bound of a slice, in [0, size]. A symbolic bound of unknown sign is taken as non-negative: inference guards
/// that.
Sym clamped(const Graph& graph, const Sym& bound, const Sym& size) {
    if (bound.is_constant()) {
        if (bound.value() == std::numeric_limits<std::int64_t>::max()) return size;
        return bound.value() < 0 ? larger(graph, size + bound, 0) : smaller(graph, bound, size);
    }
    const Bounds known = bounds_of(graph, bound);
    if (known.high && *known.high < 0) return larger(graph, size + bound, 0);
    return smaller(graph, bound, size);
}

struct Range {
    std::size_t axis = 0;
    Sym start, length, step = 1;
};

Result<Range> slice_range(const NodeView& node) {
    const Shape& shape = node.type(0).shape;
    if (shape.empty()) return no_dimensions(node);
    const auto axis = axis_at(node, 1, shape.size());
    const auto step = node.integer(4);
    if (!axis) return std::unexpected(axis.error());
    if (!step) return std::unexpected(step.error());
    if (*step <= 0) return mismatch(ErrorCode::bad_graph, node.place(), "step", "at least 1", *step);
    const Sym& size = shape[*axis];
    const Sym start = node.is_none(2) ? Sym(0) : clamped(node.graph(), node.size(2), size);
    const Sym end = node.is_none(3) ? size : clamped(node.graph(), node.size(3), size);
    return Range{*axis, start, ceil_div(larger(node.graph(), end - start, 0), *step), *step};
}

/// Guards that a symbolic bound or index is not negative, unless it always is.
Result<> guard_sign(const InferContext& context, const Sym& bound, std::string_view what) {
    if (bound.is_constant()) return {};
    const Bounds known = bounds_of(context.graph(), bound);
    if (known.high && *known.high < 0) return {};
    return at_least(context, bound, 0, what);
}

StridedView windowed(const StridedView& operand, const Range& range, const Shape& shape) {
    StridedView out{operand.offset + range.start * operand.strides[range.axis], shape, operand.strides};
    out.strides[range.axis] = out.strides[range.axis] * range.step;
    return out;
}

struct Slice {
    static Types infer(const InferContext& context) {
        const auto range = slice_range(context);
        if (!range) return std::unexpected(range.error());
        for (const std::size_t i : {2, 3}) {
            if (context.is_none(i)) continue;
            const auto guarded = guard_sign(context, context.size(i), i == 2 ? "start" : "end");
            if (!guarded) return std::unexpected(guarded.error());
        }
        Shape shape = context.type(0).shape;
        shape[range->axis] = range->length;
        return one(context.type(0).dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        const auto axis = axis_at(context.node(), 1, in.shape.size());
        const auto step = context.integer(4);
        if (!axis) return std::unexpected(axis.error());
        if (!step) return std::unexpected(step.error());
        const std::int64_t size = in.shape[*axis];
        const auto bound = [&](std::size_t i, std::int64_t missing) -> Result<std::int64_t> {
            if (context.node().is_none(i)) return missing;
            auto value = context.integer(i);
            if (value && *value < 0) *value += size;
            if (value) value = std::clamp<std::int64_t>(*value, 0, size);
            return value;
        };
        const auto start = bound(2, 0), end = bound(3, size);
        if (!start) return std::unexpected(start.error());
        if (!end) return std::unexpected(end.error());
        Dims shape = in.shape;
        shape[*axis] = 0;
        for (std::int64_t i = *start; i < *end; i += std::min(*step, *end - i)) ++shape[*axis];
        auto out = context.make(in.dtype, shape);
        if (!out) return std::unexpected(out.error());
        gather(in, *out, [&](Dims at) {
            at[*axis] = *start + at[*axis] * *step;
            return at;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto range = slice_range(node);
        if (!range) return std::unexpected(range.error());
        return windowed(operand, *range, result.shape);
    }
};

/// A negative index counts from the end.
Sym from_start(const Graph& graph, const Sym& index, const Sym& size) {
    const Bounds known = bounds_of(graph, index);
    return known.high && *known.high < 0 ? size + index : index;
}

struct Select {
    static Types infer(const InferContext& context) {
        Shape shape = context.type(0).shape;
        if (shape.empty()) return no_dimensions(context);
        const auto axis = axis_at(context, 1, shape.size());
        if (!axis) return std::unexpected(axis.error());
        const Sym index = from_start(context.graph(), context.size(2), shape[*axis]);
        if (const auto ok = at_least(context, index, 0, "index"); !ok) return std::unexpected(ok.error());
        if (const auto ok = at_least(context, shape[*axis], index + 1, "size"); !ok) return std::unexpected(ok.error());
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
        return one(context.type(0).dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        const auto axis = axis_at(context.node(), 1, in.shape.size());
        auto index = context.integer(2);
        if (!axis) return std::unexpected(axis.error());
        if (!index) return std::unexpected(index.error());
        const std::int64_t size = in.shape[*axis];
        if (*index < -size || *index >= size)
            return mismatch(ErrorCode::index_out_of_range, context.node().place(), "index",
                            cat("in [", -size, ", ", size, ")"), *index);
        if (*index < 0) *index += size;
        Dims shape;
        for (std::size_t d = 0; d < in.shape.size(); ++d)
            if (d != *axis) shape.push_back(in.shape[d]);
        auto out = context.make(in.dtype, shape);
        if (!out) return std::unexpected(out.error());
        gather(in, *out, [&](const Dims& at) {
            Dims from;
            for (std::size_t d = 0; d < in.shape.size(); ++d) from.push_back(d == *axis ? *index : at[d - (d > *axis)]);
            return from;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto axis = axis_at(node, 1, operand.shape.size());
        if (!axis) return std::unexpected(axis.error());
        const Sym index = from_start(node.graph(), node.size(2), operand.shape[*axis]);
        StridedView out{operand.offset + index * operand.strides[*axis], result.shape, operand.strides};
        out.strides.erase(out.strides.begin() + static_cast<std::ptrdiff_t>(*axis));
        return out;
    }
};

Result<Range> narrow_range(const NodeView& node) {
    const Shape& shape = node.type(0).shape;
    if (shape.empty()) return no_dimensions(node);
    const auto axis = axis_at(node, 1, shape.size());
    if (!axis) return std::unexpected(axis.error());
    return Range{*axis, from_start(node.graph(), node.size(2), shape[*axis]), node.size(3)};
}

struct Narrow {
    static Types infer(const InferContext& context) {
        const auto range = narrow_range(context);
        if (!range) return std::unexpected(range.error());
        Shape shape = context.type(0).shape;
        if (const auto ok = at_least(context, range->start, 0, "start"); !ok) return std::unexpected(ok.error());
        if (const auto ok = at_least(context, range->length, 0, "length"); !ok) return std::unexpected(ok.error());
        const auto fits = at_least(context, shape[range->axis], range->start + range->length, "size");
        if (!fits) return std::unexpected(fits.error());
        shape[range->axis] = range->length;
        return one(context.type(0).dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        const auto axis = axis_at(context.node(), 1, in.shape.size());
        auto start = context.integer(2);
        const auto length = context.integer(3);
        if (!axis) return std::unexpected(axis.error());
        if (!start) return std::unexpected(start.error());
        if (!length) return std::unexpected(length.error());
        const std::int64_t size = in.shape[*axis];
        if (*start < 0) *start += size;
        if (*start < 0 || *length < 0 || *start > size || *length > size - *start)
            return mismatch(ErrorCode::index_out_of_range, context.node().place(), "range", cat("within ", size),
                            cat(*start, " and ", *length, " more"));
        Dims shape = in.shape;
        shape[*axis] = *length;
        auto out = context.make(in.dtype, shape);
        if (!out) return std::unexpected(out.error());
        gather(in, *out, [&](Dims at) {
            at[*axis] += *start;
            return at;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto range = narrow_range(node);
        if (!range) return std::unexpected(range.error());
        return windowed(operand, *range, result.shape);
    }
};

Result<Axes> flip_axes(const NodeView& node) { return axes_at(node, 1, node.type(0).rank(), true); }
/// fliplr, flipud: one dimension of at least so many.
template <std::size_t axis>
Result<Axes> fixed_axis(const NodeView& node) {
    if (node.type(0).rank() <= axis)
        return mismatch(ErrorCode::bad_graph, node.place(), "rank", cat("at least ", axis + 1), node.type(0).rank());
    return Axes{axis};
}

template <auto axes_of>
struct Flip {
    static Types infer(const InferContext& context) {
        if (const auto axes = axes_of(context); !axes) return std::unexpected(axes.error());
        return one(context.type(0));
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        const auto axes = axes_of(context.node());
        auto out = context.make(in.dtype, in.shape);
        if (!axes) return std::unexpected(axes.error());
        if (!out) return std::unexpected(out.error());
        gather(in, *out, [&](Dims at) {
            for (const std::size_t d : *axes) at[d] = in.shape[d] - 1 - at[d];
            return at;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto axes = axes_of(node);
        if (!axes) return std::unexpected(axes.error());
        StridedView out{operand.offset, result.shape, operand.strides};
        for (const std::size_t d : *axes) {
            out.offset = out.offset + (operand.shape[d] - 1) * operand.strides[d];
            out.strides[d] = out.strides[d] * Sym(-1);
        }
        return out;
    }
};

struct DiagonalDims {
    std::size_t rows = 0, columns = 0;
    std::int64_t offset = 0;
};

Result<DiagonalDims> diagonal_dims(const NodeView& node) {
    const std::size_t rank = node.type(0).rank();
    if (rank < 2) return mismatch(ErrorCode::bad_graph, node.place(), "rank", "at least 2", rank);
    const auto offset = node.integer(1);
    const auto rows = axis_at(node, 2, rank), columns = axis_at(node, 3, rank);
    if (!offset) return std::unexpected(offset.error());
    if (!rows) return std::unexpected(rows.error());
    if (!columns) return std::unexpected(columns.error());
    if (*rows == *columns) return node.error("dim1 and dim2 are both ", *rows);
    return DiagonalDims{*rows, *columns, *offset};
}

struct Diagonal {
    static Types infer(const InferContext& context) {
        const auto dims = diagonal_dims(context);
        if (!dims) return std::unexpected(dims.error());
        const Shape& shape = context.type(0).shape;
        const Graph& graph = context.graph();
        const Sym rows = shape[dims->rows] + std::min<std::int64_t>(dims->offset, 0);
        const Sym columns = shape[dims->columns] - std::max<std::int64_t>(dims->offset, 0);
        Shape out = reduced(shape, {dims->rows, dims->columns}, false);
        out.push_back(larger(graph, smaller(graph, rows, columns), 0));
        return one(context.type(0).dtype, std::move(out));
    }
    static Values eval(const EvalContext& context) {
        const auto dims = diagonal_dims(context.node());
        if (!dims) return std::unexpected(dims.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        gather(in, *out, [&](const Dims& at) {
            Dims from;
            std::size_t next = 0;
            const std::int64_t place = at[at.size() - 1];
            for (std::size_t d = 0; d < in.shape.size(); ++d) {
                if (d == dims->rows)
                    from.push_back(place + std::max<std::int64_t>(-dims->offset, 0));
                else if (d == dims->columns)
                    from.push_back(place + std::max<std::int64_t>(dims->offset, 0));
                else
                    from.push_back(at[next++]);
            }
            return from;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto dims = diagonal_dims(node);
        if (!dims) return std::unexpected(dims.error());
        const Sym& down = operand.strides[dims->rows];
        const Sym& right = operand.strides[dims->columns];
        StridedView out{operand.offset, result.shape, reduced(operand.strides, {dims->rows, dims->columns}, false)};
        out.offset = out.offset + (dims->offset >= 0 ? right * Sym(dims->offset) : down * Sym(-dims->offset));
        out.strides.push_back(down + right);
        return out;
    }
};

struct UnfoldDims {
    std::size_t axis = 0;
    std::int64_t size = 0, step = 1;
};

Result<UnfoldDims> unfold_dims(const NodeView& node) {
    if (node.type(0).rank() == 0) return no_dimensions(node);
    const auto axis = axis_at(node, 1, node.type(0).rank());
    const auto size = node.integer(2), step = node.integer(3);
    if (!axis) return std::unexpected(axis.error());
    if (!size) return std::unexpected(size.error());
    if (!step) return std::unexpected(step.error());
    if (*size < 0) return mismatch(ErrorCode::bad_graph, node.place(), "size", "at least 0", *size);
    if (*step <= 0) return mismatch(ErrorCode::bad_graph, node.place(), "step", "at least 1", *step);
    return UnfoldDims{*axis, *size, *step};
}

struct Unfold {
    static Types infer(const InferContext& context) {
        const auto dims = unfold_dims(context);
        if (!dims) return std::unexpected(dims.error());
        Shape shape = context.type(0).shape;
        if (const auto ok = at_least(context, shape[dims->axis], dims->size, "size"); !ok)
            return std::unexpected(ok.error());
        shape[dims->axis] = floor_div(shape[dims->axis] - dims->size, dims->step) + 1;
        shape.emplace_back(dims->size);
        return one(context.type(0).dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        const auto dims = unfold_dims(context.node());
        if (!dims) return std::unexpected(dims.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        gather(in, *out, [&](const Dims& at) {
            Dims from;
            for (std::size_t d = 0; d < in.shape.size(); ++d)
                from.push_back(d == dims->axis ? at[d] * dims->step + at[at.size() - 1] : at[d]);
            return from;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto dims = unfold_dims(node);
        if (!dims) return std::unexpected(dims.error());
        StridedView out{operand.offset, result.shape, operand.strides};
        out.strides[dims->axis] = out.strides[dims->axis] * Sym(dims->step);
        out.strides.push_back(operand.strides[dims->axis]);
        return out;
    }
};

/// as_strided speaks of the operand's memory, which a graph does not have: it is accepted where that memory can only be
/// the operand's own row-major elements.
struct AsStrided {
    static Types infer(const InferContext& context) {
        const auto size = context.integers(1), stride = context.integers(2);
        if (!size) return std::unexpected(size.error());
        if (!stride) return std::unexpected(stride.error());
        if (!is_constant(context.type(0).shape)) return context.unsupported("the operand's sizes must be constant");
        std::int64_t last = 0;
        if (!context.is_none(3)) {
            const auto offset = context.integer(3);
            if (!offset) return std::unexpected(offset.error());
            last = *offset;
        }
        if (size->size() != stride->size())
            return mismatch(ErrorCode::bad_graph, context.place(), "strides", size->size(), stride->size());
        if (last < 0) return mismatch(ErrorCode::bad_graph, context.place(), "storage_offset", "at least 0", last);
        bool empty = false;
        for (std::size_t d = 0; d < size->size(); ++d) {
            if ((*size)[d] < 0 || (*stride)[d] < 0)
                return context.error("sizes and strides must not be negative: ", (*size)[d], ", ", (*stride)[d]);
            empty = empty || (*size)[d] == 0;
            const auto reach = checked_mul(std::max<std::int64_t>((*size)[d] - 1, 0), (*stride)[d]);
            const auto sum = reach ? checked_add(last, *reach) : std::nullopt;
            if (!sum) return context.error("the last element's index does not fit in 64 bits");
            last = *sum;
        }
        const Sym count = element_count(context.type(0).shape);
        if (!empty && last >= count.value())
            return mismatch(ErrorCode::bad_graph, context.place(), "index of the last element",
                            cat("below ", count.value()), last);
        return one(context.type(0).dtype, to_shape(*size));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const auto stride = context.integers(2);
        const auto offset = context.node().is_none(3) ? Result<std::int64_t>(0) : context.integer(3);
        if (!stride) return std::unexpected(stride.error());
        if (!offset) return std::unexpected(offset.error());
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            const Dims at = unravel(i, out->shape);
            std::int64_t from = *offset;
            for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * (*stride)[d];
            copy_element(context.tensor(0), static_cast<std::size_t>(from), *out, i);
        }
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        if (operand.offset != Sym(0) || operand.strides != row_major(operand.shape))
            return node.unsupported("the operand is a view: its memory is not known");
        return StridedView{node.is_none(3) ? Sym(0) : node.size(3), result.shape, node.sizes(2)};
    }
};

template <class T>
constexpr OpDef view_of(std::string_view schema) {
    return {.schema = schema, .infer = T::infer, .eval = T::eval, .view = T::view};
}

constexpr OpDef defs[] = {
    view_of<Slice>("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
                   "Tensor(a)"),
    view_of<Select>("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"),
    view_of<Narrow>("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"),
    view_of<Flip<flip_axes>>("flip(Tensor self, int[] dims) -> Tensor"),
    view_of<Flip<fixed_axis<1>>>("fliplr(Tensor self) -> Tensor"),
    view_of<Flip<fixed_axis<0>>>("flipud(Tensor self) -> Tensor"),
    view_of<Diagonal>("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"),
    view_of<Unfold>("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"),
    view_of<AsStrided>("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
                       "Tensor(a)"),
};

}  // namespace

std::span<const OpDef> view_index() { return defs; }

}  // namespace lyo::ops
