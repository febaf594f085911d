// Pointwise operators: how their result's dtype follows from their operands, and formulas written once, from which both
// the compiler's kernels and the reference values are made.
module lyo.graph:pointwise;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;
import :op;
import :ops;

namespace lyo::ops {

/// In which dtype an operator computes, and what it gives.
enum class Rule : std::uint8_t {
    promote,   ///< torch.result_type of the operands, and gives that
    to_float,  ///< the same, integers and booleans as f32
    compare,   ///< computes in the promoted dtype, gives booleans
    logic,     ///< computes in booleans and gives them
    real,      ///< as promote, of floating operands only
    bits,      ///< as promote, of integers and booleans only
};

/// torch.result_type: tensors with dimensions outrank those without, which outrank numbers, within a category (boolean,
/// integer, floating). Operands that are None do not count.
DType result_type(const NodeView& node, std::span<const std::size_t> operands);
/// The dtype in which a rule computes on the operands.
DType compute_type(Rule rule, const NodeView& node, std::span<const std::size_t> operands);
/// The shape to which the tensors among the operands broadcast.
Result<Shape> broadcast_of(const InferContext& context, std::span<const std::size_t> operands);

/// A value of the formula under construction. Numbers beside it take its dtype.
class X {
  public:
    X(ScalarEmitter& e, Scalar s) noexcept : e_(&e), s_(s) {}
    Scalar scalar() const noexcept { return s_; }
    DType dtype() const noexcept { return e_->dtype(s_); }
    bool is_real() const noexcept { return is_float(dtype()); }

    X of(double value) const { return {*e_, e_->constant(value, dtype())}; }
    X op(ScalarOp op) const { return {*e_, e_->op(op, s_)}; }
    X op(ScalarOp op, X y) const { return {*e_, e_->op(op, s_, y.s_)}; }
    X op(ScalarOp op, double y) const { return this->op(op, of(y)); }
    X cast(DType dtype) const { return {*e_, e_->cast(s_, dtype)}; }
    X round_to(DType dtype) const { return {*e_, e_->round_to(s_, dtype)}; }
    /// This condition ? a : b.
    X select(X a, X b) const { return {*e_, e_->select(s_, a.s_, b.s_)}; }
    X select(X a, double b) const { return select(a, a.of(b)); }
    X select(double a, X b) const { return select(b.of(a), b); }

    X exp() const { return op(ScalarOp::exp); }
    X expm1() const { return op(ScalarOp::expm1); }
    X log() const { return op(ScalarOp::log); }
    X log1p() const { return op(ScalarOp::log1p); }
    X tanh() const { return op(ScalarOp::tanh); }
    X erf() const { return op(ScalarOp::erf); }
    X sigmoid() const { return op(ScalarOp::sigmoid); }
    X abs() const { return op(ScalarOp::abs); }
    X max(X y) const { return op(ScalarOp::maximum, y); }
    X max(double y) const { return op(ScalarOp::maximum, y); }
    X min(X y) const { return op(ScalarOp::minimum, y); }
    X min(double y) const { return op(ScalarOp::minimum, y); }
    /// Of a boolean.
    X negated() const { return op(ScalarOp::eq, 0); }

    friend X operator-(X x) { return x.op(ScalarOp::neg); }
    friend X operator+(X x, X y) { return x.op(ScalarOp::add, y); }
    friend X operator-(X x, X y) { return x.op(ScalarOp::sub, y); }
    friend X operator*(X x, X y) { return x.op(ScalarOp::mul, y); }
    friend X operator/(X x, X y) { return x.op(ScalarOp::div, y); }
    friend X operator+(X x, double y) { return x + x.of(y); }
    friend X operator-(X x, double y) { return x - x.of(y); }
    friend X operator-(double x, X y) { return y.of(x) - y; }
    friend X operator*(X x, double y) { return x * x.of(y); }
    friend X operator/(X x, double y) { return x / x.of(y); }
    friend X operator/(double x, X y) { return y.of(x) / y; }
    friend X operator<(X x, X y) { return x.op(ScalarOp::lt, y); }
    friend X operator>(X x, X y) { return x.op(ScalarOp::gt, y); }
    friend X operator<(X x, double y) { return x.op(ScalarOp::lt, y); }
    friend X operator<=(X x, double y) { return x.op(ScalarOp::le, y); }
    friend X operator>(X x, double y) { return x.op(ScalarOp::gt, y); }
    friend X operator>=(X x, double y) { return x.op(ScalarOp::ge, y); }
    friend X operator&(X x, X y) { return x.op(ScalarOp::bit_and, y); }
    friend X operator|(X x, X y) { return x.op(ScalarOp::bit_or, y); }

  private:
    ScalarEmitter* e_;
    Scalar s_;
};

/// What a formula sees besides its operands: the node's other arguments.
class Args {
  public:
    Args(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> operands, DType compute) noexcept
        : e_(&e), node_(&node), operands_(operands), compute_(compute) {}
    const NodeView& node() const noexcept { return *node_; }
    DType compute() const noexcept { return compute_; }
    bool has(std::size_t i) const noexcept { return !node_->is_none(i); }
    double real(std::size_t i) const noexcept { return node_->real(i); }
    /// Argument `i`, a tensor's element or a number, in the dtype that the operator computes in.
    X operator[](std::size_t i) const { return as(i, compute_); }
    X as(std::size_t i, DType dtype) const;
    /// As it is: in the tensor's own dtype.
    X raw(std::size_t i) const noexcept { return {*e_, operands_[i]}; }
    X constant(double value) const { return {*e_, e_->constant(value, compute_)}; }

  private:
    ScalarEmitter* e_;
    const NodeView* node_;
    std::span<const Scalar> operands_;
    DType compute_;
};

/// Reference values of any pointwise operator: its formula, evaluated in double precision and 64-bit integers.
Result<std::vector<HostTensor>> eval_pointwise(const EvalContext& context);

/// An operator whose first `n` parameters, from `first` on, are its operands. `formula` maps Args to an X.
template <Rule rule, std::size_t first, std::size_t n, auto formula>
struct Pointwise {
    static constexpr std::array<std::size_t, n> operands = [] {
        std::array<std::size_t, n> out{};
        for (std::size_t i = 0; i < n; ++i) out[i] = first + i;
        return out;
    }();

    static Types infer(const InferContext& context) {
        auto shape = broadcast_of(context, operands);
        if (!shape) return std::unexpected(shape.error());
        const DType dtype = compute_type(rule, context, operands);
        if constexpr (rule == Rule::real || rule == Rule::bits)
            if (is_float(dtype) != (rule == Rule::real))
                return mismatch(ErrorCode::bad_graph, context.place(), "dtype",
                                rule == Rule::real ? "a floating one" : "an integer or boolean", to_string(dtype));
        return one(gives_booleans() ? DType::boolean : dtype, std::move(*shape));
    }
    static Scalar emit(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> scalars) {
        const DType compute = compute_type(rule, node, operands);
        const X out = formula(Args(e, node, scalars, compute));
        return out.cast(gives_booleans() ? DType::boolean : compute).scalar();
    }
    static constexpr bool gives_booleans() noexcept { return rule == Rule::compare || rule == Rule::logic; }
};

template <Rule rule, std::size_t n, auto formula>
constexpr OpDef pointwise(std::string_view schema, bool differentiable = true) {
    using Def = Pointwise<rule, 0, n, formula>;
    return {.schema = schema,
            .infer = Def::infer,
            .eval = eval_pointwise,
            .emit = Def::emit,
            .differentiable = differentiable && !Def::gives_booleans()};
}

}  // namespace lyo::ops
