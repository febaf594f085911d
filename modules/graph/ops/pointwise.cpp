module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :pointwise;

namespace lyo::ops {
namespace {

/// c10's combine_categories.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
    if (!higher) return lower;
    if (!lower || is_float(*higher)) return higher;
    if (*higher == DType::boolean || is_float(*lower)) return promote(*higher, *lower);
    return higher;
}

void join_into(std::optional<DType>& group, DType dtype) { group = group ? promote(*group, dtype) : dtype; }

}  // namespace

DType result_type(const NodeView& node, std::span<const std::size_t> operands) {
    std::optional<DType> dimensioned, scalars, numbers;
    for (const std::size_t i : operands) {
        if (node.is_none(i)) continue;
        if (node.is_tensor(i))
            join_into(node.type(i).rank() > 0 ? dimensioned : scalars, node.type(i).dtype);
        else if (std::holds_alternative<double>(node[i]))
            join_into(numbers, DType::f32);  // torch's default dtype
        else
            join_into(numbers, std::holds_alternative<bool>(node[i]) ? DType::boolean : DType::i64);
    }
    return combine(dimensioned, combine(scalars, numbers)).value_or(DType::f32);
}

DType compute_type(Rule rule, const NodeView& node, std::span<const std::size_t> operands) {
    if (rule == Rule::logic) return DType::boolean;
    const DType dtype = result_type(node, operands);
    return rule == Rule::to_float && !is_float(dtype) ? DType::f32 : dtype;
}

Result<Shape> broadcast_of(const InferContext& context, std::span<const std::size_t> operands) {
    Shape shape;
    for (const std::size_t i : operands) {
        if (!context.is_tensor(i)) continue;
        auto wider = context.broadcast(shape, context.type(i).shape);
        if (!wider) return wider;
        shape = std::move(*wider);
    }
    return shape;
}

X Args::as(std::size_t i, DType dtype) const {
    if (node_->is_tensor(i)) return raw(i).cast(dtype);
    const Argument& argument = (*node_)[i];
    if (const auto* real = std::get_if<double>(&argument)) return {*e_, e_->constant(*real, dtype)};
    if (const auto* boolean = std::get_if<bool>(&argument)) return {*e_, e_->constant(std::int64_t{*boolean}, dtype)};
    const Sym& size = node_->size(i);
    if (size.is_constant()) return {*e_, e_->constant(size.value(), dtype)};
    return X{*e_, e_->size(size)}.cast(dtype);
}

namespace {

using Wide = std::uint64_t;

std::int64_t floor_div_wrapping(std::int64_t a, std::int64_t b) noexcept {
    if (b == 0) return 0;
    return b == -1 ? static_cast<std::int64_t>(0 - static_cast<Wide>(a)) : floor_div(a, b);
}

double floor_div_real(double a, double b) noexcept {  // c10's div_floor_floating
    if (b == 0) return a / b;
    const double mod = std::fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
    if (div == 0) return std::copysign(0.0, a / b);
    const double floored = std::floor(div);
    return div - floored > 0.5 ? floored + 1 : floored;
}

double remainder_real(double a, double b) noexcept {
    const double mod = std::fmod(a, b);
    return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) noexcept {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    Wide out = 1, factor = static_cast<Wide>(base);
    for (; exponent != 0; exponent >>= 1, factor *= factor)
        if (exponent & 1) out *= factor;
    return static_cast<std::int64_t>(out);
}

double maximum(double a, double b) noexcept { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); }
double minimum(double a, double b) noexcept { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); }

double sigmoid(double x) noexcept {
    if (x >= 0) return 1 / (1 + std::exp(-x));
    const double e = std::exp(x);
    return e / (1 + e);
}

double unary(ScalarOp op, double x) noexcept {
    switch (op) {
        case ScalarOp::neg:
            return -x;
        case ScalarOp::abs:
            return std::fabs(x);
        case ScalarOp::sign:
            return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
        case ScalarOp::sqrt:
            return std::sqrt(x);
        case ScalarOp::rsqrt:
            return 1 / std::sqrt(x);
        case ScalarOp::reciprocal:
            return 1 / x;
        case ScalarOp::exp:
            return std::exp(x);
        case ScalarOp::exp2:
            return std::exp2(x);
        case ScalarOp::expm1:
            return std::expm1(x);
        case ScalarOp::log:
            return std::log(x);
        case ScalarOp::log2:
            return std::log2(x);
        case ScalarOp::log10:
            return std::log10(x);
        case ScalarOp::log1p:
            return std::log1p(x);
        case ScalarOp::sin:
            return std::sin(x);
        case ScalarOp::cos:
            return std::cos(x);
        case ScalarOp::tan:
            return std::tan(x);
        case ScalarOp::asin:
            return std::asin(x);
        case ScalarOp::acos:
            return std::acos(x);
        case ScalarOp::atan:
            return std::atan(x);
        case ScalarOp::sinh:
            return std::sinh(x);
        case ScalarOp::cosh:
            return std::cosh(x);
        case ScalarOp::tanh:
            return std::tanh(x);
        case ScalarOp::asinh:
            return std::asinh(x);
        case ScalarOp::acosh:
            return std::acosh(x);
        case ScalarOp::atanh:
            return std::atanh(x);
        case ScalarOp::erf:
            return std::erf(x);
        case ScalarOp::erfc:
            return std::erfc(x);
        case ScalarOp::sigmoid:
            return sigmoid(x);
        case ScalarOp::floor:
            return std::floor(x);
        case ScalarOp::ceil:
            return std::ceil(x);
        case ScalarOp::round:
            return std::nearbyint(x);
        default:
            return std::trunc(x);
    }
}

double binary(ScalarOp op, double a, double b) noexcept {
    switch (op) {
        case ScalarOp::add:
            return a + b;
        case ScalarOp::sub:
            return a - b;
        case ScalarOp::mul:
            return a * b;
        case ScalarOp::div:
            return a / b;
        case ScalarOp::maximum:
            return maximum(a, b);
        case ScalarOp::minimum:
            return minimum(a, b);
        case ScalarOp::fmax:
            return std::fmax(a, b);
        case ScalarOp::fmin:
            return std::fmin(a, b);
        case ScalarOp::floor_div:
            return floor_div_real(a, b);
        case ScalarOp::trunc_div:
            return std::trunc(a / b);
        case ScalarOp::remainder:
            return remainder_real(a, b);
        case ScalarOp::fmod:
            return std::fmod(a, b);
        case ScalarOp::pow:
            return std::pow(a, b);
        case ScalarOp::atan2:
            return std::atan2(a, b);
        case ScalarOp::copysign:
            return std::copysign(a, b);
        default:
            return std::hypot(a, b);
    }
}

std::int64_t unary(ScalarOp op, std::int64_t x) noexcept {
    switch (op) {
        case ScalarOp::neg:
            return static_cast<std::int64_t>(0 - static_cast<Wide>(x));
        case ScalarOp::abs:
            return x < 0 ? static_cast<std::int64_t>(0 - static_cast<Wide>(x)) : x;
        case ScalarOp::sign:
            return (x > 0) - (x < 0);
        default:
            return ~x;
    }
}

std::int64_t binary(ScalarOp op, std::int64_t a, std::int64_t b, int width) noexcept {
    const auto wrap = [](Wide v) { return static_cast<std::int64_t>(v); };
    switch (op) {
        case ScalarOp::add:
            return wrap(static_cast<Wide>(a) + static_cast<Wide>(b));
        case ScalarOp::sub:
            return wrap(static_cast<Wide>(a) - static_cast<Wide>(b));
        case ScalarOp::mul:
            return wrap(static_cast<Wide>(a) * static_cast<Wide>(b));
        case ScalarOp::maximum:
        case ScalarOp::fmax:
            return std::max(a, b);
        case ScalarOp::minimum:
        case ScalarOp::fmin:
            return std::min(a, b);
        case ScalarOp::floor_div:
            return floor_div_wrapping(a, b);
        case ScalarOp::trunc_div:
            return b == 0 ? 0 : b == -1 ? wrap(0 - static_cast<Wide>(a)) : a / b;
        case ScalarOp::remainder:
            return b == 0 || b == -1 ? 0 : floor_mod(a, b);
        case ScalarOp::fmod:
            return b == 0 || b == -1 ? 0 : a % b;
        case ScalarOp::pow:
            return power(a, b);
        case ScalarOp::bit_and:
            return a & b;
        case ScalarOp::bit_or:
            return a | b;
        case ScalarOp::bit_xor:
            return a ^ b;
        case ScalarOp::shl:
            return b < 0 || b >= width ? 0 : wrap(static_cast<Wide>(a) << b);
        default:
            return b < 0 || b >= width ? (a < 0 ? -1 : 0) : a >> b;
    }
}

template <class T>
bool compared(ScalarOp op, T a, T b) noexcept {
    switch (op) {
        case ScalarOp::eq:
            return a == b;
        case ScalarOp::ne:
            return a != b;
        case ScalarOp::lt:
            return a < b;
        case ScalarOp::le:
            return a <= b;
        case ScalarOp::gt:
            return a > b;
        default:
            return a >= b;
    }
}

double rounded(double value, DType dtype) noexcept {
    if (dtype == DType::f64) return value;
    const auto single = static_cast<float>(value);
    if (dtype == DType::f16) return f16_to_float(float_to_f16(single));
    if (dtype == DType::bf16) return bf16_to_float(float_to_bf16(single));
    return single;
}

/// Takes a formula's operations one by one and carries each out at once, on a run of elements.
class Evaluator final : public ScalarEmitter {
  public:
    Evaluator(const EvalContext& context, const Dims& shape) : context_(context), shape_(shape) {}

    void begin(std::size_t first, std::size_t count) {
        first_ = first;
        count_ = count;
        columns_.clear();
    }
    Scalar load(const HostTensor& tensor) {
        HostTensor& out = make(tensor.dtype);
        for (std::size_t i = 0; i < count_; ++i) {
            const std::size_t from = broadcast_index(first_ + i, shape_, tensor.shape);
            if (out.is_real())
                out.reals[i] = tensor.reals[from];
            else
                out.ints[i] = tensor.ints[from];
        }
        return last();
    }
    const HostTensor& column(Scalar s) const noexcept { return columns_[s.id]; }
    const std::optional<Error>& error() const noexcept { return error_; }

    Scalar op(ScalarOp op, Scalar a) override {
        const bool test = kind_of(op) == OpKind::test;
        HostTensor& out = make(test ? DType::boolean : dtype(a));
        const HostTensor& x = columns_[a.id];
        for (std::size_t i = 0; i < count_; ++i) {
            if (test)
                out.ints[i] = op == ScalarOp::isnan ? std::isnan(x.reals[i]) : std::isinf(x.reals[i]);
            else if (x.is_real())
                out.reals[i] = unary(op, x.reals[i]);
            else
                out.set(i, unary(op, x.ints[i]));
        }
        return last();
    }
    Scalar op(ScalarOp op, Scalar a, Scalar b) override {
        const bool compare = kind_of(op) == OpKind::compare;
        HostTensor& out = make(compare ? DType::boolean : dtype(a));
        const HostTensor &x = columns_[a.id], &y = columns_[b.id];
        const int width = x.dtype == DType::i64 ? 64 : 32;  // of the register
        for (std::size_t i = 0; i < count_; ++i) {
            if (compare)
                out.ints[i] = x.is_real() ? compared(op, x.reals[i], y.reals[i]) : compared(op, x.ints[i], y.ints[i]);
            else if (x.is_real())
                out.reals[i] = binary(op, x.reals[i], y.reals[i]);
            else
                out.set(i, binary(op, x.ints[i], y.ints[i], width));
        }
        return last();
    }
    Scalar select(Scalar condition, Scalar a, Scalar b) override {
        HostTensor& out = make(dtype(a));
        for (std::size_t i = 0; i < count_; ++i) {
            const HostTensor& from = columns_[columns_[condition.id].ints[i] != 0 ? a.id : b.id];
            if (out.is_real())
                out.reals[i] = from.reals[i];
            else
                out.ints[i] = from.ints[i];
        }
        return last();
    }
    Scalar constant(double value, DType dtype) override {
        HostTensor& out = make(dtype);
        // A number beside a tensor of a half type is kept as f32, as PyTorch does.
        const double kept = is_float(dtype) ? rounded(value, dtype == DType::f64 ? dtype : DType::f32) : value;
        for (std::size_t i = 0; i < count_; ++i) out.set(i, kept);
        return last();
    }
    Scalar constant(std::int64_t value, DType dtype) override {
        if (is_float(dtype)) return constant(static_cast<double>(value), dtype);
        HostTensor& out = make(dtype);
        for (std::size_t i = 0; i < count_; ++i) out.set(i, value);
        return last();
    }
    Scalar size(const Sym& value) override {
        const auto number = context_.dims({value});
        if (!number) error_ = number.error();
        return constant(number ? (*number)[0] : std::int64_t{0}, DType::i64);
    }
    Scalar cast(Scalar a, DType dtype) override {
        if (this->dtype(a) == dtype) return a;
        HostTensor& out = make(dtype);
        const HostTensor& x = columns_[a.id];
        for (std::size_t i = 0; i < count_; ++i) {
            if (x.is_real())
                out.set(i, x.reals[i]);
            else if (out.is_real())
                // Registers hold f32 or f64: a large integer is rounded on its way into one.
                out.set(i, dtype == DType::f64 ? static_cast<double>(x.ints[i]) : static_cast<float>(x.ints[i]));
            else
                out.set(i, x.ints[i]);
        }
        return last();
    }
    Scalar round_to(Scalar a, DType dtype) override {
        if (this->dtype(a) == dtype) return a;
        const Scalar out = cast(a, dtype);
        // From a narrower floating dtype there is nothing to round, and what a model computed keeps its precision.
        if (is_float(dtype) &&
            (size_of(dtype) == 2 || size_of(dtype) < size_of(this->dtype(a)) || !is_float(this->dtype(a))))
            for (double& value : columns_[out.id].reals) value = rounded(value, dtype);
        return out;
    }
    DType dtype(Scalar a) const noexcept override { return columns_[a.id].dtype; }
    Scalar check_index(Scalar index, const Sym& size) override {
        const auto limit = context_.dims({size});
        if (!limit) {
            error_ = limit.error();
            return index;
        }
        for (const std::int64_t i : columns_[index.id].ints)
            if (!error_ && (i < 0 || i >= (*limit)[0]))
                error_ = Error{ErrorCode::index_out_of_range, cat("index: expected in [0, ", (*limit)[0], "), got ", i),
                               std::string(context_.node().place())};
        return index;
    }

  private:
    HostTensor& make(DType dtype) {
        HostTensor& out = columns_.emplace_back(HostTensor{dtype, {static_cast<std::int64_t>(count_)}, {}, {}});
        if (is_float(dtype))
            out.reals.resize(count_);
        else
            out.ints.resize(count_);
        return out;
    }
    Scalar last() const noexcept { return {static_cast<std::uint32_t>(columns_.size() - 1)}; }

    const EvalContext& context_;
    const Dims& shape_;
    std::size_t first_ = 0, count_ = 0;
    std::deque<HostTensor> columns_;  // grows while its elements are read
    std::optional<Error> error_;
};

}  // namespace

Result<std::vector<HostTensor>> eval_pointwise(const EvalContext& context) {
    const NodeView& node = context.node();
    std::vector<Relation> relations;
    const auto types = node.op().def.infer(InferContext(node, relations));
    if (!types) return std::unexpected(types.error());
    const auto shape = context.dims(types->front().shape);
    if (!shape) return std::unexpected(shape.error());
    auto out = context.make(types->front().dtype, *shape);
    if (!out) return std::unexpected(out.error());
    Evaluator evaluator(context, *shape);
    constexpr std::size_t run = 4096;  // elements at a time, which bounds the memory of intermediate values
    const auto count = static_cast<std::size_t>(out->numel());
    for (std::size_t first = 0; first < count; first += run) {
        evaluator.begin(first, std::min(run, count - first));
        std::vector<Scalar> operands(node.size());
        for (std::size_t i = 0; i < node.size(); ++i)
            if (node.is_tensor(i)) operands[i] = evaluator.load(context.tensor(i));
        const HostTensor& column = evaluator.column(node.op().def.emit(evaluator, node, operands));
        if (evaluator.error()) return std::unexpected(*evaluator.error());
        for (std::size_t i = 0; i < column.reals.size(); ++i) out->set(first + i, column.reals[i]);
        for (std::size_t i = 0; i < column.ints.size(); ++i) out->set(first + i, column.ints[i]);
    }
    return one(std::move(*out));
}

}  // namespace lyo::ops
