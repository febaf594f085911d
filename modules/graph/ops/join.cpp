// Tensors from several, or from several copies of one: cat, stack, repeat, roll. The compiler knows lyo_cat
// (Core::cat).
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

Result<std::vector<ValueId>> parts_of(const NodeView& node) {
    std::vector<ValueId> out;
    for (const auto& id : node.tensors(0)) {
        if (!id) return node.error("a tensor of the list is missing");
        out.push_back(*id);
    }
    if (out.empty()) return node.error("no tensors");
    return out;
}

/// The shape of several tensors, one after the other along `axis`.
Result<Shape> joined_shape(const InferContext& context, std::span<const Shape> shapes, std::size_t axis) {
    Shape out = shapes[0];
    for (const Shape& next : shapes.subspan(1)) {
        if (next.size() != out.size())
            return mismatch(ErrorCode::bad_graph, context.place(), "rank", out.size(), next.size());
        for (std::size_t d = 0; d < out.size(); ++d) {
            if (d == axis) {
                out[d] = out[d] + next[d];
                continue;
            }
            const auto same = context.equal(out[d], next[d], cat("dimension ", d));
            if (!same) return std::unexpected(same.error());
            out[d] = *same;
        }
    }
    return out;
}

/// Copies parts one after the other along `axis`.
void join(std::span<const HostTensor> parts, std::size_t axis, HostTensor& out) {
    std::int64_t start = 0;
    for (const HostTensor& part : parts) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(part.numel()); ++i) {
            Dims at = unravel(i, part.shape);
            at[axis] += start;
            copy_element(part, i, out, ravel(at, out.shape));
        }
        start += part.shape[axis];
    }
}

struct CoreCat {
    static Types infer(const InferContext& context) {
        const auto parts = parts_of(context);
        if (!parts) return std::unexpected(parts.error());
        const TensorType& first = context.graph().type((*parts)[0]);
        if (first.rank() == 0) return context.error("a tensor without dimensions cannot be joined");
        const auto axis = axis_at(context, 1, first.rank());
        if (!axis) return std::unexpected(axis.error());
        std::vector<Shape> shapes;
        for (const ValueId part : *parts) {
            const TensorType& type = context.graph().type(part);
            if (type.dtype != first.dtype) return context.error("the tensors' dtypes differ");
            shapes.push_back(type.shape);
        }
        auto shape = joined_shape(context, shapes, *axis);
        if (!shape) return std::unexpected(shape.error());
        return one(first.dtype, std::move(*shape));
    }
    static Values eval(const EvalContext& context) {
        const auto parts = parts_of(context.node());
        auto out = make_result(context);
        if (!parts) return std::unexpected(parts.error());
        if (!out) return std::unexpected(out.error());
        const auto axis = axis_at(context.node(), 1, out->shape.size());
        if (!axis) return std::unexpected(axis.error());
        std::vector<HostTensor> tensors;
        for (const ValueId part : *parts) tensors.push_back(context.tensor(part));
        join(tensors, *axis, *out);
        return one(std::move(*out));
    }
};

// cat and those that only reshape their tensors before it. The form of each tensor depends on its own shape.

struct Joining {
    std::vector<ValueId> parts;
    std::vector<Shape> shapes;  ///< of the parts when joined
    std::size_t axis = 0;
    DType dtype = DType::f32;
};

template <class Form>
Result<Joining> joining_of(const NodeView& node) {
    const auto parts = parts_of(node);
    if (!parts) return std::unexpected(parts.error());
    Joining out;
    out.dtype = node.graph().type((*parts)[0]).dtype;
    for (const ValueId part : *parts) out.dtype = promote(out.dtype, node.graph().type(part).dtype);
    const auto ok = Form::arrange(node, *parts, out);
    if (!ok) return std::unexpected(ok.error());
    return out;
}

struct CatForm {
    /// Before tensors of any shape could be empty, [] of shape [0] joined everything: PyTorch still leaves it out.
    static Result<> arrange(const NodeView& node, const std::vector<ValueId>& parts, Joining& out) {
        for (const ValueId part : parts) {
            const Shape& shape = node.graph().type(part).shape;
            if (shape == Shape{0}) continue;
            out.parts.push_back(part);
            out.shapes.push_back(shape);
        }
        if (out.parts.empty()) {
            out.parts = {parts[0]};
            out.shapes = {{0}};
        }
        if (out.shapes[0].empty()) return node.error("a tensor without dimensions cannot be joined");
        const auto axis = axis_at(node, 1, out.shapes[0].size());
        if (!axis) return std::unexpected(axis.error());
        out.axis = *axis;
        return {};
    }
};

struct StackForm {
    static Result<> arrange(const NodeView& node, const std::vector<ValueId>& parts, Joining& out) {
        const auto axis = axis_at(node, 1, node.graph().type(parts[0]).rank() + 1);
        if (!axis) return std::unexpected(axis.error());
        out.axis = *axis;
        out.parts = parts;
        for (const ValueId part : parts) {
            Shape shape = node.graph().type(part).shape;
            if (shape.size() < *axis) return node.error("the tensors' ranks differ");
            shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), Sym(1));
            out.shapes.push_back(std::move(shape));
        }
        return {};
    }
};

/// hstack, vstack, dstack, column_stack: `rank` dimensions at least, by the rules of atleast_Nd.
template <std::size_t rank, bool columns>
struct NumpyForm {
    static Result<> arrange(const NodeView& node, const std::vector<ValueId>& parts, Joining& out) {
        out.parts = parts;
        for (const ValueId part : parts) {
            Shape shape = node.graph().type(part).shape;
            if (shape.empty()) shape.emplace_back(1);
            if (rank >= 2 && shape.size() == 1) shape.insert(columns ? shape.end() : shape.begin(), Sym(1));
            if (rank >= 3 && shape.size() == 2) shape.emplace_back(1);
            out.shapes.push_back(std::move(shape));
        }
        // hstack joins vectors along their only dimension.
        out.axis = rank == 1 ? (out.shapes[0].size() == 1 ? 0 : 1) : rank == 2 ? (columns ? 1 : 0) : 2;
        return {};
    }
};

template <class Form>
struct Join {
    static Types infer(const InferContext& context) {
        const auto joining = joining_of<Form>(context);
        if (!joining) return std::unexpected(joining.error());
        auto shape = joined_shape(context, joining->shapes, joining->axis);
        if (!shape) return std::unexpected(shape.error());
        return one(joining->dtype, std::move(*shape));
    }
    static Values eval(const EvalContext& context) {
        const auto joining = joining_of<Form>(context.node());
        auto out = make_result(context);
        if (!joining) return std::unexpected(joining.error());
        if (!out) return std::unexpected(out.error());
        std::vector<HostTensor> tensors;
        for (std::size_t i = 0; i < joining->parts.size(); ++i) {
            const auto shape = context.dims(joining->shapes[i]);
            if (!shape) return std::unexpected(shape.error());
            tensors.push_back(converted(context.tensor(joining->parts[i]), joining->dtype));
            tensors.back().shape = *shape;
        }
        join(tensors, joining->axis, *out);
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto joining = joining_of<Form>(node);
        if (!joining) return std::unexpected(joining.error());
        Steps steps(builder);
        std::vector<ValueId> parts;
        for (std::size_t i = 0; i < joining->parts.size(); ++i)
            parts.push_back(steps.reshape(steps.cast(joining->parts[i], joining->dtype), joining->shapes[i]));
        return steps.done({steps.cat(parts, joining->axis)});
    }
};

// repeat, tile: the whole tensor several times along each dimension.

struct Copies {
    Shape shape;               ///< of the operand, with leading ones
    std::vector<Sym> repeats;  ///< one a dimension
};

template <bool is_tile>
Result<Copies> copies_of(const NodeView& node) {
    Copies out{node.type(0).shape, node.sizes(1)};
    if (is_tile && out.repeats.size() < out.shape.size())
        out.repeats.insert(out.repeats.begin(), out.shape.size() - out.repeats.size(), Sym(1));
    if (out.repeats.size() < out.shape.size())
        return mismatch(ErrorCode::bad_graph, node.place(), "repeats", cat("at least ", out.shape.size()),
                        out.repeats.size());
    out.shape.insert(out.shape.begin(), out.repeats.size() - out.shape.size(), Sym(1));
    return out;
}

template <bool is_tile>
struct Repeat {
    static Types infer(const InferContext& context) {
        const auto copies = copies_of<is_tile>(context);
        if (!copies) return std::unexpected(copies.error());
        Shape shape = copies->shape;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const auto ok = at_least(context, copies->repeats[d], 0, "repeats");
            if (!ok) return std::unexpected(ok.error());
            shape[d] = shape[d] * copies->repeats[d];
        }
        return one(context.type(0).dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        const std::size_t lead = out->shape.size() - in.shape.size();
        gather(in, *out, [&](const Dims& at) {
            Dims from;
            for (std::size_t d = 0; d < in.shape.size(); ++d) from.push_back(at[lead + d] % in.shape[d]);
            return from;
        });
        return one(std::move(*out));
    }
    /// Each repeated dimension gets one before it, which is expanded; a dimension of size 1 is expanded itself.
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto copies = copies_of<is_tile>(node);
        if (!copies) return std::unexpected(copies.error());
        Shape split, wide, whole;
        for (std::size_t d = 0; d < copies->shape.size(); ++d) {
            const Sym &size = copies->shape[d], &count = copies->repeats[d];
            whole.push_back(size * count);
            if (size != Sym(1) && count != Sym(1)) {
                split.emplace_back(1);
                wide.push_back(count);
            }
            split.push_back(size);
            wide.push_back(size == Sym(1) ? count : size);
        }
        Steps steps(builder);
        if (split.size() <= max_rank)
            return steps.done({steps.reshape(steps.expand(steps.reshape(node.tensor(0), split), wide), whole)});
        // Too many dimensions for that: one after the other, by joining copies.
        ValueId x = steps.reshape(node.tensor(0), copies->shape);
        for (std::size_t d = 0; d < copies->shape.size(); ++d) {
            const Sym& count = copies->repeats[d];
            if (!count.is_constant() || count.value() < 1 || count.value() > (1 << 10))
                return node.unsupported("repeats of ", count.to_string(), " in so many dimensions");
            x = steps.cat(std::vector<ValueId>(static_cast<std::size_t>(count.value()), x), d);
        }
        return steps.done({x});
    }
};

/// repeat_interleave: each element several times; without dim, of the flattened tensor.
struct Interleave {
    static Result<std::optional<std::size_t>> axis_of(const NodeView& node) {
        if (node.is_none(2)) return std::nullopt;
        const auto axis = axis_at(node, 2, node.type(0).rank());
        if (!axis) return std::unexpected(axis.error());
        return node.type(0).rank() == 0 ? std::nullopt : std::optional(*axis);
    }
    static Types infer(const InferContext& context) {
        const auto axis = axis_of(context);
        if (!axis) return std::unexpected(axis.error());
        if (const auto ok = at_least(context, context.size(1), 0, "repeats"); !ok) return std::unexpected(ok.error());
        Shape shape = context.type(0).shape;
        if (*axis)
            shape[**axis] = shape[**axis] * context.size(1);
        else
            shape = {element_count(shape) * context.size(1)};
        return one(context.type(0).dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        const auto axis = axis_of(context.node());
        auto out = make_result(context);
        const auto count = context.integer(1);
        if (!axis) return std::unexpected(axis.error());
        if (!out) return std::unexpected(out.error());
        if (!count) return std::unexpected(count.error());
        HostTensor in = context.tensor(0);
        if (!*axis) in.shape = {in.numel()};
        gather(in, *out, [&](Dims at) {
            at[axis->value_or(0)] /= *count;
            return at;
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto axis = axis_of(node);
        if (!axis) return std::unexpected(axis.error());
        const Shape shape = *axis ? node.type(0).shape : Shape{element_count(node.type(0).shape)};
        const std::size_t d = axis->value_or(0);
        Shape wide = shape, whole = shape;
        wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(d) + 1, node.size(1));
        whole[d] = whole[d] * node.size(1);
        Steps steps(builder);
        const ValueId x = steps.reshape(node.tensor(0), shape);
        return steps.done({steps.reshape(steps.expand(steps.unsqueeze(x, d + 1), wide), whole)});
    }
};

// roll: what leaves at one end comes in at the other; without dims, of the flattened tensor.

struct Roll {
    static Result<std::vector<std::pair<std::size_t, Sym>>> shifts_of(const NodeView& node) {
        const std::vector<Sym>& shifts = node.sizes(1);
        const auto dims = node.integers(2);
        if (!dims) return std::unexpected(dims.error());
        std::vector<std::pair<std::size_t, Sym>> out;
        if (dims->empty()) {
            if (shifts.size() != 1) return mismatch(ErrorCode::bad_graph, node.place(), "shifts", 1, shifts.size());
            out.emplace_back(0, shifts[0]);
            return out;
        }
        if (dims->size() != shifts.size())
            return mismatch(ErrorCode::bad_graph, node.place(), "shifts", dims->size(), shifts.size());
        if (node.type(0).rank() == 0) return node.error("a tensor without dimensions");
        for (std::size_t i = 0; i < dims->size(); ++i) {
            const auto axis = normalize_dim(node, (*dims)[i], node.type(0).rank());
            if (!axis) return std::unexpected(axis.error());
            out.emplace_back(*axis, shifts[i]);
        }
        return out;
    }
    static Types infer(const InferContext& context) {
        if (const auto shifts = shifts_of(context); !shifts) return std::unexpected(shifts.error());
        return one(context.type(0));
    }
    static Values eval(const EvalContext& context) {
        const auto shifts = shifts_of(context.node());
        const auto amounts = context.integers(1);
        if (!shifts) return std::unexpected(shifts.error());
        if (!amounts) return std::unexpected(amounts.error());
        HostTensor in = context.tensor(0);
        const Dims shape = in.shape;
        if (context.node().sizes(2).empty()) in.shape = {in.numel()};
        HostTensor out = in;
        gather(in, out, [&](Dims at) {
            for (std::size_t i = 0; i < shifts->size(); ++i) {
                std::int64_t& place = at[(*shifts)[i].first];
                const std::int64_t size = in.shape[(*shifts)[i].first];
                place = floor_mod(place - floor_mod((*amounts)[i], size), size);
            }
            return at;
        });
        out.shape = shape;
        return one(std::move(out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto shifts = shifts_of(node);
        if (!shifts) return std::unexpected(shifts.error());
        const Shape shape = node.type(0).shape;
        const bool flat = node.sizes(2).empty();
        const Shape own = flat ? Shape{element_count(shape)} : shape;
        std::vector<Sym> starts;
        for (const auto& [axis, shift] : *shifts) {
            const Sym size = larger(node.graph(), own[axis], 1);  // no division by zero
            starts.push_back(own[axis] - mod(shift, size));
        }
        const Graph& graph = node.graph();
        Steps steps(builder);
        ValueId x = steps.reshape(node.tensor(0), own);
        for (std::size_t i = 0; i < shifts->size(); ++i) {
            const std::size_t axis = (*shifts)[i].first;
            const Sym &size = own[axis], start = larger(graph, starts[i], 0);
            if (start == size || size == Sym(0)) continue;
            x = steps.cat({steps.slice(x, axis, start, size), steps.slice(x, axis, 0, start)}, axis);
        }
        return steps.done({steps.reshape(x, shape)});
    }
};

constexpr OpDef defs[] = {
    {.schema = "lyo_cat(Tensor[] tensors, int dim) -> Tensor",
     .infer = CoreCat::infer,
     .eval = CoreCat::eval,
     .core = Core::cat},
    made<Join<CatForm>>("cat(Tensor[] tensors, int dim=0) -> Tensor"),
    made<Join<CatForm>>("concat(Tensor[] tensors, int dim=0) -> Tensor"),
    made<Join<CatForm>>("concatenate(Tensor[] tensors, int dim=0) -> Tensor"),
    made<Join<StackForm>>("stack(Tensor[] tensors, int dim=0) -> Tensor"),
    made<Join<NumpyForm<1, false>>>("hstack(Tensor[] tensors) -> Tensor"),
    made<Join<NumpyForm<2, false>>>("vstack(Tensor[] tensors) -> Tensor"),
    made<Join<NumpyForm<3, false>>>("dstack(Tensor[] tensors) -> Tensor"),
    made<Join<NumpyForm<2, true>>>("column_stack(Tensor[] tensors) -> Tensor"),
    made<Repeat<false>>("repeat(Tensor self, SymInt[] repeats) -> Tensor"),
    made<Repeat<true>>("tile(Tensor self, SymInt[] dims) -> Tensor"),
    made<Interleave>("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
                     "output_size=None) -> Tensor"),
    made<Roll>("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"),
};

}  // namespace

std::span<const OpDef> join() {
    static const std::vector<OpDef> all = joined({defs, pad()});
    return all;
}

}  // namespace lyo::ops
