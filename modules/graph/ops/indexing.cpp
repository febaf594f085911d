// Reading by index: every operator here computes row-major positions, as pointwise arithmetic, and takes the elements
// there. Also cumulative sums and differences along a dimension.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;
import :pointwise;

namespace lyo::ops {
namespace {

/// lyo_take(self, index): Core::take.
struct Take {
    static Types infer(const InferContext& context) {
        if (context.type(1).dtype != DType::i64)
            return mismatch(ErrorCode::bad_graph, context.place(), "dtype of index", "i64",
                            to_string(context.type(1).dtype));
        return one(context.type(0).dtype, context.type(1).shape);
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor &x = context.tensor(0), &index = context.tensor(1);
        for (std::size_t i = 0; i < index.ints.size(); ++i) {
            const std::int64_t at = index.ints[i];
            if (at < 0 || at >= x.numel())
                return mismatch(ErrorCode::index_out_of_range, context.node().place(), "position",
                                cat("in [0, ", x.numel(), ")"), at);
            copy_element(x, static_cast<std::size_t>(at), *out, i);
        }
        return one(std::move(*out));
    }
};

/// lyo_index(index, size): negative numbers count from the end, and what is then not in [0, size) fails the call.
struct Index {
    static Types infer(const InferContext& context) {
        if (!is_integer(context.type(0).dtype))
            return mismatch(ErrorCode::unsupported_argument, context.place(), "dtype of an index",
                            "an integer (masks give results of unknown size)", to_string(context.type(0).dtype));
        return one(DType::i64, context.type(0).shape);
    }
    static Scalar emit(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> operands) {
        const X index = X(e, operands[0]).cast(DType::i64);
        const X size(e, e.size(node.size(1)));
        return e.check_index((index < 0).select(index + size, index).scalar(), node.size(1));
    }
};

/// Positions for coordinates, one tensor a dimension, that broadcast to the result.
ValueId positions(Steps& s, const Shape& shape, const std::vector<ValueId>& coordinates) {
    const Shape strides = row_major(shape);
    ValueId out = coordinates[0];
    for (std::size_t d = 0; d < coordinates.size(); ++d) {
        const ValueId term = strides[d] == Sym(1) ? coordinates[d] : s.mul(coordinates[d], strides[d]);
        out = d == 0 ? term : s.add(out, term);
    }
    return out;
}

/// 0, 1, ... along one of `rank` dimensions.
ValueId along(Steps& s, const Sym& size, std::size_t axis, std::size_t rank) {
    Shape shape(rank, Sym(1));
    shape[axis] = size;
    return s.reshape(s.iota(size), shape);
}

ValueId checked(Steps& s, ValueId index, const Sym& size) { return s.call("lyo_index", {index, size}); }

/// Elements at coordinates; a tensor without dimensions has one element.
ValueId taken(Steps& s, ValueId x, const Shape& result, const std::vector<ValueId>& coordinates) {
    const Shape shape = s.type(x).shape;
    const ValueId at = coordinates.empty() ? s.full(result, Sym(0), DType::i64) : positions(s, shape, coordinates);
    return s.call("lyo_take", {x, s.expand(at, result)});
}

/// What the operators below have in common: the result's type, and by decomposition the result; reference values follow
/// the same coordinates through the interpreter's own arithmetic.
struct Embedding {
    static constexpr std::size_t weight = 0, indices = 1;
    static Types infer(const InferContext& context) {
        if (context.type(weight).rank() != 2)
            return mismatch(ErrorCode::bad_graph, context.place(), "rank of weight", 2, context.type(weight).rank());
        Shape shape = context.type(indices).shape;
        shape.push_back(context.type(weight).shape[1]);
        return one(context.type(weight).dtype, std::move(shape));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps s(builder);
        const Shape table = node.type(weight).shape;
        Shape shape = node.type(indices).shape;
        const std::size_t rank = shape.size();
        const ValueId row = s.unsqueeze(checked(s, node.tensor(indices), table[0]), rank);
        shape.push_back(table[1]);
        return s.done({taken(s, node.tensor(weight), shape, {row, along(s, table[1], rank, rank + 1)})});
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor &table = context.tensor(weight), &index = context.tensor(indices);
        const std::int64_t rows = table.shape[0], columns = table.shape[1];
        for (std::size_t i = 0; i < index.ints.size(); ++i) {
            const std::int64_t row = index.ints[i] < 0 ? index.ints[i] + rows : index.ints[i];
            if (row < 0 || row >= rows)
                return mismatch(ErrorCode::index_out_of_range, context.node().place(), "index",
                                cat("in [0, ", rows, ")"), index.ints[i]);
            for (std::int64_t c = 0; c < columns; ++c)
                copy_element(table, static_cast<std::size_t>(row * columns + c), *out,
                             i * static_cast<std::size_t>(columns) + static_cast<std::size_t>(c));
        }
        return one(std::move(*out));
    }
};

/// gather and index_select: one dimension by index.
template <bool select>
struct AlongDimension {
    static Types infer(const InferContext& context) {
        const TensorType &x = context.type(0), &index = context.type(2);
        const auto axis = axis_at(context, 1, x.rank());
        if (!axis) return std::unexpected(axis.error());
        if constexpr (select) {
            if (index.rank() > 1)
                return mismatch(ErrorCode::bad_graph, context.place(), "rank of index", "0 or 1", index.rank());
            TensorType out = x;
            if (x.rank() > 0) out.shape[*axis] = element_count(index.shape);
            return one(std::move(out));
        } else {
            if (index.rank() != x.rank())
                return mismatch(ErrorCode::bad_graph, context.place(), "rank of index", x.rank(), index.rank());
            for (std::size_t d = 0; d < x.rank(); ++d)
                if (d != *axis)
                    if (auto ok = at_least(context, x.shape[d], index.shape[d], "size beside an index"); !ok)
                        return std::unexpected(ok.error());
            return one(x.dtype, index.shape);
        }
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps s(builder);
        const Shape shape = node.type(0).shape;
        const auto axis = axis_at(node, 1, shape.size());
        if (!axis) return std::unexpected(axis.error());
        Shape result = select ? shape : node.type(2).shape;
        if (select && !shape.empty()) result[*axis] = element_count(node.type(2).shape);
        std::vector<ValueId> coordinates;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (d != *axis) {
                coordinates.push_back(along(s, result[d], d, shape.size()));
                continue;
            }
            ValueId index = checked(s, node.tensor(2), shape[d]);
            if (select) {
                Shape there(shape.size(), Sym(1));
                there[d] = result[d];
                index = s.reshape(index, there);
            }
            coordinates.push_back(index);
        }
        return s.done({taken(s, node.tensor(0), result, coordinates)});
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor &x = context.tensor(0), &index = context.tensor(2);
        const auto axis = axis_at(context.node(), 1, x.shape.size());
        if (!axis) return std::unexpected(axis.error());
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            Dims at = unravel(i, out->shape);
            if (at.size() > 0) {
                const std::int64_t size = x.shape[*axis],
                                   given = index.ints[select ? static_cast<std::size_t>(at[*axis]) : i];
                at[*axis] = given < 0 ? given + size : given;
                if (at[*axis] < 0 || at[*axis] >= size)
                    return mismatch(ErrorCode::index_out_of_range, context.node().place(), "index",
                                    cat("in [0, ", size, ")"), given);
            }
            copy_element(x, ravel(at, x.shape), *out, i);
        }
        return one(std::move(*out));
    }
};

/// index.Tensor: several dimensions by tensors that broadcast together. Adjacent ones are replaced in place, others
/// come first.
struct IndexTensors {
    struct Form {
        std::vector<std::optional<ValueId>> by;  // one a dimension
        std::size_t first = 0;                   // where the indices' own dimensions stand in the result
        Shape common;                            // what the indices broadcast to
    };
    static Result<Form> form(const InferContext& context) {
        Form f;
        const auto given = context.tensors(1);
        const std::size_t rank = context.type(0).rank();
        if (given.size() > rank)
            return mismatch(ErrorCode::bad_graph, context.place(), "indices", cat("at most ", rank), given.size());
        f.by.assign(given.begin(), given.end());
        f.by.resize(rank);
        std::optional<std::size_t> first, last;
        std::size_t count = 0;
        for (std::size_t d = 0; d < rank; ++d) {
            if (!f.by[d]) continue;
            if (!first) first = d;
            last = d;
            ++count;
            auto shape = context.broadcast(f.common, context.graph().type(*f.by[d]).shape);
            if (!shape) return std::unexpected(shape.error());
            f.common = std::move(*shape);
        }
        if (count == 0) return context.error("no index is given");
        f.first = *last - *first + 1 == count ? *first : 0;
        return f;
    }
    static Shape result(const Form& f, const Shape& shape) {
        Shape out;
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (!f.by[d]) out.push_back(shape[d]);
        out.insert(out.begin() + static_cast<std::ptrdiff_t>(f.first), f.common.begin(), f.common.end());
        return out;
    }
    static Types infer(const InferContext& context) {
        const auto f = form(context);
        if (!f) return std::unexpected(f.error());
        for (const auto& index : f->by)
            if (index && !is_integer(context.graph().type(*index).dtype))
                return context.unsupported("an index of dtype ", to_string(context.graph().type(*index).dtype),
                                           ": masks give results of unknown size");
        return one(context.type(0).dtype, result(*f, context.type(0).shape));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        std::vector<Relation> known;
        const auto f = form(InferContext(node, known));
        if (!f) return std::unexpected(f.error());
        Steps s(builder);
        const Shape shape = node.type(0).shape, out = result(*f, shape);
        std::vector<ValueId> coordinates;
        std::size_t plain = 0;  // dimensions without an index so far
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (!f->by[d]) {
                const std::size_t at = plain < f->first ? plain : plain + f->common.size();
                coordinates.push_back(along(s, shape[d], at, out.size()));
                ++plain;
                continue;
            }
            const ValueId index = checked(s, *f->by[d], shape[d]);
            // Right-aligned with the indices' common dimensions, then ones for what follows them.
            Shape there = builder.error() ? Shape() : s.type(index).shape;
            there.resize(there.size() + out.size() - f->first - f->common.size(), Sym(1));
            coordinates.push_back(s.reshape(index, there));
        }
        return s.done({taken(s, node.tensor(0), out, coordinates)});
    }
    static Values eval(const EvalContext& context) {
        std::vector<Relation> known;
        const auto f = form(InferContext(context.node(), known));
        if (!f) return std::unexpected(f.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& x = context.tensor(0);
        const std::size_t common = f->common.size();
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            const Dims at = unravel(i, out->shape);
            Dims inner, sizes, from = x.shape;
            for (std::size_t d = 0; d < common; ++d) {
                inner.push_back(at[f->first + d]);
                sizes.push_back(out->shape[f->first + d]);
            }
            std::size_t plain = 0;
            for (std::size_t d = 0; d < x.shape.size(); ++d) {
                if (!f->by[d]) {
                    from[d] = at[plain < f->first ? plain : plain + common];
                    ++plain;
                    continue;
                }
                const HostTensor& index = context.tensor(*f->by[d]);
                const std::int64_t given = index.ints[broadcast_index(ravel(inner, sizes), sizes, index.shape)];
                from[d] = given < 0 ? given + x.shape[d] : given;
                if (from[d] < 0 || from[d] >= x.shape[d])
                    return mismatch(ErrorCode::index_out_of_range, context.node().place(), "index",
                                    cat("in [0, ", x.shape[d], ")"), given);
            }
            copy_element(x, ravel(from, x.shape), *out, i);
        }
        return one(std::move(*out));
    }
};

/// cumsum: each element the sum of those up to it, as a masked sum over a second copy of the dimension.
struct CumSum {
    static DType dtype_of(const NodeView& node) {
        if (!node.is_none(2)) return node.dtype(2);
        return is_float(node.type(0).dtype) ? node.type(0).dtype : DType::i64;
    }
    static Types infer(const InferContext& context) {
        if (const auto axis = axis_at(context, 1, context.type(0).rank()); !axis) return std::unexpected(axis.error());
        return one(dtype_of(context), context.type(0).shape);
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps s(builder);
        const Shape shape = node.type(0).shape;
        const auto axis = axis_at(node, 1, shape.size());
        if (!axis) return std::unexpected(axis.error());
        const DType dtype = dtype_of(node);
        ValueId x = s.cast(node.tensor(0), dtype);
        if (shape.empty()) return s.done({x});
        x = s.cast(x, compute_dtype(dtype));
        const std::size_t rank = shape.size() + 1;
        if (rank > max_rank) return node.unsupported("a tensor of ", shape.size(), " dimensions");
        const ValueId upto =
            s.call("le.Tensor", {along(s, shape[*axis], *axis + 1, rank), along(s, shape[*axis], *axis, rank)});
        const ValueId zero = s.full({}, Sym(0), compute_dtype(dtype));
        const ValueId terms = s.where(upto, s.unsqueeze(x, *axis), zero);
        return s.done({s.cast(s.reduce("lyo_sum", terms, {*axis + 1}, false), dtype)});
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const auto axis = axis_at(context.node(), 1, out->shape.size());
        if (!axis) return std::unexpected(axis.error());
        const HostTensor x = converted(context.tensor(0), out->dtype);
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            Dims at = unravel(i, out->shape);
            copy_element(x, i, *out, i);
            if (at.size() == 0 || at[*axis] == 0) continue;
            --at[*axis];
            const std::size_t before = ravel(at, out->shape);
            if (out->is_real())
                out->set(i, out->reals[before] + x.reals[i]);
            else
                out->set(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(out->ints[before]) +
                                                      static_cast<std::uint64_t>(x.ints[i])));
        }
        return one(std::move(*out));
    }
};

/// diff: neighbours' differences, n times, of what is before the tensor, the tensor, and what is behind it.
struct Diff {
    static constexpr std::size_t prepend = 3, append = 4;
    static Result<std::int64_t> times(const NodeView& node) {
        for (const std::size_t i : {prepend, append})
            if (!node.is_none(i) &&
                (node.type(i).dtype != node.type(0).dtype || node.type(i).rank() != node.type(0).rank()))
                return node.unsupported(node.op().params[i].name, " of another dtype or rank than the tensor");
        const auto n = node.integer(1);
        if (n && *n < 0) return mismatch(ErrorCode::bad_graph, node.place(), "n", "at least 0", *n);
        return n;
    }
    static Types infer(const InferContext& context) {
        TensorType type = context.type(0);
        const auto axis = axis_at(context, 2, type.rank());
        const auto n = times(context);
        if (!axis) return std::unexpected(axis.error());
        if (!n) return std::unexpected(n.error());
        if (type.rank() == 0) return context.error("a dimension is needed");
        Sym size = type.shape[*axis];
        for (const std::size_t i : {prepend, append})
            if (!context.is_none(i)) size = size + context.type(i).shape[*axis];
        type.shape[*axis] = *n == 0 ? type.shape[*axis] : larger(context.graph(), size - Sym(*n), 0);
        return one(std::move(type));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto axis = axis_at(node, 2, node.type(0).rank());
        const auto n = times(node);
        if (!axis) return std::unexpected(axis.error());
        if (!n) return std::unexpected(n.error());
        Steps s(builder);
        ValueId x = node.tensor(0);
        if (*n > 0) {
            std::vector<ValueId> parts;
            if (!node.is_none(prepend)) parts.push_back(node.tensor(prepend));
            parts.push_back(x);
            if (!node.is_none(append)) parts.push_back(node.tensor(append));
            x = s.cat(parts, *axis);
        }
        for (std::int64_t i = 0; i < *n && !builder.error(); ++i) {
            const TensorType type = s.type(x);
            const Sym size = type.shape[*axis];
            if (size == Sym(0)) break;
            // Of nothing there are no differences either.
            const Sym last = larger(builder.graph(), size - Sym(1), 0);
            const ValueId behind = s.slice(x, *axis, 1, size), before = s.slice(x, *axis, 0, last);
            x = s.call(type.dtype == DType::boolean ? "ne.Tensor" : "sub.Tensor", {behind, before});
        }
        return s.done({x});
    }
    /// The tensors one behind the other.
    static Result<HostTensor> whole(const EvalContext& context, std::size_t axis) {
        Dims shape = context.tensor(0).shape;
        for (const std::size_t i : {prepend, append})
            if (!context.node().is_none(i)) shape[axis] += context.tensor(i).shape[axis];
        auto out = context.make(context.tensor(0).dtype, shape);
        if (!out) return out;
        std::int64_t start = 0;
        for (const std::size_t i : {prepend, std::size_t{0}, append}) {
            if (context.node().is_none(i)) continue;
            const HostTensor& part = context.tensor(i);
            for (std::size_t k = 0; k < static_cast<std::size_t>(part.numel()); ++k) {
                Dims at = unravel(k, part.shape);
                at[axis] += start;
                copy_element(part, k, *out, ravel(at, shape));
            }
            start += part.shape[axis];
        }
        return out;
    }
    static Values eval(const EvalContext& context) {
        const auto n = times(context.node());
        if (!n) return std::unexpected(n.error());
        if (*n == 0) return one(context.tensor(0));
        const auto axis = axis_at(context.node(), 2, context.tensor(0).shape.size());
        if (!axis) return std::unexpected(axis.error());
        auto x = whole(context, *axis);
        if (!x) return std::unexpected(x.error());
        for (std::int64_t k = 0; k < *n && x->shape[*axis] > 0; ++k) {
            Dims shape = x->shape;
            --shape[*axis];
            auto out = context.make(x->dtype, shape);
            if (!out) return std::unexpected(out.error());
            for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
                Dims at = unravel(i, shape);
                const std::size_t before = ravel(at, x->shape);
                ++at[*axis];
                const std::size_t behind = ravel(at, x->shape);
                if (x->is_real())
                    out->set(i, x->reals[behind] - x->reals[before]);
                else if (x->dtype == DType::boolean)
                    out->set(i, std::int64_t{x->ints[behind] != x->ints[before]});
                else
                    out->set(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(x->ints[behind]) -
                                                          static_cast<std::uint64_t>(x->ints[before])));
            }
            x = std::move(out);
        }
        return one(std::move(*x));
    }
};

constexpr OpDef defs[] = {
    {.schema = "lyo_take(Tensor self, Tensor index) -> Tensor",
     .infer = Take::infer,
     .eval = Take::eval,
     .core = Core::take},
    {.schema = "lyo_index(Tensor index, SymInt size) -> Tensor",
     .infer = Index::infer,
     .eval = eval_pointwise,
     .emit = Index::emit},
    made<Embedding, true>(
        "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
        "sparse=False) -> Tensor"),
    made<AlongDimension<false>, true>(
        "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"),
    made<AlongDimension<true>, true>("index_select(Tensor self, int dim, Tensor index) -> Tensor"),
    made<IndexTensors, true>("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"),
    made<CumSum, true>("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"),
    made<Diff, true>("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor"),
};

}  // namespace

std::span<const OpDef> indexing() { return defs; }

}  // namespace lyo::ops
