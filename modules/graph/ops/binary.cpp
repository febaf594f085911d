// Pointwise operators of several tensors: arithmetic, powers, comparisons, logic, selection.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;
import :pointwise;

namespace lyo::ops {
namespace {

template <ScalarOp op>
constexpr auto of_instruction = [](const Args& a) { return a[0].op(op, a[1]); };

template <ScalarOp op>
constexpr OpDef arithmetic(std::string_view schema, bool differentiable = true) {
    return pointwise<Rule::promote, 2, of_instruction<op>>(schema, differentiable);
}
template <ScalarOp op>
constexpr OpDef bits(std::string_view schema) {
    return pointwise<Rule::bits, 2, of_instruction<op>>(schema, false);
}
template <ScalarOp op>
constexpr OpDef comparison(std::string_view schema) {
    return pointwise<Rule::compare, 2, of_instruction<op>>(schema);
}
template <ScalarOp op>
constexpr OpDef logical(std::string_view schema) {
    return pointwise<Rule::logic, 2, of_instruction<op>>(schema);
}

/// x times the factor argument at `i`, which is 1 most of the time.
X scaled(const Args& a, X x, std::size_t i) { return a.real(i) == 1 ? x : x * a[i]; }

X add(const Args& a) { return a[0] + scaled(a, a[1], 2); }
X sub(const Args& a) { return a[0] - scaled(a, a[1], 2); }
X rsub(const Args& a) { return a[1] - scaled(a, a[0], 2); }

/// Division with a rounding mode: the dtype is that of a true division only without one.
struct RoundedDivision {
    static constexpr std::array<std::size_t, 2> operands = {0, 1};
    static Rule rule(const NodeView& node) noexcept { return node.is_none(2) ? Rule::to_float : Rule::promote; }
    static Types infer(const InferContext& context) {
        if (!context.is_none(2) && context.text(2) != "floor" && context.text(2) != "trunc")
            return mismatch(ErrorCode::unsupported_argument, context.place(), "rounding_mode", "None, floor or trunc",
                            context.text(2));
        auto shape = broadcast_of(context, operands);
        if (!shape) return std::unexpected(shape.error());
        return one(compute_type(rule(context), context, operands), std::move(*shape));
    }
    static Scalar emit(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> scalars) {
        const Args a(e, node, scalars, compute_type(rule(node), node, operands));
        const ScalarOp op = node.is_none(2)           ? ScalarOp::div
                            : node.text(2) == "floor" ? ScalarOp::floor_div
                                                      : ScalarOp::trunc_div;
        return a[0].op(op, a[1]).scalar();
    }
};
constexpr OpDef rounded_division(std::string_view schema) {
    return {.schema = schema, .infer = RoundedDivision::infer, .eval = eval_pointwise, .emit = RoundedDivision::emit};
}

/// PyTorch's pow_tensor_scalar: some exponents have instructions of their own.
X pow_number(const Args& a) {
    const X x = a[0];
    const double exponent = a.real(1);
    if (exponent == 2) return x * x;
    if (exponent == 3) return x * x * x;
    if (x.is_real()) {
        if (exponent == 0.5) return x.op(ScalarOp::sqrt);
        if (exponent == -0.5) return x.op(ScalarOp::rsqrt);
        if (exponent == -1) return x.op(ScalarOp::reciprocal);
        if (exponent == -2) return (x * x).op(ScalarOp::reciprocal);
    }
    return x.op(ScalarOp::pow, a[1]);
}

X clamp(const Args& a) {
    X x = a[0];
    if (a.has(1)) x = x.max(a[1]);
    if (a.has(2)) x = x.min(a[2]);
    return x;
}
X clamp_min(const Args& a) { return a[0].max(a[1]); }
X clamp_max(const Args& a) { return a[0].min(a[1]); }

X addcmul(const Args& a) { return a[0] + scaled(a, a[1] * a[2], 3); }
X addcdiv(const Args& a) { return a[0] + scaled(a, a[1], 3) / a[2]; }
/// PyTorch's lerp: from the nearer end, so that weight 1 gives exactly the end.
X lerp(const Args& a) {
    const X start = a[0], end = a[1], weight = a[2];
    const X difference = end - start;
    return (weight.abs() < 0.5).select(start + weight * difference, end - difference * (1 - weight));
}
X xlogy(const Args& a) {
    const X x = a[0], y = a[1];
    return y.op(ScalarOp::isnan).select(y, x.op(ScalarOp::eq, 0).select(0, x * y.log()));
}
X xlog1py(const Args& a) {
    const X x = a[0], y = a[1];
    return y.op(ScalarOp::isnan).select(y, x.op(ScalarOp::eq, 0).select(0, x * y.log1p()));
}
X logaddexp(const Args& a) {
    const X x = a[0], y = a[1], greatest = x.max(y);
    // Equal infinities have no difference.
    const X same = greatest.op(ScalarOp::isinf) & x.op(ScalarOp::eq, y);
    return same.select(x, greatest + (-(x - y).abs()).exp().log1p());
}
X heaviside(const Args& a) { return a[0].op(ScalarOp::eq, 0).select(a[1], (a[0] < 0).select(0, a[0].of(1))); }
X prelu_kernel(const Args& a) { return (a[0] > 0).select(a[0], a[0] * a[1]); }

X where(const Args& a) { return a.as(0, DType::boolean).select(a[1], a[2]); }

/// where, of which the dtype follows from two operands and the shape from three.
struct Where {
    static constexpr std::array<std::size_t, 2> values = {1, 2};
    static constexpr std::array<std::size_t, 3> all = {0, 1, 2};
    static Types infer(const InferContext& context) {
        auto shape = broadcast_of(context, all);
        if (!shape) return std::unexpected(shape.error());
        return one(result_type(context, values), std::move(*shape));
    }
    static Scalar emit(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> scalars) {
        return where(Args(e, node, scalars, result_type(node, values))).scalar();
    }
};
constexpr OpDef selection(std::string_view schema) {
    return {
        .schema = schema, .infer = Where::infer, .eval = eval_pointwise, .emit = Where::emit, .differentiable = true};
}

/// masked_fill: the dtype is the tensor's own.
struct MaskedFill {
    static constexpr std::array<std::size_t, 2> shaped = {0, 1};
    static Types infer(const InferContext& context) {
        if (context.type(1).dtype != DType::boolean)
            return mismatch(ErrorCode::bad_graph, context.place(), "dtype of mask", "boolean",
                            to_string(context.type(1).dtype));
        auto shape = broadcast_of(context, shaped);
        if (!shape) return std::unexpected(shape.error());
        return one(context.type(0).dtype, std::move(*shape));
    }
    static Scalar emit(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> scalars) {
        const Args a(e, node, scalars, node.type(0).dtype);
        return a.raw(1).select(a[2], a[0]).scalar();
    }
};
constexpr OpDef masked_fill(std::string_view schema) {
    return {.schema = schema,
            .infer = MaskedFill::infer,
            .eval = eval_pointwise,
            .emit = MaskedFill::emit,
            .differentiable = true};
}

/// prelu: one weight, or one a channel (dimension 1).
struct Prelu {
    static Types infer(const InferContext& context) {
        const TensorType &x = context.type(0), &weight = context.type(1);
        const Sym count = element_count(weight.shape);
        if (count != Sym(1)) {
            if (x.rank() < 2) return context.error("several weights need an input with channels");
            if (const auto same = context.equal(count, x.shape[1], "weights and channels"); !same)
                return std::unexpected(same.error());
        }
        return one(x);
    }
    static Shape weight_shape(const NodeView& node) {
        const Sym count = element_count(node.type(1).shape);
        Shape shape(node.type(0).rank(), Sym(1));
        if (shape.size() >= 2) shape[1] = count;
        return shape;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps s(builder);
        const ValueId weight = s.reshape(node.tensor(1), weight_shape(node));
        return s.done({s.call("_prelu_kernel", {node.tensor(0), weight})});
    }
    static Result<std::vector<HostTensor>> eval(const EvalContext& context) {
        HostTensor out = context.tensor(0);
        const HostTensor& weight = context.tensor(1);
        for (std::size_t i = 0; i < out.reals.size(); ++i) {
            const std::size_t channel =
                weight.reals.size() == 1 ? 0 : static_cast<std::size_t>(unravel(i, out.shape)[1]);
            if (!(out.reals[i] > 0)) out.reals[i] *= weight.reals[channel];
        }
        return one(std::move(out));
    }
};

constexpr OpDef defs[] = {
    pointwise<Rule::promote, 2, add>("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
    pointwise<Rule::promote, 2, add>("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
    pointwise<Rule::promote, 2, sub>("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
    pointwise<Rule::promote, 2, sub>("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
    pointwise<Rule::promote, 2, sub>("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
    pointwise<Rule::promote, 2, sub>("subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
    pointwise<Rule::promote, 2, rsub>("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
    pointwise<Rule::promote, 2, rsub>("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
    arithmetic<ScalarOp::mul>("mul.Tensor(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::mul>("mul.Scalar(Tensor self, Scalar other) -> Tensor"),
    arithmetic<ScalarOp::mul>("multiply.Tensor(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::mul>("multiply.Scalar(Tensor self, Scalar other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::div>>("div.Tensor(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::div>>("div.Scalar(Tensor self, Scalar other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::div>>("divide.Tensor(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::div>>("divide.Scalar(Tensor self, Scalar other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::div>>(
        "true_divide.Tensor(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::div>>(
        "true_divide.Scalar(Tensor self, Scalar other) -> Tensor"),
    rounded_division("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"),
    rounded_division("div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor"),
    arithmetic<ScalarOp::floor_div>("floor_divide(Tensor self, Tensor other) -> Tensor", false),
    arithmetic<ScalarOp::floor_div>("floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", false),
    arithmetic<ScalarOp::remainder>("remainder.Tensor(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::remainder>("remainder.Scalar(Tensor self, Scalar other) -> Tensor"),
    arithmetic<ScalarOp::remainder>("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::fmod>("fmod.Tensor(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::fmod>("fmod.Scalar(Tensor self, Scalar other) -> Tensor"),
    arithmetic<ScalarOp::pow>("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"),
    arithmetic<ScalarOp::pow>("pow.Scalar(Scalar self, Tensor exponent) -> Tensor"),
    pointwise<Rule::promote, 2, pow_number>("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::atan2>>("atan2(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::atan2>>("arctan2(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::copysign>>(
        "copysign.Tensor(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, of_instruction<ScalarOp::copysign>>(
        "copysign.Scalar(Tensor self, Scalar other) -> Tensor"),
    pointwise<Rule::real, 2, of_instruction<ScalarOp::hypot>>("hypot(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, xlogy>("xlogy.Tensor(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, xlogy>("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor"),
    pointwise<Rule::to_float, 2, xlogy>("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor"),
    pointwise<Rule::to_float, 2, xlog1py>("special_xlog1py(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::real, 2, logaddexp>("logaddexp(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::promote, 2, heaviside>("heaviside(Tensor self, Tensor values) -> Tensor", false),

    arithmetic<ScalarOp::maximum>("maximum(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::minimum>("minimum(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::maximum>("max.other(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::minimum>("min.other(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::fmax>("fmax(Tensor self, Tensor other) -> Tensor"),
    arithmetic<ScalarOp::fmin>("fmin(Tensor self, Tensor other) -> Tensor"),
    pointwise<Rule::promote, 3, clamp>("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"),
    pointwise<Rule::promote, 3, clamp>("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"),
    pointwise<Rule::promote, 3, clamp>("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"),
    pointwise<Rule::promote, 3, clamp>("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"),
    pointwise<Rule::promote, 2, clamp_min>("clamp_min(Tensor self, Scalar min) -> Tensor"),
    pointwise<Rule::promote, 2, clamp_min>("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor"),
    pointwise<Rule::promote, 2, clamp_max>("clamp_max(Tensor self, Scalar max) -> Tensor"),
    pointwise<Rule::promote, 2, clamp_max>("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor"),

    comparison<ScalarOp::eq>("eq.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::eq>("eq.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::ne>("ne.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::ne>("ne.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::ne>("not_equal.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::ne>("not_equal.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::lt>("lt.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::lt>("lt.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::lt>("less.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::lt>("less.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::le>("le.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::le>("le.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::le>("less_equal.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::le>("less_equal.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::gt>("gt.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::gt>("gt.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::gt>("greater.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::gt>("greater.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::ge>("ge.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::ge>("ge.Scalar(Tensor self, Scalar other) -> Tensor"),
    comparison<ScalarOp::ge>("greater_equal.Tensor(Tensor self, Tensor other) -> Tensor"),
    comparison<ScalarOp::ge>("greater_equal.Scalar(Tensor self, Scalar other) -> Tensor"),

    logical<ScalarOp::bit_and>("logical_and(Tensor self, Tensor other) -> Tensor"),
    logical<ScalarOp::bit_or>("logical_or(Tensor self, Tensor other) -> Tensor"),
    logical<ScalarOp::bit_xor>("logical_xor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::bit_and>("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::bit_and>("bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::bit_and>("__and__.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::bit_and>("__and__.Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::bit_or>("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::bit_or>("bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::bit_or>("__or__.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::bit_or>("__or__.Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::bit_xor>("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::bit_xor>("bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::bit_xor>("__xor__.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::bit_xor>("__xor__.Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::shl>("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::shl>("bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::shl>("__lshift__.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::shl>("__lshift__.Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::shr>("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::shr>("bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor"),
    bits<ScalarOp::shr>("__rshift__.Tensor(Tensor self, Tensor other) -> Tensor"),
    bits<ScalarOp::shr>("__rshift__.Scalar(Tensor self, Scalar other) -> Tensor"),

    pointwise<Rule::promote, 3, addcmul>(
        "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"),
    pointwise<Rule::real, 3, addcdiv>(
        "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"),
    pointwise<Rule::real, 3, lerp>("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor"),
    pointwise<Rule::real, 3, lerp>("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor"),
    selection("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"),
    selection("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor"),
    selection("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor"),
    selection("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"),
    masked_fill("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"),
    masked_fill("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"),
    pointwise<Rule::real, 2, prelu_kernel>("_prelu_kernel(Tensor self, Tensor weight) -> Tensor"),
    {.schema = "prelu(Tensor self, Tensor weight) -> Tensor",
     .infer = Prelu::infer,
     .eval = Prelu::eval,
     .decompose = Prelu::decompose,
     .differentiable = true},
};

}  // namespace

std::span<const OpDef> binary() { return defs; }

}  // namespace lyo::ops
