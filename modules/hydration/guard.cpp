module lyo.hydration;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :guard;

namespace lyo {
namespace {

/// coefficient * symbol + rest, where an expression has that form.
struct Linear {
    std::optional<std::uint32_t> symbol;
    std::int64_t coefficient = 0, rest = 0;
};

std::optional<Linear> combine(ExprOp op, const std::optional<Linear>& a, const std::optional<Linear>& b) {
    if (!a || !b || (a->symbol && b->symbol)) return std::nullopt;
    const Linear& with = a->symbol ? *a : *b;
    const std::int64_t other = a->symbol ? b->rest : a->rest;
    std::optional<std::int64_t> coefficient = with.coefficient, rest;
    if (op == ExprOp::add) {
        rest = checked_add(with.rest, other);
    } else {
        coefficient = checked_mul(with.coefficient, other);
        rest = checked_mul(with.rest, other);
    }
    if (!coefficient || !rest) return std::nullopt;
    return Linear{with.symbol, *coefficient, *rest};
}

/// The forms of all entries, each made from those before it: as a tree, a table of n entries may have 2^n nodes.
std::vector<std::optional<Linear>> linear_forms(std::span<const Expr> exprs) {
    std::vector<std::optional<Linear>> forms;
    forms.reserve(exprs.size());
    for (const Expr& e : exprs) {
        std::optional<Linear> form;
        if (e.op == ExprOp::constant) form = Linear{std::nullopt, 0, e.value};
        if (e.op == ExprOp::symbol) form = Linear{e.a, 1, 0};
        if (e.op == ExprOp::add || e.op == ExprOp::mul) form = combine(e.op, forms[e.a], forms[e.b]);
        forms.push_back(form);
    }
    return forms;
}

}  // namespace

Result<Guards> Guards::make(const FunctionSpec& spec, Device device) {
    Guards out;
    out.spec_ = &spec;
    out.device_ = device;
    std::vector<bool> solved(spec.symbols.size());
    const std::vector<std::optional<Linear>> forms = linear_forms(spec.exprs);
    for (const TensorSpec& input : spec.inputs) {
        Input& to = out.inputs_.emplace_back();
        to.dtype = input.dtype;
        for (const std::uint32_t e : input.shape) {
            Dimension& d = to.dimensions.emplace_back();
            const auto& form = forms[e];
            if (form && !form->symbol) {
                d.value = form->rest;
            } else if (form && form->coefficient > 0 && !solved[*form->symbol]) {
                d = {Dimension::Kind::solve, 0, *form->symbol, form->coefficient, form->rest};
                solved[*form->symbol] = true;
            } else {
                d.kind = Dimension::Kind::expression;
            }
        }
    }
    for (std::size_t i = 0; i < solved.size(); ++i)
        if (!solved[i])
            return fail(ErrorCode::bad_value, spec.name, "no input's size determines the symbol ",
                        spec.symbols[i].name);
    return out;
}

std::unexpected<Error> Guards::refuse(std::size_t input, std::string_view property, std::string_view expected,
                                      std::string_view got) const {
    return mismatch(ErrorCode::guard_failed, cat("input ", input, " (", spec_->inputs[input].name, ")"), property,
                    expected, got);
}

Result<> Guards::check(std::span<const Tensor> inputs, std::vector<std::int64_t>& symbols) const {
    if (inputs.size() != inputs_.size())
        return mismatch(ErrorCode::guard_failed, spec_->name, "inputs", inputs_.size(), inputs.size());
    symbols.assign(spec_->symbols.size(), 0);
    bool symbolic = !symbols.empty() || !spec_->guards.empty();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Tensor& tensor = inputs[i];
        const Input& wanted = inputs_[i];
        if (tensor.dtype() != wanted.dtype)
            return refuse(i, "dtype", to_string(wanted.dtype), to_string(tensor.dtype()));
        if (tensor.device() != device_)
            return mismatch(ErrorCode::wrong_device, cat("input ", i, " (", spec_->inputs[i].name, ")"), "device",
                            device_.to_string(), tensor.device().to_string());
        if (tensor.rank() != wanted.dimensions.size())
            return refuse(i, "rank", std::to_string(wanted.dimensions.size()), std::to_string(tensor.rank()));
        bool empty = false;
        for (std::size_t d = 0; d < wanted.dimensions.size(); ++d) {
            const std::int64_t size = tensor.shape()[d];
            const Dimension& dimension = wanted.dimensions[d];
            const auto property = [&] { return cat("size of dimension ", d); };
            empty = empty || size == 0;
            switch (dimension.kind) {
                case Dimension::Kind::constant:
                    if (size != dimension.value)
                        return refuse(i, property(), std::to_string(dimension.value), std::to_string(size));
                    break;
                case Dimension::Kind::solve: {
                    const auto rest = checked_sub(size, dimension.rest);
                    if (!rest || *rest % dimension.coefficient != 0)
                        return refuse(i, property(),
                                      cat(dimension.coefficient, "*", spec_->symbols[dimension.symbol].name, " + ",
                                          dimension.rest),
                                      std::to_string(size));
                    const std::int64_t value = *rest / dimension.coefficient;
                    const Symbol& symbol = spec_->symbols[dimension.symbol];
                    if (value < symbol.min || value > symbol.max)
                        return refuse(i, property(), cat(symbol.name, " in [", symbol.min, ", ", symbol.max, "]"),
                                      std::to_string(size));
                    symbols[dimension.symbol] = value;
                    break;
                }
                case Dimension::Kind::expression:
                    symbolic = true;
                    break;
            }
        }
        if (tensor.data() == nullptr && !empty) return refuse(i, "data", "an address", "null");
    }
    return symbolic ? check_symbols(inputs, symbols) : Result<>();
}

Result<> Guards::check_symbols(std::span<const Tensor> inputs, std::span<const std::int64_t> symbols) const {
    std::array<std::int64_t, 64> few;
    std::vector<std::int64_t> many(spec_->exprs.size() > few.size() ? spec_->exprs.size() : 0);
    const std::span<std::int64_t> values =
        many.empty() ? std::span(few).first(spec_->exprs.size()) : std::span<std::int64_t>(many);
    if (auto ok = evaluate(spec_->exprs, symbols, values); !ok)
        return fail(ErrorCode::guard_failed, spec_->name, "sizes without a value: ", ok.error().to_string());
    for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t d = 0; d < inputs[i].rank(); ++d)
            if (const std::int64_t expected = values[spec_->inputs[i].shape[d]]; expected != inputs[i].shape()[d])
                return refuse(i, cat("size of dimension ", d), std::to_string(expected),
                              std::to_string(inputs[i].shape()[d]));
    for (std::size_t g = 0; g < spec_->guards.size(); ++g) {
        const Guard& guard = spec_->guards[g];
        const std::int64_t left = values[guard.left], right = values[guard.right];
        const bool holds = guard.kind == GuardKind::equal ? left == right : left <= right;
        if (!holds)
            return mismatch(ErrorCode::guard_failed, spec_->name, cat("guard ", g, " between sizes"),
                            cat(left, guard.kind == GuardKind::equal ? " == " : " <= "), right);
    }
    return {};
}

}  // namespace lyo
