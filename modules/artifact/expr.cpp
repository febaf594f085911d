module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :state;

namespace lyo {

std::optional<std::uint64_t> byte_size(const Constant& constant) noexcept {
    std::uint64_t size = size_of(constant.dtype);
    bool zero = false;
    for (const std::uint64_t d : constant.shape) {
        zero = zero || d == 0;
        const auto next = checked_mul(size, std::max<std::uint64_t>(d, 1));
        if (!next || *next > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
        size = *next;
    }
    return zero ? 0 : size;
}

Result<> evaluate(std::span<const Expr> exprs, std::span<const std::int64_t> symbols, std::span<std::int64_t> out) {
    for (std::size_t i = 0; i < exprs.size(); ++i) {
        const Expr& e = exprs[i];
        std::optional<std::int64_t> value;
        const auto a = [&] { return out[e.a]; };
        const auto b = [&] { return out[e.b]; };
        switch (e.op) {
            case ExprOp::constant:
                value = e.value;
                break;
            case ExprOp::symbol:
                value = symbols[e.a];
                break;
            case ExprOp::add:
                value = checked_add(a(), b());
                break;
            case ExprOp::mul:
                value = checked_mul(a(), b());
                break;
            case ExprOp::max:
                value = std::max(a(), b());
                break;
            case ExprOp::min:
                value = std::min(a(), b());
                break;
            case ExprOp::floor_div:
            case ExprOp::mod:
                if (b() == 0) break;
                if (b() == -1)
                    value = e.op == ExprOp::mod ? std::optional<std::int64_t>(0) : checked_sub<std::int64_t>(0, a());
                else
                    value = e.op == ExprOp::mod ? floor_mod(a(), b()) : floor_div(a(), b());
                break;
        }
        if (!value)
            return fail(ErrorCode::bad_value, cat("exprs[", i, "]"),
                        "no value: ", expr_op_names[static_cast<std::size_t>(e.op)], " of ", a(), " and ", b());
        out[i] = *value;
    }
    return {};
}

Result<> validate_exprs(std::span<const Expr> exprs, std::size_t symbols) {
    if (exprs.size() > format::max_exprs)
        return mismatch(ErrorCode::bad_value, "exprs", "count", cat("at most ", format::max_exprs), exprs.size());
    for (std::size_t i = 0; i < exprs.size(); ++i) {
        const Expr& e = exprs[i];
        const auto where = [&] { return cat("exprs[", i, "]"); };
        if (e.op == ExprOp::constant) {
            if (e.a != 0 || e.b != 0) return fail(ErrorCode::bad_value, where(), "a constant has no operands");
        } else if (e.op == ExprOp::symbol) {
            if (e.a >= symbols) return mismatch(ErrorCode::bad_value, where(), "symbol", cat("below ", symbols), e.a);
            if (e.b != 0 || e.value != 0) return fail(ErrorCode::bad_value, where(), "a symbol has one field");
        } else {
            if (e.a >= i || e.b >= i)
                return mismatch(ErrorCode::bad_value, where(), "operands", cat("below ", i), std::max(e.a, e.b));
            if (e.value != 0) return fail(ErrorCode::bad_value, where(), "an operation has no value");
        }
    }
    return {};
}

}  // namespace lyo
