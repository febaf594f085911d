// Statistics over dimensions: variance and deviation, vector norms, logsumexp. Half types are computed in f32.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

std::unexpected<Error> needs_float(const NodeView& node, DType got) {
    return mismatch(ErrorCode::bad_graph, node.place(), "dtype", "a floating one", to_string(got));
}

// var, std: sum((x - mean)^2) / max(n - correction, 0).

/// `correction` (1 when None) or `unbiased`.
double correction_of(const NodeView& node) noexcept {
    if (const auto i = parameter(node, "correction")) return node.is_none(*i) ? 1 : node.real(*i);
    const auto i = parameter(node, "unbiased");
    return i && !node.boolean(*i) ? 0 : 1;
}

template <bool root, bool with_mean>
struct Variance {
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        const TensorType& self = context.type(0);
        if (!is_float(self.dtype)) return needs_float(context, self.dtype);
        return std::vector<TensorType>(with_mean ? 2 : 1,
                                       TensorType{self.dtype, reduced(self.shape, request->axes, request->keepdim)});
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        auto spread = make_result(context), mean = make_result(context);
        if (!spread) return std::unexpected(spread.error());
        if (!mean) return std::unexpected(mean.error());
        const HostTensor& in = context.tensor(0);
        const double correction = correction_of(context.node());
        for_each_group(in.shape, request->axes, [&](std::size_t at, std::span<const std::size_t> group) {
            const auto n = static_cast<double>(group.size());
            double total = 0, squares = 0;
            for (const std::size_t i : group) total += in.reals[i];
            for (const std::size_t i : group) squares += (in.reals[i] - total / n) * (in.reals[i] - total / n);
            mean->reals[at] = total / n;
            const double variance = squares / std::max(n - correction, 0.0);
            spread->reals[at] = root ? std::sqrt(variance) : variance;
        });
        std::vector<HostTensor> out;
        out.push_back(std::move(*spread));
        if (with_mean) out.push_back(std::move(*mean));
        return out;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        const TensorType self = node.type(0);
        const Sym count = count_along(self.shape, request->axes);
        const double correction = correction_of(node);
        Argument divisor;
        if (correction == std::trunc(correction))
            divisor = larger(node.graph(), count - Sym(double_to_int(correction)), 0);
        else if (count.is_constant())
            divisor = std::max(static_cast<double>(count.value()) - correction, 0.0);
        else
            return node.unsupported("correction ", correction,
                                    " over a size that is not constant: ", count.to_string());
        Steps steps(builder);
        const ValueId x = steps.cast(node.tensor(0), compute_dtype(self.dtype));
        const ValueId mean = steps.mean(x, request->axes, true);
        const ValueId centered = steps.sub(x, mean);
        const ValueId squares = steps.reduce("lyo_sum", steps.mul(centered, centered), request->axes, request->keepdim);
        ValueId spread = steps.div(squares, std::move(divisor));
        if (root) spread = steps.call("sqrt", {spread});
        std::vector<ValueId> out{steps.cast(spread, self.dtype)};
        if (with_mean) {
            const Shape shape = reduced(self.shape, request->axes, request->keepdim);
            out.push_back(steps.cast(steps.reshape(mean, shape), self.dtype));
        }
        return steps.done(std::move(out));
    }
};

// Vector norms: the order is the parameter `ord` or `p`; 2 when it is None, 'fro' or not there.

double order_of(const NodeView& node) noexcept {
    for (const std::string_view name : {"ord", "p"}) {
        const auto i = parameter(node, name);
        if (i && !node.is_none(*i) && !std::holds_alternative<std::string>(node[*i])) return node.real(*i);
    }
    return 2;
}

struct VectorNorm {
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        const TensorType& self = context.type(0);
        const DType dtype = request->dtype.value_or(self.dtype);
        if (!is_float(self.dtype)) return needs_float(context, self.dtype);
        if (!is_float(dtype)) return needs_float(context, dtype);
        const double order = order_of(context);
        if (order < 0 || std::isinf(order)) {
            for (const std::size_t axis : request->axes) {
                const auto ok = at_least(context, self.shape[axis], 1, cat("size of the reduced dimension ", axis));
                if (!ok) return std::unexpected(ok.error());
            }
        }
        return one(dtype, reduced(self.shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        const double order = order_of(context.node());
        for_each_group(in.shape, request->axes, [&](std::size_t at, std::span<const std::size_t> group) {
            double total = std::isinf(order) && order < 0 ? std::numeric_limits<double>::infinity() : 0;
            for (const std::size_t i : group) {
                const double size = std::abs(in.reals[i]);
                if (std::isnan(total)) break;
                if (std::isinf(order))
                    total = std::isnan(size) ? size : order > 0 ? std::max(total, size) : std::min(total, size);
                else
                    total += order == 0 ? (size != 0) : std::pow(size, order);
            }
            out->reals[at] = order == 0 || std::isinf(order) ? total : std::pow(total, 1 / order);
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        const DType dtype = request->dtype.value_or(node.type(0).dtype), compute = compute_dtype(dtype);
        const double order = order_of(node);
        Steps steps(builder);
        const auto over = [&](std::string_view op, ValueId x) {
            return steps.reduce(op, x, request->axes, request->keepdim);
        };
        ValueId x = steps.cast(node.tensor(0), compute);
        if (order == 2) {
            x = steps.call("sqrt", {over("lyo_sum", steps.mul(x, x))});
        } else if (order == 0) {
            x = over("lyo_sum", steps.cast(steps.call("ne.Scalar", {x, Sym(0)}), compute));
        } else {
            x = steps.call("abs", {x});
            if (order == 1)
                x = over("lyo_sum", x);
            else if (std::isinf(order))
                x = over(order > 0 ? "lyo_max" : "lyo_min", x);
            else
                x = steps.call("pow.Tensor_Scalar",
                               {over("lyo_sum", steps.call("pow.Tensor_Scalar", {x, order})), 1 / order});
        }
        return steps.done({steps.cast(x, dtype)});
    }
};

/// linalg_norm and linalg_matrix_norm, where they are vector norms: over one dimension, of order None, or 'fro'.
template <auto is_vector>
struct MaybeMatrixNorm {
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        if (!is_vector(context, *request)) return context.unsupported("a matrix norm other than 'fro'");
        return VectorNorm::infer(context);
    }
};
bool is_vector_norm(const NodeView& node, const Request& request) {
    return node.is_none(1) || request.axes.size() <= 1;
}
bool is_frobenius_norm(const NodeView& node, const Request&) { return node.text(1) == "fro"; }

// logsumexp: with the greatest element taken out, unless that is infinite.

struct LogSumExp {
    static DType dtype_of(const NodeView& node) noexcept {
        return is_float(node.type(0).dtype) ? node.type(0).dtype : DType::f32;
    }
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        return one(dtype_of(context), reduced(context.type(0).shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        for_each_group(in.shape, request->axes, [&](std::size_t at, std::span<const std::size_t> group) {
            double greatest = -std::numeric_limits<double>::infinity(), total = 0;
            for (const std::size_t i : group) greatest = std::max(greatest, in.real(i));
            if (std::isinf(greatest)) greatest = 0;
            for (const std::size_t i : group) total += std::exp(in.real(i) - greatest);
            out->reals[at] = std::log(total) + greatest;
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        const DType dtype = dtype_of(node), compute = compute_dtype(dtype);
        const Shape shape = reduced(node.type(0).shape, request->axes, request->keepdim);
        Steps steps(builder);
        const ValueId x = steps.cast(node.tensor(0), compute);
        const ValueId greatest = steps.reduce("lyo_max", x, request->axes, true);
        const ValueId shift = steps.where(steps.call("isinf", {greatest}), steps.full({}, 0.0, compute), greatest);
        const ValueId total = steps.reduce("lyo_sum", steps.call("exp", {steps.sub(x, shift)}), request->axes, true);
        const ValueId out = steps.add(steps.call("log", {total}), shift);
        return steps.done({steps.cast(steps.reshape(out, shape), dtype)});
    }
};

template <class T>
constexpr OpDef made(std::string_view schema, InferFn infer = T::infer) {
    return {.schema = schema, .infer = infer, .eval = T::eval, .decompose = T::decompose};
}

using Var = Variance<false, false>;
using Std = Variance<true, false>;
using VarMean = Variance<false, true>;
using StdMean = Variance<true, true>;

constexpr OpDef defs[] = {
    made<Var>("var(Tensor self, bool unbiased=True) -> Tensor"),
    made<Var>("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor"),
    made<Var>(
        "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"),
    made<Std>("std(Tensor self, bool unbiased=True) -> Tensor"),
    made<Std>("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor"),
    made<Std>(
        "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"),
    made<VarMean>("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)"),
    made<VarMean>("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)"),
    made<VarMean>(
        "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
        "(Tensor, Tensor)"),
    made<StdMean>("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)"),
    made<StdMean>("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)"),
    made<StdMean>(
        "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
        "(Tensor, Tensor)"),

    made<VectorNorm>(
        "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor"),
    made<VectorNorm>("norm.Scalar(Tensor self, Scalar p=2) -> Tensor"),
    made<VectorNorm>("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor"),
    made<VectorNorm>("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor"),
    made<VectorNorm>(
        "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> "
        "Tensor"),
    made<VectorNorm>("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"),
    made<VectorNorm>("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                     "dtype=None) -> Tensor",
                     MaybeMatrixNorm<is_vector_norm>::infer),
    made<VectorNorm>("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, "
                     "ScalarType? dtype=None) -> Tensor",
                     MaybeMatrixNorm<is_frobenius_norm>::infer),

    made<LogSumExp>("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"),
};

}  // namespace

std::span<const OpDef> reduction_stats() { return defs; }

}  // namespace lyo::ops
