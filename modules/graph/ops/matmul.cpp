// Matrix products. The compiler knows lyo_matmul (Core::matmul); everything else brings its operands into that form and
// adds what goes around it as pointwise operators, in the product's own index space, so that they fuse.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

Result<> same_dtype(const NodeView& node, std::initializer_list<std::size_t> operands) {
    const DType first = node.type(*operands.begin()).dtype;
    if (first == DType::boolean) return node.error("matrix products of booleans");
    for (const std::size_t i : operands)
        if (!node.is_none(i) && node.type(i).dtype != first)
            return mismatch(ErrorCode::bad_graph, node.place(), cat("dtype of ", node.op().params[i].name),
                            to_string(first), to_string(node.type(i).dtype));
    return {};
}

Result<> has_rank(const NodeView& node, std::size_t i, std::size_t rank) {
    if (node.type(i).rank() == rank) return {};
    return mismatch(ErrorCode::bad_graph, node.place(), cat("rank of ", node.op().params[i].name), rank,
                    node.type(i).rank());
}

/// The shape of matmul(a, b), vectors included.
Result<Shape> product_shape(const InferContext& context, const Shape& a, const Shape& b) {
    if (a.empty() || b.empty()) return context.error("operands need at least one dimension");
    const auto inner = context.equal(a.back(), b.size() == 1 ? b[0] : b[b.size() - 2], "inner dimensions");
    if (!inner) return std::unexpected(inner.error());
    const auto batch = [](const Shape& s) { return s.size() < 2 ? Shape() : Shape(s.begin(), s.end() - 2); };
    auto out = context.broadcast(batch(a), batch(b));
    if (!out) return out;
    if (a.size() > 1) out->push_back(a[a.size() - 2]);
    if (b.size() > 1) out->push_back(b.back());
    return out;
}

/// out[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]; the shape of `out` is that of the product.
void multiply(const HostTensor& a, const HostTensor& b, HostTensor& out) {
    const auto matrix = [](const HostTensor& t, bool left) {
        Dims shape = t.shape;
        if (shape.size() == 1) shape = left ? Dims{1, shape[0]} : Dims{shape[0], 1};
        return shape;
    };
    const Dims x = matrix(a, true), y = matrix(b, false);
    const std::int64_t m = x[x.size() - 2], k = x[x.size() - 1], n = y[y.size() - 1];
    const auto batch = [](const Dims& shape) { return Dims(std::span(shape.begin(), shape.size() - 2)); };
    const Dims x_batch = batch(x), y_batch = batch(y);
    Dims batches;
    const std::size_t out_matrix = (a.shape.size() > 1) + (b.shape.size() > 1);
    for (std::size_t d = 0; d + out_matrix < out.shape.size(); ++d) batches.push_back(out.shape[d]);
    const auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
    const std::size_t count = size(element_count(std::span(batches.begin(), batches.size())).value_or(0));
    for (std::size_t g = 0; g < count; ++g) {
        const std::size_t left = broadcast_index(g, batches, x_batch) * size(m * k);
        const std::size_t right = broadcast_index(g, batches, y_batch) * size(k * n);
        for (std::size_t i = 0; i < size(m); ++i) {
            for (std::size_t j = 0; j < size(n); ++j) {
                const std::size_t at = (g * size(m) + i) * size(n) + j;
                double real = 0;
                std::uint64_t integer = 0;  // unsigned: it wraps
                for (std::size_t p = 0; p < size(k); ++p) {
                    const std::size_t l = left + i * size(k) + p, r = right + p * size(n) + j;
                    if (out.is_real())
                        real += a.reals[l] * b.reals[r];
                    else
                        integer += static_cast<std::uint64_t>(a.ints[l]) * static_cast<std::uint64_t>(b.ints[r]);
                }
                if (out.is_real())
                    out.set(at, real);
                else
                    out.set(at, static_cast<std::int64_t>(integer));
            }
        }
    }
}

/// The product of two operands of any rank from 1, by lyo_matmul.
ValueId product(Steps& steps, ValueId a, ValueId b, std::size_t a_rank, std::size_t b_rank) {
    if (a_rank == 1) a = steps.unsqueeze(a, 0);
    if (b_rank == 1) b = steps.unsqueeze(b, 1);
    ValueId out = steps.matmul(a, b);
    const std::size_t rank = std::max({a_rank, b_rank, std::size_t{2}});
    if (b_rank == 1) out = steps.squeeze(out, rank - 1);
    if (a_rank == 1) out = steps.squeeze(out, rank - 2);
    return out;
}

// matmul and its special cases: the ranks that each allows are checked, the rest is one.

template <std::size_t left_rank, std::size_t right_rank>
struct Product {
    static Types infer(const InferContext& context) {
        if (const auto ok = same_dtype(context, {0, 1}); !ok) return std::unexpected(ok.error());
        if (left_rank > 0)
            if (const auto ok = has_rank(context, 0, left_rank); !ok) return std::unexpected(ok.error());
        if (right_rank > 0)
            if (const auto ok = has_rank(context, 1, right_rank); !ok) return std::unexpected(ok.error());
        const Shape &a = context.type(0).shape, &b = context.type(1).shape;
        if (left_rank == 3) {  // bmm does not broadcast
            const auto batch = context.equal(a[0], b[0], "batches");
            if (!batch) return std::unexpected(batch.error());
        }
        auto shape = product_shape(context, a, b);
        if (!shape) return std::unexpected(shape.error());
        return one(context.type(0).dtype, std::move(*shape));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        multiply(context.tensor(0), context.tensor(1), *out);
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps steps(builder);
        return steps.done({product(steps, node.tensor(0), node.tensor(1), node.type(0).rank(), node.type(1).rank())});
    }
};

struct CoreMatmul {
    static Types infer(const InferContext& context) {
        for (const std::size_t i : {0, 1})
            if (context.type(i).rank() < 2)
                return mismatch(ErrorCode::bad_graph, context.place(), "rank", "at least 2", context.type(i).rank());
        return Product<0, 0>::infer(context);
    }
};

// linear: input @ weight.T + bias. The weight broadcasts over the input's leading dimensions.

struct Linear {
    static Types infer(const InferContext& context) {
        if (const auto ok = same_dtype(context, {0, 1, 2}); !ok) return std::unexpected(ok.error());
        const Shape &x = context.type(0).shape, &w = context.type(1).shape;
        if (x.empty()) return context.error("the input needs at least one dimension");
        if (w.empty() || w.size() > 2)
            return mismatch(ErrorCode::bad_graph, context.place(), "rank of weight", "1 or 2", w.size());
        const auto inner = context.equal(x.back(), w.back(), "features");
        if (!inner) return std::unexpected(inner.error());
        Shape out(x.begin(), x.end() - 1);
        if (w.size() == 2) out.push_back(w[0]);
        if (!context.is_none(2)) {
            const auto wide = context.broadcast(out, context.type(2).shape);
            if (!wide) return std::unexpected(wide.error());
            if (wide->size() != out.size()) return context.error("bias has more dimensions than the product");
        }
        return one(context.type(0).dtype, std::move(out));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor &x = context.tensor(0), &w = context.tensor(1);
        const auto features = static_cast<std::size_t>(w.shape[w.shape.size() - 1]);
        const auto rows = static_cast<std::size_t>(w.shape.size() == 2 ? w.shape[0] : 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            const std::size_t x_row = i / rows * features, w_row = i % rows * features;
            const std::size_t b =
                context.node().is_none(2) ? 0 : broadcast_index(i, out->shape, context.tensor(2).shape);
            if (out->is_real()) {
                double total = 0;
                for (std::size_t k = 0; k < features; ++k) total += x.reals[x_row + k] * w.reals[w_row + k];
                out->set(i, context.node().is_none(2) ? total : total + context.tensor(2).reals[b]);
            } else {
                std::uint64_t total =
                    context.node().is_none(2) ? 0 : static_cast<std::uint64_t>(context.tensor(2).ints[b]);
                for (std::size_t k = 0; k < features; ++k)
                    total +=
                        static_cast<std::uint64_t>(x.ints[x_row + k]) * static_cast<std::uint64_t>(w.ints[w_row + k]);
                out->set(i, static_cast<std::int64_t>(total));
            }
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const std::size_t x_rank = node.type(0).rank(), w_rank = node.type(1).rank();
        Steps steps(builder);
        const ValueId w = w_rank == 2 ? steps.call("t", {node.tensor(1)}) : node.tensor(1);
        ValueId out = product(steps, node.tensor(0), w, x_rank, w_rank);
        if (!node.is_none(2)) out = steps.add(out, node.tensor(2));
        return steps.done({out});
    }
};

// addmm and its kind: beta * self + alpha * (a @ b). Arguments: self, a, b, beta, alpha. With beta == 0, self is not
// read: its NaN does not count.

bool is_number(const Argument& argument, double value) {
    if (const auto* s = std::get_if<Sym>(&argument))
        return s->is_constant() && static_cast<double>(s->value()) == value;
    if (const auto* d = std::get_if<double>(&argument)) return *d == value;
    const auto* b = std::get_if<bool>(&argument);
    return b != nullptr && static_cast<double>(*b) == value;
}

/// A factor of integers is one: PyTorch truncates it.
Argument factor_for(DType dtype, const Argument& factor) {
    const auto* real = std::get_if<double>(&factor);
    return real != nullptr && !is_float(dtype) ? Argument(Sym(double_to_int(*real))) : factor;
}

template <std::size_t left_rank, std::size_t right_rank, bool sums_batch>
struct AddProduct {
    static Result<Shape> shape_of(const InferContext& context) {
        if (const auto ok = same_dtype(context, {0, 1, 2}); !ok) return std::unexpected(ok.error());
        if (const auto ok = has_rank(context, 1, left_rank); !ok) return std::unexpected(ok.error());
        if (const auto ok = has_rank(context, 2, right_rank); !ok) return std::unexpected(ok.error());
        const Shape &a = context.type(1).shape, &b = context.type(2).shape;
        if (left_rank == 3) {
            const auto batch = context.equal(a[0], b[0], "batches");
            if (!batch) return std::unexpected(batch.error());
        }
        auto shape = product_shape(context, a, b);
        if (shape && sums_batch) shape->erase(shape->begin());
        return shape;
    }
    static Types infer(const InferContext& context) {
        auto shape = shape_of(context);
        if (!shape) return std::unexpected(shape.error());
        const auto wide = context.broadcast(*shape, context.type(0).shape);
        if (!wide) return std::unexpected(wide.error());
        for (std::size_t d = 0; d < wide->size(); ++d)
            if (wide->size() != shape->size() || ((*shape)[d] == Sym(1) && (*wide)[d] != Sym(1)))
                return context.error("self of shape ", to_string(context.type(0).shape), " does not expand to ",
                                     to_string(*shape));
        return one(context.type(0).dtype, std::move(*shape));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        const auto beta = context.real(3), alpha = context.real(4);
        if (!out) return std::unexpected(out.error());
        if (!beta) return std::unexpected(beta.error());
        if (!alpha) return std::unexpected(alpha.error());
        const HostTensor &self = context.tensor(0), &a = context.tensor(1), &b = context.tensor(2);
        HostTensor products = *out;
        if (sums_batch) {
            Dims shape{a.shape[0], a.shape[1], b.shape[2]};
            auto wide = context.make(out->dtype, shape);
            if (!wide) return std::unexpected(wide.error());
            multiply(a, b, *wide);
            for_each_group(shape, {0}, [&](std::size_t at, std::span<const std::size_t> group) {
                fold(ScalarOp::reduce_sum, *wide, group, products, at);
            });
        } else {
            multiply(a, b, products);
        }
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            const std::size_t s = broadcast_index(i, out->shape, self.shape);
            if (out->is_real()) {
                out->set(i, *alpha * products.reals[i] + (*beta == 0 ? 0 : *beta * self.reals[s]));
            } else {
                const auto factor = [](double v) { return static_cast<std::uint64_t>(double_to_int(v)); };
                out->set(i, static_cast<std::int64_t>(factor(*alpha) * static_cast<std::uint64_t>(products.ints[i]) +
                                                      factor(*beta) * static_cast<std::uint64_t>(self.ints[s])));
            }
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps steps(builder);
        const DType dtype = node.type(0).dtype;
        const Argument beta = factor_for(dtype, node[3]), alpha = factor_for(dtype, node[4]);
        const ValueId self = node.tensor(0);
        ValueId out = product(steps, node.tensor(1), node.tensor(2), left_rank, right_rank);
        if (sums_batch) out = steps.reduce("lyo_sum", out, {0}, false);
        if (!is_number(alpha, 1)) out = steps.mul(out, alpha);
        if (is_number(beta, 0)) return steps.done({out});
        return steps.done({steps.add(out, is_number(beta, 1) ? self : steps.mul(self, beta))});
    }
};

// Products of several matrices, from left to right.

Result<std::vector<ValueId>> matrices_of(const NodeView& node) {
    std::vector<ValueId> out;
    for (const auto& id : node.tensors(0)) {
        if (!id) return node.error("a matrix of the list is missing");
        out.push_back(*id);
    }
    if (out.empty()) return node.error("no matrices");
    return out;
}

struct Chain {
    static Types infer(const InferContext& context) {
        const auto matrices = matrices_of(context);
        if (!matrices) return std::unexpected(matrices.error());
        TensorType type = context.graph().type((*matrices)[0]);
        for (std::size_t i = 1; i < matrices->size(); ++i) {
            const TensorType& next = context.graph().type((*matrices)[i]);
            if (next.dtype != type.dtype) return context.error("the matrices' dtypes differ");
            auto shape = product_shape(context, type.shape, next.shape);
            if (!shape) return std::unexpected(shape.error());
            type.shape = std::move(*shape);
        }
        return one(std::move(type));
    }
    static Values eval(const EvalContext& context) {
        const auto matrices = matrices_of(context.node());
        if (!matrices) return std::unexpected(matrices.error());
        HostTensor out = context.tensor((*matrices)[0]);
        for (std::size_t i = 1; i < matrices->size(); ++i) {
            const HostTensor& next = context.tensor((*matrices)[i]);
            Dims shape;
            if (out.shape.size() > 1) shape.push_back(out.shape[0]);
            if (next.shape.size() > 1) shape.push_back(next.shape[1]);
            auto product = context.make(out.dtype, shape);
            if (!product) return std::unexpected(product.error());
            multiply(out, next, *product);
            out = std::move(*product);
        }
        return one(std::move(out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto matrices = matrices_of(node);
        if (!matrices) return std::unexpected(matrices.error());
        Steps steps(builder);
        ValueId out = (*matrices)[0];
        for (std::size_t i = 1; i < matrices->size(); ++i) out = steps.call("matmul", {out, (*matrices)[i]});
        return steps.done({out});
    }
};

constexpr OpDef defs[] = {
    {.schema = "lyo_matmul(Tensor self, Tensor other) -> Tensor",
     .infer = CoreMatmul::infer,
     .eval = Product<0, 0>::eval,
     .core = Core::matmul},
    made<Product<0, 0>>("matmul(Tensor self, Tensor other) -> Tensor"),
    made<Product<0, 0>>("linalg_matmul(Tensor self, Tensor other) -> Tensor"),
    made<Product<2, 2>>("mm(Tensor self, Tensor mat2) -> Tensor"),
    made<Product<3, 3>>("bmm(Tensor self, Tensor mat2) -> Tensor"),
    made<Product<2, 1>>("mv(Tensor self, Tensor vec) -> Tensor"),
    made<Product<1, 1>>("dot(Tensor self, Tensor tensor) -> Tensor"),
    made<Product<1, 1>>("vdot(Tensor self, Tensor other) -> Tensor"),
    made<Linear>("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"),
    made<AddProduct<2, 2, false>>(
        "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    made<AddProduct<3, 3, false>>(
        "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    made<AddProduct<3, 3, true>>(
        "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    made<AddProduct<2, 1, false>>(
        "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor"),
    made<Chain>("chain_matmul(Tensor[] matrices) -> Tensor"),
    made<Chain>("linalg_multi_dot(Tensor[] tensors) -> Tensor"),
};

}  // namespace

std::span<const OpDef> matmul() {
    static const std::vector<OpDef> all = joined({defs, einsum(), attention()});
    return all;
}

}  // namespace lyo::ops
