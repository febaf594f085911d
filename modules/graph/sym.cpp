module lyo.graph;

import lyo.prelude;
import lyo.base;

namespace lyo {

struct Sym::Node {
    Kind kind;
    std::vector<Sym> operands;
    std::string name;
    std::string text;  // what is compared and printed
};

namespace {

std::int64_t wrap_add(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrap_mul(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// coefficient * product of factors; factors are sorted by text and none is a constant, sum or product.
struct Term {
    std::int64_t coefficient = 1;
    std::vector<Sym> factors;
};

std::string factor_key(const std::vector<Sym>& factors) {
    std::string key;
    for (const Sym& f : factors) key += f.to_string() + "*";
    return key;
}

std::vector<Term> terms_of(const Sym& s) {
    if (s.is_constant()) return s.value() == 0 ? std::vector<Term>{} : std::vector<Term>{{s.value(), {}}};
    if (s.kind() == Sym::Kind::sum) {
        std::vector<Term> out;
        for (const Sym& operand : s.operands()) {
            auto more = terms_of(operand);
            out.insert(out.end(), more.begin(), more.end());
        }
        return out;
    }
    if (s.kind() == Sym::Kind::product) {
        Term term;
        for (const Sym& operand : s.operands()) {
            if (operand.is_constant())
                term.coefficient = operand.value();
            else
                term.factors.push_back(operand);
        }
        return {term};
    }
    return {Term{1, {s}}};
}

std::string parenthesized(const Sym& s) {
    const bool atom = s.is_constant() ? s.value() >= 0 : s.kind() == Sym::Kind::symbol || s.kind() >= Sym::Kind::max;
    return atom ? s.to_string() : cat("(", s.to_string(), ")");
}

}  // namespace

/// Builds the normal forms: sums of products with merged, sorted terms.
struct SymAlgebra {
    static Sym product(const Term& term) {
        if (term.coefficient == 0) return 0;
        if (term.factors.empty()) return term.coefficient;
        if (term.coefficient == 1 && term.factors.size() == 1) return term.factors[0];
        std::vector<Sym> operands;
        if (term.coefficient != 1) operands.emplace_back(term.coefficient);
        operands.insert(operands.end(), term.factors.begin(), term.factors.end());
        return Sym::make(Sym::Kind::product, std::move(operands));
    }
    static Sym sum(const std::vector<Term>& terms) {
        std::map<std::string, Term> merged;
        std::int64_t constant = 0;
        for (const Term& term : terms) {
            if (term.factors.empty()) {
                constant = wrap_add(constant, term.coefficient);
                continue;
            }
            auto [at, fresh] = merged.try_emplace(factor_key(term.factors), term);
            if (!fresh) at->second.coefficient = wrap_add(at->second.coefficient, term.coefficient);
        }
        std::vector<Sym> operands;
        for (const auto& [key, term] : merged)
            if (term.coefficient != 0) operands.push_back(product(term));
        if (operands.empty()) return constant;
        if (constant != 0) operands.emplace_back(constant);
        if (operands.size() == 1) return operands[0];
        return Sym::make(Sym::Kind::sum, std::move(operands));
    }
    /// a / b when it is exact by form; nullopt otherwise.
    static std::optional<Sym> exact_quotient(const Sym& a, const Sym& b) {
        const auto divisor = terms_of(b);
        if (divisor.size() != 1) return a == b ? std::optional<Sym>(1) : std::nullopt;
        std::vector<Term> out;
        for (Term term : terms_of(a)) {
            if (divisor[0].coefficient == -1 || term.coefficient % divisor[0].coefficient != 0) return std::nullopt;
            term.coefficient /= divisor[0].coefficient;
            for (const Sym& factor : divisor[0].factors) {
                const auto at = std::find(term.factors.begin(), term.factors.end(), factor);
                if (at == term.factors.end()) return std::nullopt;
                term.factors.erase(at);
            }
            out.push_back(std::move(term));
        }
        return sum(out);
    }
    static Sym binary(Sym::Kind kind, const Sym& a, const Sym& b) { return Sym::make(kind, {a, b}); }
};

Sym Sym::make(Kind kind, std::vector<Sym> operands, std::string name) {
    std::string text;
    const auto joined = [&](std::string_view separator, auto print) {
        for (const Sym& operand : operands) {
            if (!text.empty()) text += separator;
            text += print(operand);
        }
    };
    switch (kind) {
        case Kind::symbol:
            text = name;
            break;
        case Kind::sum:
            joined(" + ", [](const Sym& s) { return s.to_string(); });
            break;
        case Kind::product:
            joined("*", parenthesized);
            break;
        case Kind::floor_div:
            joined(" // ", parenthesized);
            break;
        case Kind::mod:
            joined(" % ", parenthesized);
            break;
        case Kind::max:
        case Kind::min:
            text =
                cat(kind == Kind::max ? "max(" : "min(", operands[0].to_string(), ", ", operands[1].to_string(), ")");
            break;
        case Kind::constant:
            break;
    }
    Sym out;
    out.node_ = std::make_shared<const Node>(Node{kind, std::move(operands), std::move(name), std::move(text)});
    return out;
}

Sym Sym::symbol(std::string_view name) { return make(Kind::symbol, {}, std::string(name)); }
Sym::Kind Sym::kind() const noexcept { return node_ ? node_->kind : Kind::constant; }
const std::string& Sym::name() const noexcept {
    static const std::string none;
    return node_ ? node_->name : none;
}
std::span<const Sym> Sym::operands() const noexcept {
    return node_ ? std::span<const Sym>(node_->operands) : std::span<const Sym>();
}
std::string Sym::to_string() const { return node_ ? node_->text : std::to_string(value_); }

bool operator==(const Sym& a, const Sym& b) noexcept {
    if (a.is_constant() || b.is_constant()) return a.is_constant() && b.is_constant() && a.value_ == b.value_;
    return a.node_ == b.node_ || a.node_->text == b.node_->text;
}

Sym operator+(const Sym& a, const Sym& b) {
    auto terms = terms_of(a);
    const auto more = terms_of(b);
    terms.insert(terms.end(), more.begin(), more.end());
    return SymAlgebra::sum(terms);
}
Sym operator-(const Sym& a, const Sym& b) { return a + b * Sym(-1); }
Sym operator*(const Sym& a, const Sym& b) {
    std::vector<Term> out;
    for (const Term& x : terms_of(a)) {
        for (const Term& y : terms_of(b)) {
            Term term{wrap_mul(x.coefficient, y.coefficient), x.factors};
            term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
            std::sort(term.factors.begin(), term.factors.end(),
                      [](const Sym& p, const Sym& q) { return p.to_string() < q.to_string(); });
            out.push_back(std::move(term));
        }
    }
    return SymAlgebra::sum(out);
}

Sym floor_div(const Sym& a, const Sym& b) {
    if (b.is_constant() && b.value() == 0) return 0;
    if (a.is_constant() && b.is_constant())
        return b.value() == -1 ? wrap_mul(a.value(), -1) : lyo::floor_div(a.value(), b.value());
    if (auto exact = SymAlgebra::exact_quotient(a, b)) return *exact;
    return SymAlgebra::binary(Sym::Kind::floor_div, a, b);
}

Sym mod(const Sym& a, const Sym& b) {
    if (b.is_constant() && (b.value() == 0 || b.value() == 1 || b.value() == -1)) return 0;
    if (a.is_constant() && b.is_constant()) return lyo::floor_mod(a.value(), b.value());
    if (SymAlgebra::exact_quotient(a, b)) return 0;
    return SymAlgebra::binary(Sym::Kind::mod, a, b);
}

Sym max(const Sym& a, const Sym& b) {
    if (a == b) return a;
    if (a.is_constant() && b.is_constant()) return std::max(a.value(), b.value());
    return a.to_string() < b.to_string() ? SymAlgebra::binary(Sym::Kind::max, a, b)
                                         : SymAlgebra::binary(Sym::Kind::max, b, a);
}

Sym min(const Sym& a, const Sym& b) {
    if (a == b) return a;
    if (a.is_constant() && b.is_constant()) return std::min(a.value(), b.value());
    return a.to_string() < b.to_string() ? SymAlgebra::binary(Sym::Kind::min, a, b)
                                         : SymAlgebra::binary(Sym::Kind::min, b, a);
}

Result<std::int64_t> Sym::evaluate(const std::map<std::string, std::int64_t>& symbols) const {
    if (is_constant()) return value_;
    if (kind() == Kind::symbol) {
        const auto at = symbols.find(name());
        if (at == symbols.end()) return fail(ErrorCode::invalid_argument, "", "symbol ", name(), " has no value");
        return at->second;
    }
    std::optional<std::int64_t> out;
    for (const Sym& operand : operands()) {
        const auto next = operand.evaluate(symbols);
        if (!next) return next;
        if (&operand == operands().data()) {
            out = *next;
            continue;
        }
        switch (kind()) {
            case Kind::sum:
                out = checked_add(*out, *next);
                break;
            case Kind::product:
                out = checked_mul(*out, *next);
                break;
            case Kind::max:
                out = std::max(*out, *next);
                break;
            case Kind::min:
                out = std::min(*out, *next);
                break;
            default:
                if (*next == 0) return fail(ErrorCode::invalid_argument, "", to_string(), " divides by zero");
                if (*next == -1)
                    out = kind() == Kind::mod ? std::optional<std::int64_t>(0) : checked_sub<std::int64_t>(0, *out);
                else
                    out = kind() == Kind::mod ? lyo::floor_mod(*out, *next) : lyo::floor_div(*out, *next);
        }
        if (!out) return fail(ErrorCode::invalid_argument, "", to_string(), " does not fit in 64 bits");
    }
    return *out;
}

void Sym::collect(std::set<std::string>& names) const {
    if (kind() == Kind::symbol) names.insert(name());
    for (const Sym& operand : operands()) operand.collect(names);
}

std::string to_string(const Shape& shape) {
    std::string out = "[";
    for (const Sym& s : shape) out += (out.size() > 1 ? ", " : "") + s.to_string();
    return out + "]";
}
Dims constant_dims(const Shape& shape) {
    Dims dims;
    for (const Sym& s : shape) dims.push_back(s.is_constant() ? s.value() : -1);
    return dims;
}
bool is_constant(const Shape& shape) noexcept {
    return std::all_of(shape.begin(), shape.end(), [](const Sym& s) { return s.is_constant(); });
}
Shape to_shape(std::span<const std::int64_t> dims) { return Shape(dims.begin(), dims.end()); }
Sym element_count(const Shape& shape) {
    Sym out = 1;
    for (const Sym& s : shape) out = out * s;
    return out;
}

}  // namespace lyo
