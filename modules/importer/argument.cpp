module lyo.importer;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import :expr;
import :json;
import :program;

namespace lyo {
namespace {

constexpr ErrorCode bad = ErrorCode::bad_model;

template <class T, class Read>
Result<Argument> list_of(const Json& json, Read read) {
    const Json::Array* list = json.array();
    if (list == nullptr) return mismatch(bad, "", "kind", "a list", json.kind());
    std::vector<T> out;
    for (const Json& item : *list) {
        auto value = read(item);
        if (!value) return std::unexpected(value.error());
        out.push_back(std::move(*value));
    }
    return Argument(std::move(out));
}

Result<Sym> integer(const Json& json) {
    if (json.integer() == nullptr) return mismatch(bad, "", "kind", "an integer", json.kind());
    return Sym(*json.integer());
}
Result<double> number(const Json& json) {
    const auto value = real(json);
    if (!value) return mismatch(bad, "", "kind", "a number", json.kind());
    return *value;
}
Result<bool> boolean(const Json& json) {
    if (json.boolean() == nullptr) return mismatch(bad, "", "kind", "a boolean", json.kind());
    return *json.boolean();
}

}  // namespace

Result<CellRef> ProgramImporter::cell(std::string_view name) const {
    const auto at = cells_.find(name);
    if (at == cells_.end()) return fail(bad, name, "is used before anything makes it");
    return at->second;
}

Result<ValueId> ProgramImporter::tensor(std::string_view name) {
    const auto found = cell(name);
    if (!found) return std::unexpected(found.error());
    Cell& c = **found;
    if (c.stale)
        return fail(ErrorCode::unsupported_argument, name,
                    "is read after an in-place operator wrote its memory through another view");
    if (!c.value) {
        if (c.payload.empty())
            return fail(ErrorCode::unsupported_argument, name, "a node that lyo cannot take makes it");
        const PayloadTable& table = weights_.contains(c.payload) ? weights_ : constants_;
        auto data = table.load(c.payload, read_, budget_);
        if (!data) return std::unexpected(data.error());
        c.value = builder_.constant(c.payload, *data);
        if (builder_.error()) return std::unexpected(*builder_.error());
    }
    return *c.value;
}

Result<Sym> ProgramImporter::size_expression(const Json& json) {
    const auto kind = tagged(json);
    if (!kind) return std::unexpected(kind.error());
    if (kind->tag == "as_int") return integer(*kind->value);
    if (kind->tag != "as_expr") return mismatch(bad, "", "a size", "as_int or as_expr", kind->tag);
    const auto text = string_member(*kind->value, "expr_str");
    if (!text) return std::unexpected(text.error());
    auto size = parse_size(**text);
    if (size) declare(*size);
    return size;
}

Result<Sym> ProgramImporter::named_size(std::string_view name) {
    const auto values = member(*graph_, "sym_int_values");
    if (!values) return std::unexpected(values.error());
    const Json* value = (*values)->find(name);
    if (value == nullptr) return fail(bad, name, "sym_int_values does not have it");
    auto size = size_expression(*value);
    if (!size) return std::unexpected(std::move(size.error()).in(name));
    return size;
}

Result<Sym> ProgramImporter::size(const Json& json) {
    const auto kind = tagged(json);
    if (!kind) return std::unexpected(kind.error());
    if (kind->tag == "as_int") return integer(*kind->value);
    if (kind->tag == "as_name" && kind->value->string() != nullptr) return named_size(*kind->value->string());
    return mismatch(bad, "", "a size", "as_int or as_name", kind->tag);
}

Result<Argument> ProgramImporter::argument(const Json& json) {
    const auto kind = tagged(json);
    if (!kind) return std::unexpected(kind.error());
    const std::string_view tag = kind->tag;
    const Json& value = *kind->value;
    const auto tensor_of = [&](const Json& item) -> Result<std::optional<ValueId>> {
        const auto name = string_member(item, "name");
        if (!name) return std::unexpected(name.error());
        const auto id = tensor(**name);
        if (!id) return std::unexpected(id.error());
        return std::optional<ValueId>(*id);
    };
    const auto optional_tensor_of = [&](const Json& item) -> Result<std::optional<ValueId>> {
        const auto inner = tagged(item);
        if (!inner) return std::unexpected(inner.error());
        if (inner->tag == "as_none") return std::optional<ValueId>();
        return tensor_of(*inner->value);
    };
    const auto wrapped = [](auto result) -> Result<Argument> {
        if (!result) return std::unexpected(result.error());
        return Argument(std::move(*result));
    };
    if (tag == "as_none") return Argument(std::monostate{});
    if (tag == "as_tensor") {
        const auto id = tensor_of(value);
        if (!id) return std::unexpected(id.error());
        return Argument(**id);
    }
    if (tag == "as_optional_tensor") {
        const auto id = optional_tensor_of(value);
        if (!id) return std::unexpected(id.error());
        return *id ? Argument(**id) : Argument(std::monostate{});
    }
    if (tag == "as_tensors") return list_of<std::optional<ValueId>>(value, tensor_of);
    if (tag == "as_optional_tensors") return list_of<std::optional<ValueId>>(value, optional_tensor_of);
    if (tag == "as_int") return wrapped(integer(value));
    if (tag == "as_ints") return list_of<Sym>(value, integer);
    if (tag == "as_sym_int") return wrapped(size(value));
    if (tag == "as_sym_ints") return list_of<Sym>(value, [&](const Json& item) { return size(item); });
    if (tag == "as_float") return wrapped(number(value));
    if (tag == "as_floats") return list_of<double>(value, number);
    if (tag == "as_bool") return wrapped(boolean(value));
    if (tag == "as_bools") return list_of<bool>(value, boolean);
    if (tag == "as_string") {
        if (value.string() == nullptr) return mismatch(bad, "", "kind", "a string", value.kind());
        return Argument(*value.string());
    }
    if (tag == "as_scalar_type") {
        if (value.integer() == nullptr) return mismatch(bad, "", "kind", "an integer", value.kind());
        return wrapped(dtype_of_number(*value.integer()));
    }
    if (tag == "as_sym_float") {
        if (const Json* constant = value.find("as_float")) return wrapped(number(*constant));
    }
    if (tag == "as_sym_bool") {
        if (const Json* constant = value.find("as_bool")) return wrapped(boolean(*constant));
    }
    // Where a tensor lives and how it is laid out is the artifact's business.
    if (tag == "as_device" || tag == "as_layout" || tag == "as_memory_format") return Argument(std::monostate{});
    return fail(ErrorCode::unsupported_argument, "", "an argument of kind ", tag);
}

}  // namespace lyo
