// scaled_dot_product_attention: softmax(query @ key.T * scale + mask) @ value, the softmax in f32 for half types. Rows
// that a mask hides entirely give zeros.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

// Arguments: query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa.
constexpr std::size_t query_at = 0, key_at = 1, value_at = 2, mask_at = 3, dropout_at = 4, causal_at = 5, scale_at = 6,
                      grouped_at = 7;

/// With enable_gqa, how many heads of the query share one of the key and value; else 1.
Result<std::int64_t> sharing(const NodeView& node) {
    if (!node.boolean(grouped_at)) return 1;
    const Shape &q = node.type(query_at).shape, &k = node.type(key_at).shape, &v = node.type(value_at).shape;
    if (q.size() < 3 || k.size() != q.size() || v.size() != q.size())
        return node.error("grouped queries need operands of one rank, at least 3");
    const Sym &heads = q[q.size() - 3], &shared = k[k.size() - 3];
    if (!heads.is_constant() || !shared.is_constant() || v[v.size() - 3] != shared)
        return node.unsupported("grouped queries need constant numbers of heads, the same for key and value");
    if (shared.value() == 0 || heads.value() % shared.value() != 0)
        return mismatch(ErrorCode::bad_graph, node.place(), "heads of the query", cat("a multiple of ", shared.value()),
                        heads.value());
    return heads.value() / shared.value();
}

double scale_of(const NodeView& node, double features) noexcept {
    return node.is_none(scale_at) ? 1 / std::sqrt(features) : node.real(scale_at);
}

struct Attention {
    static Types infer(const InferContext& context) {
        const TensorType &q = context.type(query_at), &k = context.type(key_at), &v = context.type(value_at);
        for (const TensorType* type : {&q, &k, &v}) {
            if (type->rank() < 2)
                return mismatch(ErrorCode::bad_graph, context.place(), "rank", "at least 2", type->rank());
            if (type->dtype != q.dtype || !is_float(type->dtype))
                return context.error("query, key and value must have one floating dtype");
        }
        if (context.real(dropout_at) != 0) return context.unsupported("dropout");
        if (context.boolean(causal_at) && !context.is_none(mask_at))
            return context.error("attn_mask and is_causal exclude each other");
        const auto shared = sharing(context);
        if (!shared) return std::unexpected(shared.error());
        if (const auto same = context.equal(q.shape.back(), k.shape.back(), "features of query and key"); !same)
            return std::unexpected(same.error());
        const Sym length = q.shape[q.rank() - 2], sources = k.shape[k.rank() - 2];
        if (const auto same = context.equal(sources, v.shape[v.rank() - 2], "lengths of key and value"); !same)
            return std::unexpected(same.error());
        if (context.is_none(scale_at) && !q.shape.back().is_constant())
            return context.unsupported("a default scale for features that are not constant");
        const auto batch_of = [&](const TensorType& type) {
            Shape batch(type.shape.begin(), type.shape.end() - 2);
            if (&type != &q && *shared > 1) batch.back() = batch.back() * Sym(*shared);
            return batch;
        };
        auto batch = context.broadcast(batch_of(q), batch_of(k));
        if (batch) batch = context.broadcast(*batch, batch_of(v));
        if (!batch) return std::unexpected(batch.error());
        if (!context.is_none(mask_at)) {
            const TensorType& mask = context.type(mask_at);
            if (mask.dtype != DType::boolean && !is_float(mask.dtype))
                return mismatch(ErrorCode::bad_graph, context.place(), "dtype of attn_mask", "boolean or floating",
                                to_string(mask.dtype));
            Shape scores = *batch;
            scores.push_back(length);
            scores.push_back(sources);
            const auto wide = context.broadcast(scores, mask.shape);
            if (!wide) return std::unexpected(wide.error());
            if (*wide != scores) {
                for (std::size_t d = 0; d < wide->size(); ++d)
                    if (wide->size() != scores.size() || scores[d] == Sym(1))
                        return context.error("attn_mask of shape ", to_string(mask.shape), " does not fit scores of ",
                                             to_string(scores));
            }
        }
        Shape shape = *batch;
        shape.push_back(length);
        shape.push_back(v.shape.back());
        return one(q.dtype, std::move(shape));
    }

    static Values eval(const EvalContext& context) {
        const NodeView& node = context.node();
        const HostTensor &q = context.tensor(query_at), &k = context.tensor(key_at), &v = context.tensor(value_at);
        const auto shared = sharing(node);
        auto out = make_result(context);
        if (!shared) return std::unexpected(shared.error());
        if (!out) return std::unexpected(out.error());
        const auto dim = [](const HostTensor& t, std::size_t back) { return t.shape[t.shape.size() - back]; };
        const std::int64_t length = dim(q, 2), sources = dim(k, 2), features = dim(q, 1), width = dim(v, 1);
        const double scale = scale_of(node, static_cast<double>(features));
        Dims batch = Dims(std::span(out->shape.begin(), out->shape.size() - 2));
        /// Index of the element at (row, column) of the matrix that batch element g has in t; `heads` of them share
        /// one.
        const auto index = [&](const HostTensor& t, std::size_t g, std::int64_t heads, std::int64_t row,
                               std::int64_t column) {
            Dims at = unravel(g, batch), place;
            if (heads > 1) at[at.size() - 1] /= heads;
            at.push_back(row);
            at.push_back(column);
            const std::size_t lead = at.size() - t.shape.size();
            for (std::size_t d = 0; d < t.shape.size(); ++d) place.push_back(t.shape[d] == 1 ? 0 : at[lead + d]);
            return ravel(place, t.shape);
        };
        const auto count = static_cast<std::size_t>(element_count(std::span(batch.begin(), batch.size())).value_or(0));
        constexpr double infinity = std::numeric_limits<double>::infinity();
        std::vector<double> scores(static_cast<std::size_t>(sources));
        for (std::size_t g = 0; g < count; ++g) {
            for (std::int64_t i = 0; i < length; ++i) {
                double greatest = -infinity, total = 0;
                for (std::int64_t j = 0; j < sources; ++j) {
                    double score = 0;
                    for (std::int64_t f = 0; f < features; ++f)
                        score += q.reals[index(q, g, 1, i, f)] * k.reals[index(k, g, *shared, j, f)];
                    score *= scale;
                    if (node.boolean(causal_at) && j > i) score = -infinity;
                    if (!node.is_none(mask_at)) {
                        const HostTensor& mask = context.tensor(mask_at);
                        const std::size_t m = index(mask, g, 1, i, j);
                        score = mask.is_real() ? score + mask.reals[m] : mask.ints[m] != 0 ? score : -infinity;
                    }
                    scores[static_cast<std::size_t>(j)] = score;
                    greatest = score > greatest || std::isnan(score) ? score : greatest;
                }
                for (double& score : scores) {
                    score = greatest == -infinity ? 0 : std::exp(score - greatest);
                    total += score;
                }
                for (std::int64_t c = 0; c < width; ++c) {
                    double sum = 0;
                    for (std::int64_t j = 0; j < sources; ++j)
                        sum += (total == 0 ? 0 : scores[static_cast<std::size_t>(j)] / total) *
                               v.reals[index(v, g, *shared, j, c)];
                    out->reals[index(*out, g, 1, i, c)] = sum;
                }
            }
        }
        return one(std::move(*out));
    }

    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto shared = sharing(node);
        if (!shared) return std::unexpected(shared.error());
        const TensorType q = node.type(query_at), k = node.type(key_at);
        const DType compute = compute_dtype(q.dtype);
        const bool has_mask = !node.is_none(mask_at), causal = node.boolean(causal_at);
        const std::size_t q_rank = q.rank(), k_rank = k.rank();
        const Sym length = q.shape[q_rank - 2], sources = k.shape[k_rank - 2];
        const double scale = scale_of(node, static_cast<double>(q.shape.back().value()));
        std::vector<Relation> relations;
        const auto types = infer(InferContext(node, relations));
        if (!types) return std::unexpected(types.error());
        const TensorType result = (*types)[0];
        std::optional<TensorType> mask_type;
        if (has_mask) mask_type = node.type(mask_at);

        Steps steps(builder);
        ValueId query = node.tensor(query_at), key = node.tensor(key_at), value = node.tensor(value_at);
        if (*shared > 1) {
            // [..., heads, l, f] as [..., heads / shared, shared, l, f]: key and value broadcast over the new
            // dimension.
            Shape split = q.shape;
            split[q_rank - 3] = floor_div(split[q_rank - 3], *shared);
            split.insert(split.end() - 2, Sym(*shared));
            query = steps.reshape(query, split);
            key = steps.unsqueeze(key, q_rank - 2);
            value = steps.unsqueeze(value, q_rank - 2);
        }
        const ValueId transposed = steps.call("transpose.int", {key, Sym(-2), Sym(-1)});
        ValueId scores = steps.mul(steps.cast(steps.matmul(query, transposed), compute), scale);
        if (causal) {
            const ValueId row = steps.unsqueeze(steps.iota(length), 1), column = steps.iota(sources);
            scores = hidden(steps, steps.call("le.Tensor", {column, row}), scores, compute);
        }
        if (has_mask) {
            ValueId mask = node.tensor(mask_at);
            if (*shared > 1 && mask_type->rank() >= 3) {
                Shape split = mask_type->shape;
                const Sym heads = split[split.size() - 3];
                split[split.size() - 3] = floor_div(heads, *shared);
                if (heads == Sym(1)) split[split.size() - 3] = 1;
                split.insert(split.end() - 2, heads == Sym(1) ? Sym(1) : Sym(*shared));
                mask = steps.reshape(mask, split);
            }
            scores = mask_type->dtype == DType::boolean ? hidden(steps, mask, scores, compute)
                                                        : steps.add(scores, steps.cast(mask, compute));
        }
        const std::size_t last = (*shared > 1 ? q_rank + 1 : result.rank()) - 1;
        const ValueId weights = steps.cast(steps.safe_softmax(scores, {last}), q.dtype);
        return steps.done({steps.reshape(steps.matmul(weights, value), result.shape)});
    }

  private:
    static ValueId hidden(Steps& steps, ValueId visible, ValueId scores, DType dtype) {
        return steps.where(visible, scores, steps.full({}, -std::numeric_limits<double>::infinity(), dtype));
    }
};

constexpr OpDef defs[] = {
    {.schema = "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
               "dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     .infer = Attention::infer,
     .eval = Attention::eval,
     .decompose = Attention::decompose},
};

}  // namespace

std::span<const OpDef> attention() { return defs; }

}  // namespace lyo::ops
