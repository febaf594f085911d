module lyo.importer;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import :expr;

namespace lyo {
namespace {

constexpr std::size_t max_text = 4096;
constexpr std::size_t max_depth = 64;
constexpr std::size_t max_terms = 1024;

std::size_t terms(const Sym& s) noexcept { return s.kind() == Sym::Kind::sum ? s.operands().size() : 1; }

/// What a piece of text stands for: a size, relations, a quoted name, or an option like positive=True.
struct Option {};
using Term = std::variant<Sym, std::vector<Relation>, std::string_view, Option>;

bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// A recursive descent whose depth is counted: the text is a stranger's.
class Parser {
  public:
    Parser(std::string_view text, const SizeOf* size_of) noexcept : text_(text), rest_(text), size_of_(size_of) {}

    Result<Term> all() {
        if (text_.size() > max_text) return bad("it is longer than ", max_text, " characters");
        auto out = condition();
        if (out && !skip().empty()) return bad("there is more after it: ", rest_.substr(0, 20));
        return out;
    }
    template <class... Parts>
    std::unexpected<Error> bad(const Parts&... what) const {
        return fail(ErrorCode::bad_model, shown(), what...);
    }
    template <class... Parts>
    std::unexpected<Error> unsupported(const Parts&... what) const {
        return fail(ErrorCode::unsupported_argument, shown(), what...);
    }

  private:
    std::string shown() const { return cat("expression ", text_.substr(0, 120), text_.size() > 120 ? "..." : ""); }
    std::string_view skip() noexcept {
        while (rest_.starts_with(' ')) rest_.remove_prefix(1);
        return rest_;
    }
    bool take(std::string_view token) noexcept {
        if (!skip().starts_with(token)) return false;
        rest_.remove_prefix(token.size());
        return true;
    }
    std::string_view word() noexcept {
        skip();
        std::size_t n = 0;
        while (n < rest_.size() && is_word(rest_[n])) ++n;
        const std::string_view out = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return out;
    }
    bool take_word(std::string_view wanted) noexcept {
        const std::string_view before = rest_;
        if (word() == wanted) return true;
        rest_ = before;
        return false;
    }

    Result<Term> condition() {
        if (++depth_ > max_depth) return unsupported("it nests deeper than ", max_depth);
        auto out = comparison();
        while (out) {
            if (take_word("or") || take("|")) return unsupported("alternatives are not relations");
            if (!take_word("and") && !take("&")) break;
            auto right = comparison();
            if (!right) return right;
            out = both({std::move(*out), std::move(*right)});
        }
        --depth_;
        return out;
    }
    Result<Term> comparison() {
        auto left = sum();
        std::vector<Relation> chain;
        bool compared = false;
        while (left) {
            std::string_view found;
            for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
                if (found.empty() && take(op)) found = op;
            if (found.empty()) break;
            compared = true;
            auto right = sum();
            if (!right) return right;
            auto relation = compare(found, *left, *right);
            if (!relation) return std::unexpected(relation.error());
            chain.push_back(std::move(*relation));
            left = std::move(right);
        }
        if (!left || !compared) return left;
        return chain;
    }
    Result<Term> sum() {
        auto out = product();
        while (out) {
            const bool plus = take("+");
            if (!plus && !take("-")) break;
            auto right = product();
            if (!right) return right;
            out = fold(plus ? "Add" : "-", {std::move(*out), std::move(*right)});
        }
        return out;
    }
    Result<Term> product() {
        auto out = power();
        while (out) {
            std::string_view name;
            if (skip().starts_with("**")) break;
            if (take("*")) name = "Mul";
            if (name.empty() && take("//")) name = "FloorDiv";
            if (name.empty() && take("%")) name = "Mod";
            if (name.empty() && take("/")) return unsupported("true division is not a size");
            if (name.empty()) break;
            auto right = power();
            if (!right) return right;
            out = fold(name, {std::move(*out), std::move(*right)});
        }
        return out;
    }
    Result<Term> power() {
        if (++depth_ > max_depth) return unsupported("it nests deeper than ", max_depth);
        Result<Term> out;
        if (take("-")) {
            out = power();
            if (out) out = fold("Mul", {Term(Sym(-1)), std::move(*out)});
        } else {
            out = atom();
            if (out && take("**")) {
                auto exponent = power();
                if (!exponent) return exponent;
                out = fold("Pow", {std::move(*out), std::move(*exponent)});
            }
        }
        --depth_;
        return out;
    }
    Result<Term> atom() {
        if (skip().empty()) return bad("it ends too early");
        if (take("(")) {
            auto out = condition();
            if (out && !take(")")) return bad("a parenthesis is not closed");
            return out;
        }
        if (rest_.front() == '\'' || rest_.front() == '"') return quoted();
        const std::string_view name = word();
        if (name.empty()) return bad("unexpected ", rest_.substr(0, 20));
        if (name.front() >= '0' && name.front() <= '9') return number(name);
        if (name == "L" && take("[")) return input_size();
        if (name == "not") return unsupported("a negation is not a relation");
        if (take("(")) return call(name);
        if (take("=")) {  // an option of Symbol; "==" after a name is a comparison
            if (!take("=")) {
                word();
                return Option{};
            }
            rest_ = text_.substr(static_cast<std::size_t>(rest_.data() - text_.data()) - 2);
        }
        return symbol(name);
    }
    Result<Term> quoted() {
        const char quote = rest_.front();
        const auto end = rest_.find(quote, 1);
        if (end == std::string_view::npos) return bad("a string is not closed");
        const std::string_view out = rest_.substr(1, end - 1);
        rest_.remove_prefix(end + 1);
        return out;
    }
    Result<Term> number(std::string_view digits) const {
        std::int64_t value = 0;
        const char* last = digits.data() + digits.size();
        const auto [end, error] = std::from_chars(digits.data(), last, value);
        if (error != std::errc{} || end != last) return bad(digits, " is not a 64-bit integer");
        return Sym(value);
    }
    /// Symbols are told apart by their text, so a name must not look like an expression.
    Result<Term> symbol(std::string_view name) const {
        if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), is_word) ||
            (name.front() >= '0' && name.front() <= '9'))
            return bad("a symbol has a name that is no identifier");
        return Sym::symbol(name);
    }
    /// After "L[": 'x'].size()[0]
    Result<Term> input_size() {
        if (skip().empty() || (rest_.front() != '\'' && rest_.front() != '"')) return unsupported("an unknown place");
        auto name = quoted();
        if (!name) return name;
        if (!take("].size()[")) return unsupported("only sizes of inputs can be compared");
        auto dim = number(word());
        if (!dim) return dim;
        if (!take("]")) return bad("a bracket is not closed");
        std::optional<Sym> size;
        if (size_of_ != nullptr)
            size = (*size_of_)(*std::get_if<std::string_view>(&*name), std::get_if<Sym>(&*dim)->value());
        if (!size) return unsupported("it names no dimension of an input");
        return *size;
    }
    Result<Term> call(std::string_view name) {
        if (++depth_ > max_depth) return unsupported("it nests deeper than ", max_depth);
        std::vector<Term> arguments;
        while (!take(")")) {
            if (!arguments.empty() && !take(","))
                return bad("a comma or parenthesis is missing after an argument of ", name);
            auto next = condition();
            if (!next) return next;
            arguments.push_back(std::move(*next));
        }
        --depth_;
        std::erase_if(arguments, [](const Term& t) { return std::holds_alternative<Option>(t); });
        return apply(name, std::move(arguments));
    }

    Result<Term> apply(std::string_view name, std::vector<Term> arguments) {
        if (name == "Symbol" || name == "Dummy") {
            const auto* text = arguments.size() == 1 ? std::get_if<std::string_view>(&arguments[0]) : nullptr;
            if (text == nullptr) return bad("a Symbol needs a name");
            return symbol(*text);
        }
        if (name == "And") return both(std::move(arguments));
        static constexpr std::pair<std::string_view, std::string_view> comparisons[] = {{"Equality", "=="},
                                                                                        {"Eq", "=="},
                                                                                        {"Unequality", "!="},
                                                                                        {"Ne", "!="},
                                                                                        {"LessThan", "<="},
                                                                                        {"Le", "<="},
                                                                                        {"GreaterThan", ">="},
                                                                                        {"Ge", ">="},
                                                                                        {"Lt", "<"},
                                                                                        {"StrictLessThan", "<"},
                                                                                        {"StrictGreaterThan", ">"},
                                                                                        {"Gt", ">"}};
        for (const auto& [function, op] : comparisons) {
            if (function != name) continue;
            if (arguments.size() != 2) return bad(name, " needs two operands");
            auto relation = compare(op, arguments[0], arguments[1]);
            if (!relation) return std::unexpected(relation.error());
            std::vector<Relation> one;
            one.push_back(std::move(*relation));
            return Term(std::move(one));
        }
        return fold(name, std::move(arguments));
    }

    Result<Relation> compare(std::string_view op, const Term& left, const Term& right) const {
        const Sym* a = std::get_if<Sym>(&left);
        const Sym* b = std::get_if<Sym>(&right);
        if (a == nullptr || b == nullptr) return unsupported("only sizes can be compared");
        if (op == "==") return Relation{Relation::Kind::equal, *a, *b};
        if (op == "<=") return Relation{Relation::Kind::at_most, *a, *b};
        if (op == ">=") return Relation{Relation::Kind::at_most, *b, *a};
        if (op == "<") return Relation{Relation::Kind::at_most, *a + Sym(1), *b};
        if (op == ">") return Relation{Relation::Kind::at_most, *b + Sym(1), *a};
        return unsupported("an inequality is not a relation");
    }
    Result<Term> both(std::vector<Term> conditions) const {
        std::vector<Relation> out;
        for (Term& condition : conditions) {
            auto* relations = std::get_if<std::vector<Relation>>(&condition);
            if (relations == nullptr) return unsupported("only relations can be joined");
            out.insert(out.end(), relations->begin(), relations->end());
        }
        return out;
    }

    /// A function of sizes, applied from the left.
    Result<Term> fold(std::string_view name, std::vector<Term> arguments) const {
        std::vector<Sym> sizes;
        for (const Term& t : arguments) {
            const Sym* s = std::get_if<Sym>(&t);
            if (s == nullptr) return unsupported("an operand of ", name, " is no size");
            sizes.push_back(*s);
        }
        const std::size_t n = sizes.size();
        if (n == 1 && (name == "Integer" || name == "Identity")) return sizes[0];
        if (n == 3 && name == "ModularIndexing") {
            auto quotient = binary("FloorDiv", sizes[0], sizes[1]);
            if (!quotient) return std::unexpected(quotient.error());
            auto remainder = binary("Mod", *quotient, sizes[2]);
            if (!remainder) return std::unexpected(remainder.error());
            return Term(std::move(*remainder));
        }
        const bool any_number = name == "Add" || name == "Mul" || name == "Max" || name == "Min";
        if (n == 0 || (!any_number && n != 2))
            return unsupported("lyo has no size function ", name, " of ", n, " operands");
        Sym out = sizes[0];
        for (std::size_t i = 1; i < n; ++i) {
            auto next = binary(name, out, sizes[i]);
            if (!next) return std::unexpected(next.error());
            out = std::move(*next);
        }
        return out;
    }
    Result<Sym> binary(std::string_view name, const Sym& a, const Sym& b) const {
        if (name == "Add") return a + b;
        if (name == "-") return a - b;
        if (name == "Max") return max(a, b);
        if (name == "Min") return min(a, b);
        if (name == "Mul") {
            if (terms(a) * terms(b) > max_terms) return unsupported("it is too large when multiplied out");
            return a * b;
        }
        if (b == Sym(0) && (name == "FloorDiv" || name == "CleanDiv" || name == "Mod" || name == "PythonMod"))
            return bad("it divides by zero");
        if (name == "FloorDiv" || name == "CleanDiv") return floor_div(a, b);
        if (name == "Mod" || name == "PythonMod") return mod(a, b);
        if (name == "Pow" || name == "PowByNatural") {
            if (!b.is_constant() || b.value() < 0 || b.value() > 8)
                return unsupported("an exponent must be a constant from 0 to 8");
            Sym out = 1;
            for (std::int64_t i = 0; i < b.value(); ++i) {
                if (terms(out) * terms(a) > max_terms) return unsupported("it is too large when multiplied out");
                out = out * a;
            }
            return out;
        }
        return unsupported("lyo has no size function ", name);
    }

    std::string_view text_, rest_;
    const SizeOf* size_of_;
    std::size_t depth_ = 0;
};

}  // namespace

Result<Sym> parse_size(std::string_view text) {
    Parser parser(text, nullptr);
    auto term = parser.all();
    if (!term) return std::unexpected(term.error());
    const Sym* size = std::get_if<Sym>(&*term);
    if (size == nullptr) return parser.bad("it is not a size");
    return *size;
}

Result<std::vector<Relation>> parse_condition(std::string_view text, const SizeOf& size_of) {
    Parser parser(text, &size_of);
    auto term = parser.all();
    if (!term) return std::unexpected(term.error());
    auto* relations = std::get_if<std::vector<Relation>>(&*term);
    if (relations == nullptr) return parser.unsupported("it is not a relation");
    return std::move(*relations);
}

bool is_tractable(const Shape& shape) {
    std::size_t product = 1;
    for (const Sym& size : shape) {
        product *= terms(size);
        if (product > max_terms || (!size.is_constant() && size.to_string().size() > max_text)) return false;
    }
    return true;
}

}  // namespace lyo
