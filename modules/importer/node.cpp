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
constexpr std::string_view aten = "torch.ops.aten.";

/// Facts about types that the graph states itself.
bool is_dropped(std::string_view target) noexcept {
    return target == "torch.ops.aten._assert_tensor_metadata.default" ||
           target == "torch.ops.aten.sym_constrain_range.default" ||
           target == "torch.ops.aten.sym_constrain_range_for_size.default";
}
bool is_assertion(std::string_view target) noexcept {
    return target == "torch.ops.aten._assert_scalar.default" || target == "torch.ops.aten._assert_async.msg";
}
/// Arithmetic on sizes: the archive gives each result as an expression.
bool is_size_arithmetic(std::string_view target) noexcept {
    if (target.starts_with("_operator.") || target.starts_with("operator.") || target.starts_with("math.") ||
        target.starts_with("torch.sym_"))
        return true;
    return target.starts_with("torch.ops.aten.sym_size") || target.starts_with("torch.ops.aten.sym_numel") ||
           target.starts_with("torch.ops.aten.sym_stride") || target.starts_with("torch.ops.aten.sym_storage_offset");
}

bool is_view(const Op& op) noexcept { return op.def.view != nullptr; }
/// Operators that are views in lyo, since they change nothing, but copies in PyTorch.
bool makes_copy(const Op& op) noexcept {
    return op.name == "clone" || op.name == "lift_fresh_copy" || op.name == "dropout";
}

const CellRef& root(const CellRef& cell) noexcept { return cell->base ? root(cell->base) : cell; }

}  // namespace

bool is_about_sizes(std::string_view target) noexcept {
    return is_dropped(target) || target == "torch.ops.aten._assert_scalar.default" || is_size_arithmetic(target);
}

Target find_target(std::string_view target) {
    if (!target.starts_with(aten)) return {};
    const std::string_view name = target.substr(aten.size());
    if (const Op* op = find_op(name)) return {op, false};
    const auto dot = name.find('.');
    const std::string_view base = name.substr(0, dot);
    if (base.size() < 2 || !base.ends_with('_') || base.ends_with("__")) return {};
    const Op* op = find_op(cat(base.substr(0, base.size() - 1), dot == std::string_view::npos ? "" : name.substr(dot)));
    return {op, op != nullptr};
}

Result<> ProgramImporter::assume(const Json& node) {
    const auto inputs = array_member(node, "inputs");
    if (!inputs) return std::unexpected(inputs.error());
    if ((*inputs)->empty()) return fail(bad, "inputs", "an assertion of nothing");
    const auto arg = member((*inputs)->front(), "arg");
    if (!arg) return std::unexpected(arg.error());
    const auto kind = tagged(**arg);
    if (!kind) return std::unexpected(kind.error());
    if (kind->tag == "as_bool") return {};
    const Json* name = kind->tag == "as_sym_bool" ? kind->value->find("as_name") : nullptr;
    if (name == nullptr || name->string() == nullptr) return {};  // a constant: it held when the model was exported
    const auto values = member(*graph_, "sym_bool_values");
    if (!values) return std::unexpected(values.error());
    const Json* value = (*values)->find(*name->string());
    if (value == nullptr) return fail(bad, *name->string(), "sym_bool_values does not have it");
    const Json* expression = value->find("as_expr");
    if (expression == nullptr) return {};
    const auto text = string_member(*expression, "expr_str");
    if (!text) return std::unexpected(text.error());
    auto relations = parse_condition(**text, [](std::string_view, std::int64_t) { return std::nullopt; });
    if (!relations) return std::unexpected(relations.error());
    for (Relation& relation : *relations) {
        declare(relation.left);
        declare(relation.right);
        builder_.require(std::move(relation));
    }
    return {};
}

Result<> ProgramImporter::add_node(const Json& node) {
    const auto target = string_member(node, "target");
    if (!target) return std::unexpected(target.error());
    if (is_dropped(**target) || is_size_arithmetic(**target)) return {};
    Result<> ok;
    if (is_assertion(**target)) {
        ok = assume(node);
    } else {
        const Target found = find_target(**target);
        ok = add_operator(node, *found.op, found.in_place);
    }
    if (ok) return ok;
    const Json* name = node.find("name");
    const std::string place = name != nullptr && name->string() != nullptr ? *name->string() : **target;
    // What the node would have made is known by name, so that later nodes are looked at too.
    if (const Json* outputs = node.find("outputs"); outputs != nullptr && outputs->array() != nullptr)
        for (const Json& output : *outputs->array()) {
            const auto kind = tagged(output);
            if (!kind) continue;
            const auto forget = [&](const Json& tensor) {
                if (const auto made = string_member(tensor, "name")) cells_[**made] = std::make_shared<Cell>();
            };
            if (kind->tag == "as_tensor") forget(*kind->value);
            if (kind->tag == "as_tensors" && kind->value->array() != nullptr)
                for (const Json& item : *kind->value->array()) forget(item);
        }
    return std::unexpected(std::move(ok.error()).in(place));
}

Result<> ProgramImporter::add_operator(const Json& node, const Op& op, bool in_place) {
    const auto inputs = array_member(node, "inputs");
    if (!inputs) return std::unexpected(inputs.error());
    std::vector<Named> named;
    CellRef operand;  // the first tensor
    for (const Json& input : **inputs) {
        const auto name = string_member(input, "name");
        if (!name) return std::unexpected(name.error());
        const auto arg = member(input, "arg");
        if (!arg) return std::unexpected(arg.error());
        auto value = argument(**arg);
        if (!value) return std::unexpected(std::move(value.error()).in(**name));
        if (!operand && std::holds_alternative<ValueId>(*value)) {
            const auto tensor_name = string_member(*tagged(**arg)->value, "name");
            if (tensor_name) operand = *cell(**tensor_name);
        }
        // Whatever the out-of-place operator calls it, in place it is self.
        const bool target = in_place && **name == "self" && !op.params.empty();
        named.push_back({target ? std::string_view(op.params[0].name) : **name, std::move(*value)});
    }
    auto arguments = bind_arguments(op, {}, std::move(named));
    if (!arguments) return std::unexpected(arguments.error());
    auto values = builder_.add(op, std::move(*arguments));
    if (!values) return std::unexpected(values.error());
    const auto outputs = member(node, "outputs");
    if (!outputs) return std::unexpected(outputs.error());
    if (!in_place) return bind_outputs(**outputs, op, *values, operand);
    if (!operand || values->size() != 1)
        return fail(ErrorCode::unsupported_argument, "", "an in-place operator without an operand");
    std::string name;
    if (outputs.value()->array() != nullptr && outputs.value()->array()->size() == 1) {
        const auto kind = tagged(outputs.value()->array()->front());
        if (kind && kind->tag == "as_tensor")
            if (const auto text = string_member(*kind->value, "name")) name = **text;
    }
    return write_in_place(operand, values->front(), name);
}

Result<> ProgramImporter::write_in_place(const CellRef& target, ValueId value, std::string_view name) {
    const TensorType was = builder_.type(*target->value);
    if (builder_.type(value).shape != was.shape)
        return fail(ErrorCode::unsupported_argument, name, "an in-place operator changes a shape");
    if (builder_.type(value).dtype != was.dtype) value = builder_.call("to.dtype", {value, was.dtype});
    if (builder_.error()) return std::unexpected(*builder_.error());
    // Other views of the same memory see the new elements; that is not followed, so nobody may read them again.
    for (const auto& [other_name, other] : cells_)
        if (other != target && root(other) == root(target)) other->stale = true;
    target->value = value;
    target->written = true;
    if (!name.empty()) {
        builder_.rename(value, name);
        cells_[std::string(name)] = target;
    }
    if (root(target) != target && !root(target)->buffer.empty())
        return fail(ErrorCode::unsupported_argument, name, "an in-place operator writes to a view of buffer ",
                    root(target)->buffer);
    return {};
}

Result<> ProgramImporter::bind_output(std::string_view name, ValueId value, const Op& op, const CellRef& operand) {
    const auto recorded = recorded_type(name);
    if (!recorded) return std::unexpected(recorded.error());
    const TensorType& made = builder_.type(value);
    if (recorded->dtype != made.dtype || recorded->rank() != made.rank())
        return mismatch(bad, name, "type", to_string(*recorded), to_string(made));
    for (std::size_t d = 0; d < made.rank(); ++d)
        if (made.shape[d].is_constant() && recorded->shape[d].is_constant() && made.shape[d] != recorded->shape[d])
            return mismatch(bad, name, "type", to_string(*recorded), to_string(made));
    builder_.rename(value, name);
    auto cell = std::make_shared<Cell>();
    cell->value = value;
    if (operand && is_view(op) && !makes_copy(op)) cell->base = operand;
    if (!cells_.emplace(name, std::move(cell)).second) return fail(bad, name, "two nodes make it");
    return {};
}

Result<> ProgramImporter::bind_outputs(const Json& outputs, const Op& op, const std::vector<ValueId>& values,
                                       const CellRef& operand) {
    const Json::Array* list = outputs.array();
    if (list == nullptr) return mismatch(bad, "outputs", "kind", "a list", outputs.kind());
    std::vector<std::string_view> names;
    const auto add = [&](const Json& tensor) -> Result<> {
        const auto name = string_member(tensor, "name");
        if (!name) return std::unexpected(name.error());
        names.push_back(**name);
        return {};
    };
    for (const Json& output : *list) {
        const auto kind = tagged(output);
        if (!kind) return std::unexpected(kind.error());
        if (kind->tag == "as_tensor") {
            if (auto ok = add(*kind->value); !ok) return ok;
        } else if (kind->tag == "as_tensors" && kind->value->array() != nullptr) {
            for (const Json& item : *kind->value->array())
                if (auto ok = add(item); !ok) return ok;
        } else if (kind->tag == "as_none") {
            names.emplace_back();
        } else {
            return fail(ErrorCode::unsupported_argument, "outputs", "an output of kind ", kind->tag);
        }
    }
    if (names.size() > values.size()) return mismatch(bad, "outputs", "count", values.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        if (!names[i].empty())
            if (auto ok = bind_output(names[i], values[i], op, operand); !ok) return ok;
    return {};
}

}  // namespace lyo
