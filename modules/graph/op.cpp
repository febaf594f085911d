module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;

namespace lyo {
namespace {

std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

/// Splits at commas outside brackets and quotes.
std::vector<std::string_view> split_list(std::string_view text) {
    std::vector<std::string_view> out;
    int depth = 0;
    bool quoted = false;
    std::size_t start = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\'') quoted = !quoted;
        if (quoted) continue;
        if (c == '[' || c == '(') ++depth;
        if (c == ']' || c == ')') --depth;
        if (c == ',' && depth == 0) {
            out.push_back(trimmed(text.substr(start, i - start)));
            start = i + 1;
        }
    }
    if (!trimmed(text.substr(start)).empty()) out.push_back(trimmed(text.substr(start)));
    return out;
}

/// "Tensor(a!)" -> "Tensor", "SymInt[1]" -> "int[]", "ScalarType?" stays.
std::string plain_type(std::string_view text) {
    std::string out;
    int round = 0;
    bool square = false;
    for (const char c : text) {
        if (c == '(') ++round;
        if (c == ']') square = false;
        if (round == 0 && !square) out += c;
        if (c == ')') --round;
        if (c == '[') square = true;
    }
    if (const auto at = out.find("SymInt"); at != std::string::npos) out.replace(at, 6, "int");
    return out;
}

bool is_number_start(char c) noexcept { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.'; }

Argument read_default(std::string_view text, std::string_view type) {
    if (text == "True") return true;
    if (text == "False") return false;
    if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"'))
        return std::string(text.substr(1, text.size() - 2));
    if (text.size() >= 2 && text.front() == '[') {
        std::vector<Sym> ints;
        std::vector<bool> bools;
        for (const std::string_view item : split_list(text.substr(1, text.size() - 2))) {
            const Argument value = read_default(item, "int");
            if (const auto* b = std::get_if<bool>(&value)) bools.push_back(*b);
            if (const auto* s = std::get_if<Sym>(&value)) ints.push_back(*s);
        }
        if (!bools.empty()) return bools;
        return ints;
    }
    if (!text.empty() && is_number_start(text.front())) {
        std::int64_t integer = 0;
        const char* last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), last, integer);
        if (error == std::errc{} && end == last) {
            if (type == "int[]") return std::vector<Sym>{Sym(integer)};
            return Sym(integer);
        }
        return std::strtod(std::string(text).c_str(), nullptr);
    }
    return std::monostate{};  // None, and enumerators of parameters that lyo ignores
}

Param read_param(std::string_view text, bool keyword_only) {
    Param param;
    param.keyword_only = keyword_only;
    if (const auto equals = text.find('='); equals != std::string_view::npos) {
        param.default_value.emplace();
        const std::string_view value = text.substr(equals + 1);
        text = trimmed(text.substr(0, equals));
        const auto space = text.rfind(' ');
        param.type = plain_type(trimmed(text.substr(0, space)));
        param.name = text.substr(space + 1);
        param.default_value = read_default(trimmed(value), param.type);
        return param;
    }
    const auto space = text.rfind(' ');
    param.type = plain_type(trimmed(text.substr(0, space)));
    param.name = text.substr(space + 1);
    return param;
}

Op read_op(const OpDef& def) {
    Op op;
    op.def = def;
    const std::string_view schema = def.schema;
    const auto open = schema.find('(');
    const auto close = schema.rfind(") ->");
    op.name = schema.substr(0, open);
    bool keyword_only = false;
    for (const std::string_view item : split_list(schema.substr(open + 1, close - open - 1))) {
        if (item == "*")
            keyword_only = true;
        else
            op.params.push_back(read_param(item, keyword_only));
    }
    const std::string_view returns = trimmed(schema.substr(close + 4));
    op.outputs = returns.front() == '(' ? split_list(returns.substr(1, returns.size() - 2)).size() : 1;
    return op;
}

struct Registry {
    std::deque<Op> ops;
    std::vector<const Op*> sorted;
    std::map<std::string_view, const Op*> by_name;

    Registry() {
        for (const auto family : {ops::unary(), ops::binary(), ops::cast(), ops::view(), ops::reduction(), ops::norm(),
                                  ops::matmul(), ops::creation(), ops::join(), ops::window(), ops::indexing()})
            for (const OpDef& def : family) ops.push_back(read_op(def));
        for (const Op& op : ops) by_name.emplace(op.name, &op);
        for (const auto& [name, op] : by_name) sorted.push_back(op);
    }
};

const Registry& registry() {
    static const Registry instance;
    return instance;
}

}  // namespace

const Op* find_op(std::string_view name) noexcept {
    constexpr std::string_view suffix = ".default";
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
        name.remove_suffix(suffix.size());
    const auto& names = registry().by_name;
    const auto at = names.find(name);
    return at == names.end() ? nullptr : at->second;
}

std::span<const Op* const> all_ops() noexcept { return registry().sorted; }

std::string_view NodeView::place() const noexcept { return op_->name; }

std::optional<ValueId> NodeView::optional_tensor(std::size_t i) const noexcept {
    if (is_none(i)) return std::nullopt;
    return tensor(i);
}

std::span<const std::optional<ValueId>> NodeView::tensors(std::size_t i) const noexcept {
    return *std::get_if<std::vector<std::optional<ValueId>>>(&arguments_[i]);
}

Result<std::int64_t> NodeView::integer(std::size_t i) const {
    const Sym& s = size(i);
    if (!s.is_constant()) return unsupported(op_->params[i].name, ": a constant is needed, got ", s.to_string());
    return s.value();
}

double NodeView::real(std::size_t i) const noexcept {
    if (const auto* d = std::get_if<double>(&arguments_[i])) return *d;
    if (const auto* b = std::get_if<bool>(&arguments_[i])) return *b ? 1 : 0;
    if (const auto* s = std::get_if<Sym>(&arguments_[i])) return static_cast<double>(s->value());
    return 0;
}

Result<std::vector<std::int64_t>> NodeView::integers(std::size_t i) const {
    std::vector<std::int64_t> out;
    for (const Sym& s : sizes(i)) {
        if (!s.is_constant()) return unsupported(op_->params[i].name, ": constants are needed, got ", s.to_string());
        out.push_back(s.value());
    }
    return out;
}

}  // namespace lyo
