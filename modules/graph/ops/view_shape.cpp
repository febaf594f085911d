// Views whose shape comes from elsewhere: from other tensors, or by folding dimensions into one another. In terms of
// the plain views.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

/// The result has the other tensor's shape.
Types infer_like_other(const InferContext& context) { return one(context.type(0).dtype, context.type(1).shape); }

Types infer_expand_as(const InferContext& context) {
    const Shape& to = context.type(1).shape;
    const auto shape = context.broadcast(context.type(0).shape, to);
    if (!shape) return std::unexpected(shape.error());
    if (shape->size() != to.size())
        return context.error("the operand has more dimensions than the shape ", to_string(to));
    for (std::size_t d = 0; d < to.size(); ++d)
        if (to[d] == Sym(1) && (*shape)[d] != Sym(1))
            return context.error(to_string(context.type(0).shape), " does not expand to ", to_string(to));
    return one(context.type(0).dtype, to);
}
Values eval_expand_as(const EvalContext& context) {
    const HostTensor& in = context.tensor(0);
    auto out = context.make(in.dtype, context.tensor(1).shape);
    if (!out) return std::unexpected(out.error());
    for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i)
        copy_element(in, broadcast_index(i, out->shape, in.shape), *out, i);
    return one(std::move(*out));
}
Ids decompose_expand_as(Builder& builder, const NodeView& node) {
    Steps steps(builder);
    return steps.done({steps.call("expand", {node.tensor(0), node.type(1).shape})});
}

Types infer_view_as(const InferContext& context) {
    const auto same =
        context.equal(element_count(context.type(0).shape), element_count(context.type(1).shape), "elements");
    if (!same) return std::unexpected(same.error());
    return infer_like_other(context);
}
Values eval_view_as(const EvalContext& context) {
    HostTensor out = context.tensor(0);
    if (out.numel() != context.tensor(1).numel()) return context.node().error("the element counts differ");
    out.shape = context.tensor(1).shape;
    return one(std::move(out));
}
Ids decompose_view_as(Builder& builder, const NodeView& node) {
    Steps steps(builder);
    return steps.done({steps.call("reshape", {node.tensor(0), node.type(1).shape})});
}

Result<std::vector<ValueId>> present(const NodeView& node) {
    std::vector<ValueId> out;
    for (const auto& id : node.tensors(0)) {
        if (!id) return node.error("a tensor of the list is missing");
        out.push_back(*id);
    }
    return out;
}

Types infer_broadcast_tensors(const InferContext& context) {
    const auto tensors = present(context);
    if (!tensors) return std::unexpected(tensors.error());
    Shape shape;
    for (const ValueId id : *tensors) {
        auto next = context.broadcast(shape, context.graph().type(id).shape);
        if (!next) return std::unexpected(next.error());
        shape = std::move(*next);
    }
    std::vector<TensorType> out;
    for (const ValueId id : *tensors) out.push_back({context.graph().type(id).dtype, shape});
    return out;
}
Values eval_broadcast_tensors(const EvalContext& context) {
    const auto tensors = present(context.node());
    if (!tensors) return std::unexpected(tensors.error());
    std::vector<HostTensor> outputs;
    for (std::size_t k = 0; k < tensors->size(); ++k) {
        auto out = make_result(context, k);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor((*tensors)[k]);
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i)
            copy_element(in, broadcast_index(i, out->shape, in.shape), *out, i);
        outputs.push_back(std::move(*out));
    }
    return outputs;
}
Ids decompose_broadcast_tensors(Builder& builder, const NodeView& node) {
    std::vector<Relation> relations;
    const auto tensors = present(node);
    const auto types = infer_broadcast_tensors(InferContext(node, relations));
    if (!tensors) return std::unexpected(tensors.error());
    if (!types) return std::unexpected(types.error());
    Steps steps(builder);
    std::vector<ValueId> out;
    for (std::size_t k = 0; k < tensors->size(); ++k) out.push_back(steps.expand((*tensors)[k], (*types)[k].shape));
    return steps.done(std::move(out));
}

// meshgrid: tensor k varies along dimension k; with indexing='xy' the first two dimensions change places.

Result<bool> swaps_first_two(const NodeView& node) {
    if (node.size() < 2 || node.text(1) == "ij") return false;
    if (node.text(1) != "xy") return node.unsupported("indexing must be ij or xy, got ", node.text(1));
    return node.tensors(0).size() >= 2;
}

Types infer_meshgrid(const InferContext& context) {
    const auto tensors = present(context);
    const auto swaps = swaps_first_two(context);
    if (!tensors) return std::unexpected(tensors.error());
    if (!swaps) return std::unexpected(swaps.error());
    if (tensors->empty()) return context.error("no tensors");
    Shape shape;
    for (const ValueId id : *tensors) {
        const TensorType& type = context.graph().type(id);
        if (type.rank() > 1) return mismatch(ErrorCode::bad_graph, context.place(), "rank", "at most 1", type.rank());
        if (type.dtype != context.graph().type((*tensors)[0]).dtype) return context.error("the tensors' dtypes differ");
        shape.push_back(element_count(type.shape));
    }
    if (*swaps) std::swap(shape[0], shape[1]);
    return std::vector<TensorType>(tensors->size(), TensorType{context.graph().type((*tensors)[0]).dtype, shape});
}
std::size_t mesh_axis(std::size_t k, bool swaps) noexcept { return swaps && k < 2 ? 1 - k : k; }
Values eval_meshgrid(const EvalContext& context) {
    const auto tensors = present(context.node());
    const auto swaps = swaps_first_two(context.node());
    if (!tensors) return std::unexpected(tensors.error());
    if (!swaps) return std::unexpected(swaps.error());
    std::vector<HostTensor> outputs;
    for (std::size_t k = 0; k < tensors->size(); ++k) {
        auto out = make_result(context, k);
        if (!out) return std::unexpected(out.error());
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            const Dims at = unravel(i, out->shape);
            copy_element(context.tensor((*tensors)[k]), static_cast<std::size_t>(at[mesh_axis(k, *swaps)]), *out, i);
        }
        outputs.push_back(std::move(*out));
    }
    return outputs;
}
Ids decompose_meshgrid(Builder& builder, const NodeView& node) {
    std::vector<Relation> relations;
    const auto tensors = present(node);
    const auto types = infer_meshgrid(InferContext(node, relations));
    const auto swaps = swaps_first_two(node);
    if (!tensors) return std::unexpected(tensors.error());
    if (!types) return std::unexpected(types.error());
    if (!swaps) return std::unexpected(swaps.error());
    Steps steps(builder);
    std::vector<ValueId> out;
    for (std::size_t k = 0; k < tensors->size(); ++k) {
        const Shape& full = (*types)[k].shape;
        Shape line(full.size(), Sym(1));
        const std::size_t axis = mesh_axis(k, *swaps);
        line[axis] = full[axis];
        out.push_back(steps.expand(steps.reshape((*tensors)[k], line), full));
    }
    return steps.done(std::move(out));
}

// pixel_shuffle [..., C*r*r, H, W] -> [..., C, H*r, W*r], and its inverse.

Result<std::int64_t> shuffle_factor(const NodeView& node) {
    const auto factor = node.integer(1);
    if (!factor) return factor;
    if (*factor <= 0 || *factor > (1 << 15))
        return mismatch(ErrorCode::bad_graph, node.place(), "factor", "at least 1", *factor);
    if (node.type(0).rank() < 3)
        return mismatch(ErrorCode::bad_graph, node.place(), "rank", "at least 3", node.type(0).rank());
    return factor;
}

template <bool up>
Types infer_shuffle(const InferContext& context) {
    const auto factor = shuffle_factor(context);
    if (!factor) return std::unexpected(factor.error());
    const Sym r = *factor;
    Shape shape = context.type(0).shape;
    const std::size_t c = shape.size() - 3;
    const auto whole = [&](std::size_t d, const Sym& parts) {
        return context.equal(floor_div(shape[d], parts) * parts, shape[d], cat("dimension ", d));
    };
    if (up) {
        if (const auto ok = whole(c, r * r); !ok) return std::unexpected(ok.error());
        shape[c] = floor_div(shape[c], r * r);
        shape[c + 1] = shape[c + 1] * r;
        shape[c + 2] = shape[c + 2] * r;
    } else {
        for (const std::size_t d : {c + 1, c + 2}) {
            if (const auto ok = whole(d, r); !ok) return std::unexpected(ok.error());
            shape[d] = floor_div(shape[d], r);
        }
        shape[c] = shape[c] * r * r;
    }
    return one(context.type(0).dtype, std::move(shape));
}
template <bool up>
Values eval_shuffle(const EvalContext& context) {
    auto out = make_result(context);
    const auto factor = shuffle_factor(context.node());
    if (!out) return std::unexpected(out.error());
    if (!factor) return std::unexpected(factor.error());
    const HostTensor& in = context.tensor(0);
    const std::int64_t r = *factor;
    const std::size_t c = in.shape.size() - 3;
    gather(in, *out, [&](Dims at) {
        if (up) {
            at[c] = (at[c] * r + at[c + 1] % r) * r + at[c + 2] % r;
            at[c + 1] /= r;
            at[c + 2] /= r;
        } else {
            at[c + 1] = at[c + 1] * r + at[c] / r % r;
            at[c + 2] = at[c + 2] * r + at[c] % r;
            at[c] /= r * r;
        }
        return at;
    });
    return one(std::move(*out));
}
template <bool up>
Ids decompose_shuffle(Builder& builder, const NodeView& node) {
    const auto factor = shuffle_factor(node);
    if (!factor) return std::unexpected(factor.error());
    const Sym r = *factor;
    const Shape shape = node.type(0).shape;
    const std::size_t c = shape.size() - 3;
    // Leading dimensions as one: five more must fit.
    Sym lead = 1;
    for (std::size_t d = 0; d < c; ++d) lead = lead * shape[d];
    Steps steps(builder);
    std::vector<Relation> relations;
    const auto types = infer_shuffle<up>(InferContext(node, relations));
    if (!types) return std::unexpected(types.error());
    ValueId x = node.tensor(0);
    if (up) {
        x = steps.reshape(x, {lead, floor_div(shape[c], r * r), r, r, shape[c + 1], shape[c + 2]});
        x = steps.permute(x, {0, 1, 4, 2, 5, 3});
    } else {
        x = steps.reshape(x, {lead, shape[c], floor_div(shape[c + 1], r), r, floor_div(shape[c + 2], r), r});
        x = steps.permute(x, {0, 1, 3, 5, 2, 4});
    }
    return steps.done({steps.reshape(x, (*types)[0].shape)});
}

constexpr OpDef defs[] = {
    {.schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
     .infer = infer_expand_as,
     .eval = eval_expand_as,
     .decompose = decompose_expand_as},
    {.schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
     .infer = infer_view_as,
     .eval = eval_view_as,
     .decompose = decompose_view_as},
    {.schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
     .infer = infer_view_as,
     .eval = eval_view_as,
     .decompose = decompose_view_as},
    {.schema = "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
     .infer = infer_broadcast_tensors,
     .eval = eval_broadcast_tensors,
     .decompose = decompose_broadcast_tensors},
    {.schema = "meshgrid(Tensor[] tensors) -> Tensor[]",
     .infer = infer_meshgrid,
     .eval = eval_meshgrid,
     .decompose = decompose_meshgrid},
    {.schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
     .infer = infer_meshgrid,
     .eval = eval_meshgrid,
     .decompose = decompose_meshgrid},
    {.schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
     .infer = infer_shuffle<true>,
     .eval = eval_shuffle<true>,
     .decompose = decompose_shuffle<true>},
    {.schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
     .infer = infer_shuffle<false>,
     .eval = eval_shuffle<false>,
     .decompose = decompose_shuffle<false>},
};

}  // namespace

std::span<const OpDef> view_shape() { return defs; }

}  // namespace lyo::ops
