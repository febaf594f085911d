// Softmax and its logarithm: the row's greatest element taken out first, half types in f32.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

enum class Form : std::uint8_t {
    plain,
    logarithm,
    safe,  ///< a row of -inf gives zeros
};

/// `dtype` if given, f32 if `half_to_float`, else the operand's.
Result<DType> softmax_dtype(const NodeView& node) {
    DType dtype = node.type(0).dtype;
    if (const auto i = parameter(node, "dtype"); i && !node.is_none(*i)) dtype = node.dtype(*i);
    if (const auto i = parameter(node, "half_to_float"); i && node.boolean(*i)) dtype = DType::f32;
    if (!is_float(dtype))
        return mismatch(ErrorCode::bad_graph, node.place(), "dtype", "a floating one", to_string(dtype));
    return dtype;
}

template <Form form>
struct Softmax {
    static Types infer(const InferContext& context) {
        const auto dtype = softmax_dtype(context);
        const auto request = request_of(context);
        if (!dtype) return std::unexpected(dtype.error());
        if (!request) return std::unexpected(request.error());
        return one(*dtype, context.type(0).shape);
    }
    static Values eval(const EvalContext& context) {
        const auto request = request_of(context.node());
        if (!request) return std::unexpected(request.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& in = context.tensor(0);
        for_each_group(in.shape, request->axes, [&](std::size_t, std::span<const std::size_t> group) {
            double greatest = -std::numeric_limits<double>::infinity(), total = 0;
            for (const std::size_t i : group) greatest = in.real(i) > greatest ? in.real(i) : greatest;
            for (const std::size_t i : group) total += std::exp(in.real(i) - greatest);
            const bool masked = std::all_of(group.begin(), group.end(), [&](std::size_t i) {
                return in.real(i) == -std::numeric_limits<double>::infinity();
            });
            for (const std::size_t i : group) {
                const double x = in.real(i) - greatest;
                if (form == Form::logarithm)
                    out->reals[i] = x - std::log(total);
                else
                    out->reals[i] = form == Form::safe && masked ? 0 : std::exp(x) / total;
            }
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto dtype = softmax_dtype(node);
        const auto request = request_of(node);
        if (!dtype) return std::unexpected(dtype.error());
        if (!request) return std::unexpected(request.error());
        const DType compute = compute_dtype(*dtype);
        Steps steps(builder);
        const ValueId x = steps.cast(node.tensor(0), compute);
        if (form == Form::safe) return steps.done({steps.cast(steps.safe_softmax(x, request->axes), *dtype)});
        const ValueId shifted = steps.sub(x, steps.reduce("lyo_max", x, request->axes, true));
        const ValueId powers = steps.call("exp", {shifted});
        const ValueId total = steps.reduce("lyo_sum", powers, request->axes, true);
        const ValueId out =
            form == Form::logarithm ? steps.sub(shifted, steps.call("log", {total})) : steps.div(powers, total);
        return steps.done({steps.cast(out, *dtype)});
    }
};

constexpr OpDef defs[] = {
    made<Softmax<Form::plain>>("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"),
    made<Softmax<Form::plain>>("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"),
    made<Softmax<Form::safe>>("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"),
    made<Softmax<Form::logarithm>>("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"),
    made<Softmax<Form::logarithm>>("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"),
};

}  // namespace

ValueId Steps::safe_softmax(ValueId x, const Axes& axes) {
    const DType dtype = type(x).dtype;
    const ValueId zero = full({}, 0.0, dtype), one_ = full({}, 1.0, dtype);
    const ValueId greatest = reduce("lyo_max", x, axes, true);
    const ValueId masked = call("eq.Scalar", {greatest, -std::numeric_limits<double>::infinity()});
    const ValueId powers = call("exp", {sub(x, where(masked, zero, greatest))});
    return div(powers, where(masked, one_, reduce("lyo_sum", powers, axes, true)));
}

std::span<const OpDef> norm() {
    static const std::vector<OpDef> all = joined({defs, norm_affine()});
    return all;
}

}  // namespace lyo::ops
