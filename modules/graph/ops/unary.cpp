// Pointwise operators of one tensor: mathematics, rounding, tests, activations.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;
import :pointwise;

namespace lyo::ops {
namespace {

template <ScalarOp op>
constexpr auto of_instruction = [](const Args& a) { return a[0].op(op); };

/// An instruction that gives a floating result.
template <ScalarOp op>
constexpr OpDef math(std::string_view schema, bool differentiable = true) {
    return pointwise<Rule::to_float, 1, of_instruction<op>>(schema, differentiable);
}
/// An instruction on floating values; integers and booleans stay as they are.
template <ScalarOp op>
constexpr OpDef rounding(std::string_view schema) {
    return pointwise<Rule::promote, 1, [](const Args& a) { return a[0].is_real() ? a[0].op(op) : a[0]; }>(schema,
                                                                                                          false);
}

constexpr double sqrt_half = 0.70710678118654752440, sqrt_two_over_pi = 0.79788456080286535588;

X infinity(const Args& a) { return a.constant(std::numeric_limits<double>::infinity()); }
X no(const Args& a) { return a[0].cast(DType::boolean) & a.constant(0).cast(DType::boolean); }

/// log(1 + exp(x)), as PyTorch's softplus with beta 1 and threshold 20.
X softplus_one(X x) { return (x > 20).select(x, x.exp().log1p()); }

X gelu(const Args& a) {
    const X x = a[0];
    if (a.node().text(1) == "tanh") return x * 0.5 * ((x + x * x * x * 0.044715) * sqrt_two_over_pi).tanh() + x * 0.5;
    return x * 0.5 * (x * sqrt_half).erf() + x * 0.5;
}
Types infer_gelu(const InferContext& context) {
    if (const std::string& form = context.text(1); form != "none" && form != "tanh")
        return mismatch(ErrorCode::unsupported_argument, context.place(), "approximate", "none or tanh", form);
    return Pointwise<Rule::real, 0, 1, gelu>::infer(context);
}

X softplus(const Args& a) {
    const X scaled = a[0] * a.real(1);
    return (scaled > a.real(2)).select(a[0], scaled.exp().log1p() / a.real(1));
}
X elu_of(X x, double alpha, double scale, double input_scale) {
    return (x < 0).select((x * input_scale).expm1() * (alpha * scale), x * scale);
}
X elu(const Args& a) { return elu_of(a[0], a.real(1), a.real(2), a.real(3)); }
X celu(const Args& a) { return elu_of(a[0], a.real(1), 1, 1 / a.real(1)); }
X selu(const Args& a) { return elu_of(a[0], 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1); }
X leaky_relu(const Args& a) { return (a[0] > 0).select(a[0], a[0] * a[1]); }
X relu6(const Args& a) { return a[0].max(0).min(6); }
X hardswish(const Args& a) { return a[0] * (a[0] + 3).max(0).min(6) / 6; }
X hardsigmoid(const Args& a) { return (a[0] + 3).max(0).min(6) / 6; }
X hardtanh(const Args& a) { return a[0].max(a[1]).min(a[2]); }
X mish(const Args& a) { return a[0] * softplus_one(a[0]).tanh(); }
X silu(const Args& a) { return a[0] * a[0].sigmoid(); }
X log_sigmoid(const Args& a) { return a[0].min(0) - (-a[0].abs()).exp().log1p(); }
X logit(const Args& a) {
    X x = a[0];
    if (a.has(1)) x = x.max(a.real(1)).min(1 - a.real(1));
    return (x / (1 - x)).log();
}
X hardshrink(const Args& a) {
    const X lambda = a[1];
    return ((a[0] > lambda) | (a[0] < -lambda) | a[0].op(ScalarOp::isnan)).select(a[0], 0);
}
X softshrink(const Args& a) {
    const X lambda = a[1];
    return (a[0] > lambda).select(a[0] - lambda, (a[0] < -lambda).select(a[0] + lambda, a[0] * 0));
}
X threshold(const Args& a) { return (a[0].op(ScalarOp::le, a[1])).select(a[2], a[0]); }

X round_decimals(const Args& a) {
    const double scale = std::pow(10.0, a.real(1));
    return (a[0] * scale).op(ScalarOp::round) / scale;
}
X sinc(const Args& a) {
    const X scaled = a[0] * 3.14159265358979323846;
    return a[0].op(ScalarOp::eq, 0).select(1, scaled.op(ScalarOp::sin) / scaled);
}
X signbit(const Args& a) { return a[0].is_real() ? a[0].of(1).op(ScalarOp::copysign, a[0]) < 0 : a[0] < 0; }
X nan_to_num(const Args& a) {
    const X x = a[0];
    if (!x.is_real()) return x;
    const DType dtype = a.compute();
    const double greatest = dtype == DType::f64    ? std::numeric_limits<double>::max()
                            : dtype == DType::f16  ? 65504.0
                            : dtype == DType::bf16 ? std::ldexp(255.0, 120)
                                                   : static_cast<double>(std::numeric_limits<float>::max());
    const X not_nan = x.op(ScalarOp::isnan).select(a.has(1) ? a.real(1) : 0.0, x);
    const X not_high = x.op(ScalarOp::eq, infinity(a)).select(a.has(2) ? a.real(2) : greatest, not_nan);
    return x.op(ScalarOp::eq, -infinity(a)).select(a.has(3) ? a.real(3) : -greatest, not_high);
}

X isnan(const Args& a) { return a[0].is_real() ? a[0].op(ScalarOp::isnan) : no(a); }
X isinf(const Args& a) { return a[0].is_real() ? a[0].op(ScalarOp::isinf) : no(a); }
X isfinite(const Args& a) {
    return a[0].is_real() ? (a[0].op(ScalarOp::isinf) | a[0].op(ScalarOp::isnan)).negated() : no(a).negated();
}
X isposinf(const Args& a) { return a[0].is_real() ? a[0].op(ScalarOp::eq, infinity(a)) : no(a); }
X isneginf(const Args& a) { return a[0].is_real() ? a[0].op(ScalarOp::eq, -infinity(a)) : no(a); }

X bitwise_not(const Args& a) { return a.compute() == DType::boolean ? a[0].negated() : a[0].op(ScalarOp::bit_not); }

/// The first half of a dimension times the sigmoid of the second.
struct Glu {
    static Types infer(const InferContext& context) {
        TensorType type = context.type(0);
        const auto axis = axis_at(context, 1, type.rank());
        if (!axis) return std::unexpected(axis.error());
        if (type.rank() == 0) return context.error("a dimension is needed");
        Sym& size = type.shape[*axis];
        if (const auto even = context.equal(mod(size, 2), 0, "the dimension is split in halves"); !even)
            return std::unexpected(even.error());
        size = floor_div(size, 2);
        return one(std::move(type));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const ValueId x = node.tensor(0);
        const Shape shape = node.type(0).shape;
        const auto axis = axis_at(node, 1, shape.size());
        if (!axis) return std::unexpected(axis.error());
        const Sym half = floor_div(shape[*axis], 2);
        Steps s(builder);
        return s.done({s.mul(s.slice(x, *axis, 0, half), s.call("sigmoid", {s.slice(x, *axis, half, shape[*axis])}))});
    }
    static Result<std::vector<HostTensor>> eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& x = context.tensor(0);
        const auto axis = axis_at(context.node(), 1, x.shape.size());
        if (!axis) return std::unexpected(axis.error());
        const std::int64_t half = out->shape[*axis];
        for (std::size_t i = 0; i < out->reals.size(); ++i) {
            Dims at = unravel(i, out->shape);
            const double value = x.reals[ravel(at, x.shape)];
            at[*axis] += half;
            out->reals[i] = value / (1 + std::exp(-x.reals[ravel(at, x.shape)]));
        }
        return one(std::move(*out));
    }
};

constexpr OpDef defs[] = {
    math<ScalarOp::exp>("exp(Tensor self) -> Tensor"),
    math<ScalarOp::exp2>("exp2(Tensor self) -> Tensor"),
    math<ScalarOp::expm1>("expm1(Tensor self) -> Tensor"),
    math<ScalarOp::log>("log(Tensor self) -> Tensor"),
    math<ScalarOp::log2>("log2(Tensor self) -> Tensor"),
    math<ScalarOp::log10>("log10(Tensor self) -> Tensor"),
    math<ScalarOp::log1p>("log1p(Tensor self) -> Tensor"),
    math<ScalarOp::sqrt>("sqrt(Tensor self) -> Tensor"),
    math<ScalarOp::rsqrt>("rsqrt(Tensor self) -> Tensor"),
    math<ScalarOp::reciprocal>("reciprocal(Tensor self) -> Tensor"),
    math<ScalarOp::sin>("sin(Tensor self) -> Tensor"),
    math<ScalarOp::cos>("cos(Tensor self) -> Tensor"),
    math<ScalarOp::tan>("tan(Tensor self) -> Tensor"),
    math<ScalarOp::asin>("asin(Tensor self) -> Tensor"),
    math<ScalarOp::acos>("acos(Tensor self) -> Tensor"),
    math<ScalarOp::atan>("atan(Tensor self) -> Tensor"),
    math<ScalarOp::sinh>("sinh(Tensor self) -> Tensor"),
    math<ScalarOp::cosh>("cosh(Tensor self) -> Tensor"),
    math<ScalarOp::tanh>("tanh(Tensor self) -> Tensor"),
    math<ScalarOp::asinh>("asinh(Tensor self) -> Tensor"),
    math<ScalarOp::acosh>("acosh(Tensor self) -> Tensor"),
    math<ScalarOp::atanh>("atanh(Tensor self) -> Tensor"),
    math<ScalarOp::asin>("arcsin(Tensor self) -> Tensor"),
    math<ScalarOp::acos>("arccos(Tensor self) -> Tensor"),
    math<ScalarOp::atan>("arctan(Tensor self) -> Tensor"),
    math<ScalarOp::asinh>("arcsinh(Tensor self) -> Tensor"),
    math<ScalarOp::acosh>("arccosh(Tensor self) -> Tensor"),
    math<ScalarOp::atanh>("arctanh(Tensor self) -> Tensor"),
    math<ScalarOp::erf>("erf(Tensor self) -> Tensor"),
    math<ScalarOp::erfc>("erfc(Tensor self) -> Tensor"),
    math<ScalarOp::sigmoid>("sigmoid(Tensor self) -> Tensor"),
    math<ScalarOp::sigmoid>("special_expit(Tensor self) -> Tensor"),
    math<ScalarOp::erf>("special_erf(Tensor self) -> Tensor"),
    math<ScalarOp::erfc>("special_erfc(Tensor self) -> Tensor"),
    math<ScalarOp::exp2>("special_exp2(Tensor self) -> Tensor"),
    math<ScalarOp::expm1>("special_expm1(Tensor self) -> Tensor"),
    math<ScalarOp::log1p>("special_log1p(Tensor self) -> Tensor"),
    pointwise<Rule::to_float, 1, sinc>("sinc(Tensor self) -> Tensor"),
    pointwise<Rule::to_float, 1, logit>("logit(Tensor self, float? eps=None) -> Tensor"),
    pointwise<Rule::to_float, 1, logit>("special_logit(Tensor self, float? eps=None) -> Tensor"),
    pointwise<Rule::to_float, 1, [](const Args& a) { return a[0] * (3.14159265358979323846 / 180); }>(
        "deg2rad(Tensor self) -> Tensor"),
    pointwise<Rule::to_float, 1, [](const Args& a) { return a[0] * (180 / 3.14159265358979323846); }>(
        "rad2deg(Tensor self) -> Tensor"),

    pointwise<Rule::promote, 1, of_instruction<ScalarOp::neg>>("neg(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1, of_instruction<ScalarOp::neg>>("negative(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1, of_instruction<ScalarOp::abs>>("abs(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1, of_instruction<ScalarOp::abs>>("absolute(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1,
              [](const Args& a) {
                  return a[0].is_real() ? a[0].op(ScalarOp::isnan).select(0, a[0].op(ScalarOp::sign))
                                        : a[0].op(ScalarOp::sign);
              }>("sign(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1,
              [](const Args& a) {
                  return a[0].is_real() ? a[0].op(ScalarOp::isnan).select(0, a[0].op(ScalarOp::sign))
                                        : a[0].op(ScalarOp::sign);
              }>("sgn(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1, [](const Args& a) { return a[0] * a[0]; }>("square(Tensor self) -> Tensor"),
    pointwise<Rule::real, 1, [](const Args& a) { return a[0] - a[0].op(ScalarOp::trunc); }>(
        "frac(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1, nan_to_num>(
        "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor"),
    rounding<ScalarOp::floor>("floor(Tensor self) -> Tensor"),
    rounding<ScalarOp::ceil>("ceil(Tensor self) -> Tensor"),
    rounding<ScalarOp::trunc>("trunc(Tensor self) -> Tensor"),
    rounding<ScalarOp::trunc>("fix(Tensor self) -> Tensor"),
    rounding<ScalarOp::round>("round(Tensor self) -> Tensor"),
    pointwise<Rule::real, 1, round_decimals>("round.decimals(Tensor self, *, int decimals) -> Tensor", false),

    pointwise<Rule::compare, 1, isnan>("isnan(Tensor self) -> Tensor"),
    pointwise<Rule::compare, 1, isinf>("isinf(Tensor self) -> Tensor"),
    pointwise<Rule::compare, 1, isfinite>("isfinite(Tensor self) -> Tensor"),
    pointwise<Rule::compare, 1, isposinf>("isposinf(Tensor self) -> Tensor"),
    pointwise<Rule::compare, 1, isneginf>("isneginf(Tensor self) -> Tensor"),
    pointwise<Rule::compare, 1, signbit>("signbit(Tensor self) -> Tensor"),
    pointwise<Rule::logic, 1, [](const Args& a) { return a[0].negated(); }>("logical_not(Tensor self) -> Tensor"),
    pointwise<Rule::bits, 1, bitwise_not>("bitwise_not(Tensor self) -> Tensor", false),

    pointwise<Rule::promote, 1, [](const Args& a) { return a[0].max(0); }>("relu(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1, relu6>("relu6(Tensor self) -> Tensor"),
    {.schema = "gelu(Tensor self, *, str approximate='none') -> Tensor",
     .infer = infer_gelu,
     .eval = eval_pointwise,
     .emit = Pointwise<Rule::promote, 0, 1, gelu>::emit,
     .differentiable = true},
    pointwise<Rule::real, 1, silu>("silu(Tensor self) -> Tensor"),
    pointwise<Rule::real, 1, mish>("mish(Tensor self) -> Tensor"),
    pointwise<Rule::real, 1, softplus>("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"),
    pointwise<Rule::real, 1, elu>("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"),
    pointwise<Rule::real, 1, celu>("celu(Tensor self, Scalar alpha=1.0) -> Tensor"),
    pointwise<Rule::real, 1, selu>("selu(Tensor self) -> Tensor"),
    pointwise<Rule::real, 1, leaky_relu>("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"),
    pointwise<Rule::real, 1, hardswish>("hardswish(Tensor self) -> Tensor"),
    pointwise<Rule::real, 1, hardsigmoid>("hardsigmoid(Tensor self) -> Tensor"),
    pointwise<Rule::promote, 1, hardtanh>("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"),
    pointwise<Rule::real, 1, log_sigmoid>("log_sigmoid(Tensor self) -> Tensor"),
    pointwise<Rule::real, 1, hardshrink>("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"),
    pointwise<Rule::real, 1, softshrink>("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor"),
    pointwise<Rule::promote, 1, threshold>("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"),
    {.schema = "glu(Tensor self, int dim=-1) -> Tensor",
     .infer = Glu::infer,
     .eval = Glu::eval,
     .decompose = Glu::decompose,
     .differentiable = true},
};

}  // namespace

std::span<const OpDef> unary() { return defs; }

}  // namespace lyo::ops
