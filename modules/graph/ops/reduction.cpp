// Reductions. The lyo_* operators are what the compiler knows (Core::reduction); ATen's own, with their optional and
// negative dimensions and dtypes, are made of them.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

constexpr std::string_view core_name(ScalarOp op) noexcept {
    switch (op) {
        case ScalarOp::reduce_prod:
            return "lyo_prod";
        case ScalarOp::reduce_max:
            return "lyo_max";
        case ScalarOp::reduce_min:
            return "lyo_min";
        case ScalarOp::reduce_argmax:
            return "lyo_argmax";
        case ScalarOp::reduce_argmin:
            return "lyo_argmin";
        default:
            return "lyo_sum";
    }
}
constexpr ScalarOp arg_of(ScalarOp op) noexcept {
    return op == ScalarOp::reduce_max ? ScalarOp::reduce_argmax : ScalarOp::reduce_argmin;
}

/// The reduction by `op` of a tensor of the result's class, into a tensor of `dtype`.
Result<HostTensor> reduce(const EvalContext& context, const HostTensor& in, const Request& request, ScalarOp op,
                          DType dtype) {
    Dims shape;
    for (std::size_t d = 0; d < in.shape.size(); ++d) {
        if (!contains(request.axes, d))
            shape.push_back(in.shape[d]);
        else if (request.keepdim)
            shape.push_back(1);
    }
    auto out = context.make(dtype, shape);
    if (!out) return out;
    for_each_group(in.shape, request.axes,
                   [&](std::size_t at, std::span<const std::size_t> group) { fold(op, in, group, *out, at); });
    return out;
}

/// max, min and their indices have no value for nothing.
Result<> not_empty(const InferContext& context, const Axes& axes) {
    for (const std::size_t axis : axes) {
        const auto ok = at_least(context, context.type(0).shape[axis], 1, cat("size of the reduced dimension ", axis));
        if (!ok) return ok;
    }
    return {};
}
Result<> not_empty(const EvalContext& context, const Axes& axes) {
    for (const std::size_t axis : axes)
        if (context.tensor(0).shape[axis] == 0)
            return context.node().error("the reduced dimension ", axis, " is empty");
    return {};
}

template <ScalarOp op>
struct Core_ {
    static constexpr bool gives_index = op == ScalarOp::reduce_argmax || op == ScalarOp::reduce_argmin;
    static Result<Request> read(const NodeView& node) {
        const auto axes = node.integers(1);
        if (!axes) return std::unexpected(axes.error());
        Request out{{}, node.boolean(2), {}};
        for (const std::int64_t axis : *axes) {
            const bool ordered = out.axes.empty() || axis > static_cast<std::int64_t>(out.axes.back());
            if (!ordered || axis < 0 || axis >= static_cast<std::int64_t>(node.type(0).rank()))
                return node.error("dims must be sorted, distinct and within the rank");
            out.axes.push_back(static_cast<std::size_t>(axis));
        }
        if (out.axes.empty()) return node.error("dims must not be empty");
        return out;
    }
    static Types infer(const InferContext& context) {
        const auto request = read(context);
        if (!request) return std::unexpected(request.error());
        const TensorType& self = context.type(0);
        // Of nothing there is no index, and kernels know the limits of their registers only.
        constexpr bool is_extremum = op != ScalarOp::reduce_sum && op != ScalarOp::reduce_prod;
        const bool is_narrow = !is_float(self.dtype) && size_of(self.dtype) < 4;
        if (gives_index || (is_extremum && is_narrow))
            if (const auto ok = not_empty(context, request->axes); !ok) return std::unexpected(ok.error());
        return one(gives_index ? DType::i64 : self.dtype, reduced(self.shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = read(context.node());
        if (!request) return std::unexpected(request.error());
        const HostTensor& in = context.tensor(0);
        auto out = reduce(context, in, *request, op, gives_index ? DType::i64 : in.dtype);
        if (!out) return std::unexpected(out.error());
        return one(std::move(*out));
    }
};

// sum and prod: integers and booleans become i64, unless a dtype is asked for.

DType total_dtype(const NodeView& node, const Request& request) noexcept {
    const DType self = node.type(0).dtype;
    return request.dtype ? *request.dtype : is_float(self) ? self : DType::i64;
}

template <ScalarOp op>
struct Total {
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        return one(total_dtype(context, *request), reduced(context.type(0).shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        const DType dtype = total_dtype(context.node(), *request);
        auto out = reduce(context, converted(context.tensor(0), dtype), *request, op, dtype);
        if (!out) return std::unexpected(out.error());
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        Steps steps(builder);
        const ValueId x = steps.cast(node.tensor(0), total_dtype(node, *request));
        return steps.done({steps.reduce(core_name(op), x, request->axes, request->keepdim)});
    }
};

/// nansum: NaN counts as 0.
struct NanSum {
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        const DType dtype = total_dtype(context.node(), *request);
        HostTensor in = context.tensor(0);
        for (double& value : in.reals)
            if (std::isnan(value)) value = 0;
        auto out = reduce(context, converted(in, dtype), *request, ScalarOp::reduce_sum, dtype);
        if (!out) return std::unexpected(out.error());
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        const TensorType type = node.type(0);
        Steps steps(builder);
        ValueId x = node.tensor(0);
        if (is_float(type.dtype)) x = steps.where(steps.call("isnan", {x}), steps.full({}, 0.0, type.dtype), x);
        x = steps.cast(x, total_dtype(node, *request));
        return steps.done({steps.reduce("lyo_sum", x, request->axes, request->keepdim)});
    }
};

struct Mean {
    static Result<DType> dtype_of(const NodeView& node, const Request& request) {
        const DType dtype = request.dtype.value_or(node.type(0).dtype);
        if (!is_float(dtype))
            return mismatch(ErrorCode::bad_graph, node.place(), "dtype", "a floating one", to_string(dtype));
        return dtype;
    }
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        const auto dtype = dtype_of(context, *request);
        if (!dtype) return std::unexpected(dtype.error());
        return one(*dtype, reduced(context.type(0).shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        for_each_group(in.shape, request->axes, [&](std::size_t at, std::span<const std::size_t> group) {
            double total = 0;
            for (const std::size_t i : group) total += in.real(i);
            out->reals[at] = total / static_cast<double>(group.size());
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        const auto dtype = dtype_of(node, *request);
        if (!dtype) return std::unexpected(dtype.error());
        Steps steps(builder);
        const ValueId x = steps.cast(node.tensor(0), compute_dtype(*dtype));
        return steps.done({steps.cast(steps.mean(x, request->axes, request->keepdim), *dtype)});
    }
};

/// amax, amin, max, min: one value.
template <ScalarOp op>
struct Extremum {
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        if (const auto ok = not_empty(context, request->axes); !ok) return std::unexpected(ok.error());
        return one(context.type(0).dtype, reduced(context.type(0).shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        if (const auto ok = not_empty(context, request->axes); !ok) return std::unexpected(ok.error());
        const HostTensor& in = context.tensor(0);
        auto out = reduce(context, in, *request, op, in.dtype);
        if (!out) return std::unexpected(out.error());
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        Steps steps(builder);
        return steps.done({steps.reduce(core_name(op), node.tensor(0), request->axes, request->keepdim)});
    }
};

/// argmax, argmin: an index, over all elements when no dim is given.
template <ScalarOp op>
struct ArgExtremum {
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        if (const auto ok = not_empty(context, request->axes); !ok) return std::unexpected(ok.error());
        return one(DType::i64, reduced(context.type(0).shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        if (const auto ok = not_empty(context, request->axes); !ok) return std::unexpected(ok.error());
        auto out = reduce(context, context.tensor(0), *request, op, DType::i64);
        if (!out) return std::unexpected(out.error());
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        Steps steps(builder);
        if (request->axes.empty()) return steps.done({steps.full({}, Sym(0), DType::i64)});
        return steps.done({steps.reduce(core_name(op), node.tensor(0), request->axes, request->keepdim)});
    }
};

/// max.dim, min.dim: value and index.
template <ScalarOp op>
struct ExtremumAt {
    static Types infer(const InferContext& context) {
        auto values = Extremum<op>::infer(context);
        if (!values) return values;
        values->push_back({DType::i64, (*values)[0].shape});
        return values;
    }
    static Values eval(const EvalContext& context) {
        auto out = Extremum<op>::eval(context);
        if (!out) return out;
        auto indices = ArgExtremum<arg_of(op)>::eval(context);
        if (!indices) return indices;
        out->push_back(std::move((*indices)[0]));
        return out;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto values = Extremum<op>::decompose(builder, node);
        if (!values) return values;
        const auto indices = ArgExtremum<arg_of(op)>::decompose(builder, node);
        if (!indices) return indices;
        return std::vector<ValueId>{(*values)[0], (*indices)[0]};
    }
};

/// aminmax: smallest and greatest.
struct MinMax {
    static Types infer(const InferContext& context) {
        auto out = Extremum<ScalarOp::reduce_min>::infer(context);
        if (out) out->push_back((*out)[0]);
        return out;
    }
    static Values eval(const EvalContext& context) {
        auto out = Extremum<ScalarOp::reduce_min>::eval(context);
        if (!out) return out;
        auto greatest = Extremum<ScalarOp::reduce_max>::eval(context);
        if (!greatest) return greatest;
        out->push_back(std::move((*greatest)[0]));
        return out;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto least = Extremum<ScalarOp::reduce_min>::decompose(builder, node);
        if (!least) return least;
        const auto greatest = Extremum<ScalarOp::reduce_max>::decompose(builder, node);
        if (!greatest) return greatest;
        return std::vector<ValueId>{(*least)[0], (*greatest)[0]};
    }
};

/// any (max) and all (min) of what is not zero, NaN included. u8 stays u8, as it was PyTorch's boolean once. An empty
/// dims list of the .dims overloads reduces nothing.
template <ScalarOp op>
struct Truth {
    static DType dtype_of(const NodeView& node) noexcept {
        return node.type(0).dtype == DType::u8 ? DType::u8 : DType::boolean;
    }
    static Types infer(const InferContext& context) {
        const auto request = request_of(context, true);
        if (!request) return std::unexpected(request.error());
        return one(dtype_of(context), reduced(context.type(0).shape, request->axes, request->keepdim));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node(), true);
        if (!request) return std::unexpected(request.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        constexpr bool wants_any = op == ScalarOp::reduce_max;
        for_each_group(in.shape, request->axes, [&](std::size_t at, std::span<const std::size_t> group) {
            const auto is_true = [&](std::size_t i) { return in.is_real() ? in.reals[i] != 0 : in.ints[i] != 0; };
            const bool holds = wants_any ? std::any_of(group.begin(), group.end(), is_true)
                                         : std::all_of(group.begin(), group.end(), is_true);
            out->set(at, std::int64_t{holds});
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node, true);
        if (!request) return std::unexpected(request.error());
        const DType self = node.type(0).dtype, result = dtype_of(node);
        Steps steps(builder);
        ValueId x = node.tensor(0);
        if (self != DType::boolean) x = steps.call("ne.Scalar", {x, Sym(0)});
        // As i32, of which every number above 0 is true: the extremum of nothing is the lowest or highest of these.
        x = steps.reduce(core_name(op), steps.cast(x, DType::i32), request->axes, request->keepdim);
        return steps.done({steps.cast(steps.call("gt.Scalar", {x, Sym(0)}), result)});
    }
};

struct CountNonzero {
    static Types infer(const InferContext& context) {
        const auto request = request_of(context);
        if (!request) return std::unexpected(request.error());
        return one(DType::i64, reduced(context.type(0).shape, request->axes, false));
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        for_each_group(in.shape, request->axes, [&](std::size_t at, std::span<const std::size_t> group) {
            for (const std::size_t i : group) out->ints[at] += in.is_real() ? in.reals[i] != 0 : in.ints[i] != 0;
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto request = request_of(node);
        if (!request) return std::unexpected(request.error());
        Steps steps(builder);
        const ValueId x = steps.cast(steps.call("ne.Scalar", {node.tensor(0), Sym(0)}), DType::i64);
        return steps.done({steps.reduce("lyo_sum", x, request->axes, false)});
    }
};

template <ScalarOp op>
constexpr OpDef core(std::string_view schema) {
    return {
        .schema = schema, .infer = Core_<op>::infer, .eval = Core_<op>::eval, .core = Core::reduction, .reduce = op};
}
using Sum = Total<ScalarOp::reduce_sum>;
using Prod = Total<ScalarOp::reduce_prod>;
using Max = Extremum<ScalarOp::reduce_max>;
using Min = Extremum<ScalarOp::reduce_min>;
using Any = Truth<ScalarOp::reduce_max>;
using All = Truth<ScalarOp::reduce_min>;

constexpr OpDef nansum_def{.schema =
                               "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                               "dtype=None) -> Tensor",
                           .infer = Sum::infer,
                           .eval = NanSum::eval,
                           .decompose = NanSum::decompose};

constexpr OpDef defs[] = {
    core<ScalarOp::reduce_sum>("lyo_sum(Tensor self, int[] dims, bool keepdim) -> Tensor"),
    core<ScalarOp::reduce_prod>("lyo_prod(Tensor self, int[] dims, bool keepdim) -> Tensor"),
    core<ScalarOp::reduce_max>("lyo_max(Tensor self, int[] dims, bool keepdim) -> Tensor"),
    core<ScalarOp::reduce_min>("lyo_min(Tensor self, int[] dims, bool keepdim) -> Tensor"),
    core<ScalarOp::reduce_argmax>("lyo_argmax(Tensor self, int[] dims, bool keepdim) -> Tensor"),
    core<ScalarOp::reduce_argmin>("lyo_argmin(Tensor self, int[] dims, bool keepdim) -> Tensor"),

    made<Sum>("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor"),
    made<Sum>("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"),
    made<Prod>("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor"),
    made<Prod>("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"),
    nansum_def,
    made<Mean>("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor"),
    made<Mean>("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"),
    made<CountNonzero>("count_nonzero(Tensor self, int? dim=None) -> Tensor"),
    made<CountNonzero>("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor"),

    made<Max>("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"),
    made<Min>("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"),
    made<Max>("max(Tensor self) -> Tensor"),
    made<Min>("min(Tensor self) -> Tensor"),
    made<ExtremumAt<ScalarOp::reduce_max>>(
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    made<ExtremumAt<ScalarOp::reduce_min>>(
        "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"),
    made<MinMax>("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"),
    made<ArgExtremum<ScalarOp::reduce_argmax>>("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"),
    made<ArgExtremum<ScalarOp::reduce_argmin>>("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"),

    made<Any>("any(Tensor self) -> Tensor"),
    made<Any>("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"),
    made<Any>("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"),
    made<All>("all(Tensor self) -> Tensor"),
    made<All>("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"),
    made<All>("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"),
};

}  // namespace

std::span<const OpDef> reduction() {
    static const std::vector<OpDef> all = joined({defs, reduction_stats()});
    return all;
}

}  // namespace lyo::ops
