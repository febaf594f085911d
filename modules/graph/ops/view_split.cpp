// Operators that cut a tensor into pieces along one dimension: in terms of the plain views.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

struct Piece {
    Sym start, length;
};
struct Pieces {
    std::size_t axis = 0;
    std::vector<Piece> pieces;
};

/// Most pieces that one node may give.
constexpr std::int64_t max_pieces = 1 << 16;

/// `count` pieces of `length`, the last one being what is left.
std::vector<Piece> even(const Sym& size, const Sym& length, std::int64_t count) {
    std::vector<Piece> out;
    for (std::int64_t i = 0; i < count; ++i) {
        const Sym start = length * Sym(i);
        out.push_back({start, i + 1 < count ? length : size - start});
    }
    return out;
}

Result<std::size_t> piece_axis(const InferContext& context) {
    const std::size_t rank = context.type(0).rank();
    if (rank == 0) return context.error("a tensor without dimensions");
    return axis_at(context, 2, rank);
}

Result<Pieces> split_pieces(const InferContext& context) {
    const auto axis = piece_axis(context);
    if (!axis) return std::unexpected(axis.error());
    const Sym& size = context.type(0).shape[*axis];
    const Sym& length = context.size(1);
    if (length.is_constant() && (length.value() < 0 || (length.value() == 0 && size != Sym(0))))
        return mismatch(ErrorCode::bad_graph, context.place(), "split_size", "at least 1", length.value());
    if (size == Sym(0)) return Pieces{*axis, {{0, 0}}};
    const Sym count = ceil_div(size, length);
    if (!count.is_constant())
        return context.unsupported("the number of pieces of ", length.to_string(), " in ", size.to_string(),
                                   " is not constant");
    if (count.value() > max_pieces) return context.unsupported(count.value(), " pieces are too many");
    return Pieces{*axis, even(size, length, count.value())};
}

/// torch.chunk: pieces of ceil(size / chunks), which may be fewer than asked for. A symbolic size is taken to give all.
Result<Pieces> chunk_pieces(const InferContext& context) {
    const auto axis = piece_axis(context);
    const auto chunks = context.integer(1);
    if (!axis) return std::unexpected(axis.error());
    if (!chunks) return std::unexpected(chunks.error());
    if (*chunks <= 0 || *chunks > max_pieces)
        return mismatch(ErrorCode::bad_graph, context.place(), "chunks", cat("in [1, ", max_pieces, "]"), *chunks);
    const Sym& size = context.type(0).shape[*axis];
    const Sym length = ceil_div(size, *chunks);
    if (size == Sym(0)) return Pieces{*axis, even(0, 0, *chunks)};
    if (size.is_constant()) return Pieces{*axis, even(size, length, ceil_div(size, length).value())};
    Pieces out{*axis, even(size, length, *chunks)};
    if (const auto ok = at_least(context, out.pieces.back().length, 1, "size of the last chunk"); !ok)
        return std::unexpected(ok.error());
    return out;
}

Result<Pieces> sized_pieces(const InferContext& context) {
    const auto axis = piece_axis(context);
    if (!axis) return std::unexpected(axis.error());
    Pieces out{*axis, {}};
    Sym start = 0;
    for (const Sym& length : context.sizes(1)) {
        if (const auto ok = at_least(context, length, 0, "split size"); !ok) return std::unexpected(ok.error());
        out.pieces.push_back({start, length});
        start = start + length;
    }
    const auto same = context.equal(context.type(0).shape[*axis], start, "sum of the split sizes");
    if (!same) return std::unexpected(same.error());
    return out;
}

/// torch.tensor_split: exactly so many pieces, the first ones one longer.
Result<Pieces> section_pieces(const InferContext& context) {
    const auto axis = piece_axis(context);
    const auto count = context.integer(1);
    if (!axis) return std::unexpected(axis.error());
    if (!count) return std::unexpected(count.error());
    if (*count <= 0 || *count > max_pieces)
        return mismatch(ErrorCode::bad_graph, context.place(), "sections", cat("in [1, ", max_pieces, "]"), *count);
    const Sym& size = context.type(0).shape[*axis];
    const Sym length = floor_div(size, *count), longer = mod(size, *count);
    Pieces out{*axis, {}};
    Sym start = 0;
    for (std::int64_t i = 0; i < *count; ++i) {
        // One more for the first `longer` pieces: min(max(longer - i, 0), 1).
        const Graph& graph = context.graph();
        const Sym own = length + smaller(graph, larger(graph, longer - Sym(i), 0), 1);
        out.pieces.push_back({start, own});
        start = start + own;
    }
    return out;
}

/// torch.tensor_split at indices: the slices between them.
Result<Pieces> index_pieces(const InferContext& context) {
    const auto axis = piece_axis(context);
    if (!axis) return std::unexpected(axis.error());
    const Graph& graph = context.graph();
    const Sym& size = context.type(0).shape[*axis];
    std::vector<Sym> ends = context.sizes(1);
    for (Sym& end : ends) {
        if (end.is_constant() && end.value() < 0)
            end = larger(graph, size + end, 0);
        else if (const auto ok = at_least(context, end, 0, "index"); !ok)
            return std::unexpected(ok.error());
        end = smaller(graph, end, size);
    }
    ends.push_back(size);
    Pieces out{*axis, {}};
    Sym start = 0;
    for (const Sym& end : ends) {
        out.pieces.push_back({start, larger(graph, end - start, 0)});
        start = end;
    }
    return out;
}

/// unbind: every index of the dimension, which then goes.
Result<Pieces> unbind_pieces(const InferContext& context) {
    const Shape& shape = context.type(0).shape;
    if (shape.empty()) return context.error("a tensor without dimensions");
    const auto axis = axis_at(context, 1, shape.size());
    if (!axis) return std::unexpected(axis.error());
    if (!shape[*axis].is_constant())
        return context.unsupported("dimension ", *axis, " has a size that is not constant: ", shape[*axis].to_string());
    if (shape[*axis].value() > max_pieces) return context.unsupported(shape[*axis].value(), " pieces are too many");
    return Pieces{*axis, even(shape[*axis], 1, shape[*axis].value())};
}

template <auto pieces_of, bool keeps_dim>
struct Split {
    static Types infer(const InferContext& context) {
        const auto pieces = pieces_of(context);
        if (!pieces) return std::unexpected(pieces.error());
        std::vector<TensorType> out;
        for (const Piece& piece : pieces->pieces) {
            TensorType type = context.type(0);
            if (keeps_dim)
                type.shape[pieces->axis] = piece.length;
            else
                type.shape.erase(type.shape.begin() + static_cast<std::ptrdiff_t>(pieces->axis));
            out.push_back(std::move(type));
        }
        return out;
    }
    static Values eval(const EvalContext& context) {
        std::vector<Relation> relations;
        const auto pieces = pieces_of(InferContext(context.node(), relations));
        if (!pieces) return std::unexpected(pieces.error());
        const HostTensor& in = context.tensor(0);
        std::vector<HostTensor> outputs;
        for (const Piece& piece : pieces->pieces) {
            const auto bounds = context.dims({piece.start, piece.length});
            if (!bounds) return std::unexpected(bounds.error());
            const std::int64_t start = (*bounds)[0], length = (*bounds)[1], size = in.shape[pieces->axis];
            if (length < 0 || (length > 0 && (start < 0 || length > size - start)))
                return mismatch(ErrorCode::guard_failed, context.node().place(), "piece", cat("within ", size),
                                cat(start, " and ", length, " more"));
            Dims shape, kept = in.shape;
            kept[pieces->axis] = length;
            for (std::size_t d = 0; d < in.shape.size(); ++d)
                if (keeps_dim || d != pieces->axis) shape.push_back(kept[d]);
            auto out = context.make(in.dtype, shape);
            if (!out) return std::unexpected(out.error());
            for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
                Dims at = unravel(i, kept);
                at[pieces->axis] += start;
                copy_element(in, ravel(at, in.shape), *out, i);
            }
            outputs.push_back(std::move(*out));
        }
        return outputs;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        std::vector<Relation> relations;
        const auto pieces = pieces_of(InferContext(node, relations));
        if (!pieces) return std::unexpected(pieces.error());
        Steps steps(builder);
        std::vector<ValueId> out;
        const ValueId self = node.tensor(0);
        const Sym axis = static_cast<std::int64_t>(pieces->axis);
        for (const Piece& piece : pieces->pieces)
            out.push_back(keeps_dim ? steps.call("narrow", {self, axis, piece.start, piece.length})
                                    : steps.call("select.int", {self, axis, piece.start}));
        return steps.done(std::move(out));
    }
};

template <auto pieces_of, bool keeps_dim = true>
constexpr OpDef split_of(std::string_view schema) {
    using T = Split<pieces_of, keeps_dim>;
    return {.schema = schema, .infer = T::infer, .eval = T::eval, .decompose = T::decompose};
}

constexpr OpDef defs[] = {
    split_of<split_pieces>("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"),
    split_of<split_pieces>("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]"),
    split_of<sized_pieces>("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]"),
    split_of<sized_pieces>("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"),
    split_of<sized_pieces>("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]"),
    split_of<chunk_pieces>("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]"),
    split_of<chunk_pieces>("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"),
    split_of<section_pieces>("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]"),
    split_of<index_pieces>("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]"),
    split_of<unbind_pieces, false>("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"),
};

}  // namespace

std::span<const OpDef> view_split() { return defs; }

}  // namespace lyo::ops
