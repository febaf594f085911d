module lyo.graph;

import lyo.prelude;
import lyo.base;

namespace lyo {
namespace {

bool is_number(const Argument& a) noexcept {
    return std::holds_alternative<bool>(a) || std::holds_alternative<Sym>(a) || std::holds_alternative<double>(a);
}

/// True for an empty list of any kind: [] has no element type in a schema or an export.
bool is_empty_list(const Argument& a) noexcept {
    const auto* ints = std::get_if<std::vector<Sym>>(&a);
    return ints != nullptr && ints->empty();
}

std::string_view kind_name(const Argument& a) noexcept {
    static constexpr std::string_view names[] = {"None", "Tensor",     "Tensor[]", "bool",    "int",   "float",
                                                 "str",  "ScalarType", "int[]",    "float[]", "bool[]"};
    return names[a.index()];
}

/// The argument as the parameter's type wants it, or nullopt.
std::optional<Argument> convert(std::string_view type, Argument a) {
    const bool optional = type.ends_with('?');
    if (optional) type.remove_suffix(1);
    if (std::holds_alternative<std::monostate>(a)) return optional ? std::optional(a) : std::nullopt;
    if (type == "Tensor") return std::holds_alternative<ValueId>(a) || is_number(a) ? std::optional(a) : std::nullopt;
    if (type == "Tensor[]" || type == "Tensor?[]") {
        if (is_empty_list(a)) return std::vector<std::optional<ValueId>>{};
        return std::holds_alternative<std::vector<std::optional<ValueId>>>(a) ? std::optional(a) : std::nullopt;
    }
    if (type == "int") {
        if (const auto* b = std::get_if<bool>(&a)) return Sym(*b ? 1 : 0);
        return std::holds_alternative<Sym>(a) ? std::optional(a) : std::nullopt;
    }
    if (type == "int[]") {
        if (const auto* s = std::get_if<Sym>(&a)) return std::vector<Sym>{*s};
        return std::holds_alternative<std::vector<Sym>>(a) ? std::optional(a) : std::nullopt;
    }
    if (type == "float") {
        if (const auto* s = std::get_if<Sym>(&a))
            return s->is_constant() ? std::optional<Argument>(static_cast<double>(s->value())) : std::nullopt;
        return std::holds_alternative<double>(a) ? std::optional(a) : std::nullopt;
    }
    if (type == "float[]") {
        if (const auto* ints = std::get_if<std::vector<Sym>>(&a)) {
            std::vector<double> out;
            for (const Sym& s : *ints) out.push_back(static_cast<double>(s.value()));
            return out;
        }
        return std::holds_alternative<std::vector<double>>(a) ? std::optional(a) : std::nullopt;
    }
    if (type == "bool") {
        if (const auto* s = std::get_if<Sym>(&a); s != nullptr && s->is_constant()) return s->value() != 0;
        return std::holds_alternative<bool>(a) ? std::optional(a) : std::nullopt;
    }
    if (type == "bool[]") {
        if (is_empty_list(a)) return std::vector<bool>{};
        return std::holds_alternative<std::vector<bool>>(a) ? std::optional(a) : std::nullopt;
    }
    if (type == "Scalar") return is_number(a) ? std::optional(a) : std::nullopt;
    if (type == "str") return std::holds_alternative<std::string>(a) ? std::optional(a) : std::nullopt;
    if (type == "ScalarType") return std::holds_alternative<DType>(a) ? std::optional(a) : std::nullopt;
    return std::monostate{};  // Device, Layout, MemoryFormat, Generator: accepted and ignored
}

bool is_ignored(std::string_view type) noexcept {
    return type.starts_with("Device") || type.starts_with("Layout") || type.starts_with("MemoryFormat") ||
           type.starts_with("Generator");
}

}  // namespace

Result<std::vector<Argument>> bind_arguments(const Op& op, std::vector<Argument> positional, std::vector<Named> named) {
    if (positional.size() > op.params.size())
        return mismatch(ErrorCode::unsupported_argument, op.name, "arguments", cat("at most ", op.params.size()),
                        positional.size());
    std::vector<std::optional<Argument>> given(op.params.size());
    for (std::size_t i = 0; i < positional.size(); ++i) given[i] = std::move(positional[i]);
    for (Named& argument : named) {
        const auto at =
            std::find_if(op.params.begin(), op.params.end(), [&](const Param& p) { return p.name == argument.name; });
        if (at == op.params.end())
            return fail(ErrorCode::unsupported_argument, op.name, "no parameter is named ", argument.name);
        auto& slot = given[static_cast<std::size_t>(at - op.params.begin())];
        if (slot) return fail(ErrorCode::unsupported_argument, op.name, argument.name, " is given twice");
        slot = std::move(argument.value);
    }
    std::vector<Argument> out;
    for (std::size_t i = 0; i < op.params.size(); ++i) {
        const Param& param = op.params[i];
        if (is_ignored(param.type)) {
            out.emplace_back(std::monostate{});
            continue;
        }
        if (!given[i]) given[i] = param.default_value;
        if (!given[i]) return fail(ErrorCode::unsupported_argument, op.name, param.name, " is missing");
        const std::string_view kind = kind_name(*given[i]);
        auto converted = convert(param.type, std::move(*given[i]));
        if (!converted) return mismatch(ErrorCode::unsupported_argument, op.name, param.name, param.type, kind);
        out.push_back(std::move(*converted));
    }
    return out;
}

}  // namespace lyo
