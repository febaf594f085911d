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

/// A bound of a range: a number, or null for none.
std::optional<std::int64_t> bound(const Json& json, std::string_view key) {
    const Json* value = json.find(key);
    return value != nullptr && value->integer() != nullptr ? std::optional(*value->integer()) : std::nullopt;
}

}  // namespace

Result<> ProgramImporter::read_symbols() {
    const auto ranges = object_member(model_, "range_constraints");
    if (!ranges) return std::unexpected(ranges.error());
    for (const JsonMember& item : **ranges) {
        SymbolRange range{item.key, 0, std::numeric_limits<std::int64_t>::max()};
        // torch assumes 2 for sizes without a stated minimum, and runs 0 and 1 all the same.
        constexpr std::int64_t assumed = 2;
        if (const auto low = bound(item.value, "min_val"); low && *low != assumed)
            range.min = std::max<std::int64_t>(*low, 0);
        if (const auto high = bound(item.value, "max_val")) range.max = *high;
        if (range.min > range.max)
            return mismatch(bad, cat("range_constraints.", item.key), "range", "min <= max",
                            cat(range.min, " and ", range.max));
        ranges_.emplace(item.key, std::move(range));
    }
    return {};
}

void ProgramImporter::declare(const Sym& size) {
    std::set<std::string> names;
    size.collect(names);
    for (const std::string& name : names) {
        if (!declared_.insert(name).second) continue;
        const auto at = ranges_.find(name);
        const SymbolRange range = at != ranges_.end() ? at->second : SymbolRange{name};
        builder_.symbol(name, range.min, range.max);
    }
}

Result<Shape> ProgramImporter::recorded_shape(const Json& sizes) {
    const Json::Array* list = sizes.array();
    if (list == nullptr) return mismatch(bad, "sizes", "kind", "a list", sizes.kind());
    if (list->size() > max_rank) return mismatch(bad, "sizes", "rank", cat("at most ", max_rank), list->size());
    Shape out;
    for (const Json& item : *list) {
        auto size = size_expression(item);
        if (!size) return std::unexpected(size.error());
        if (size->is_constant() && size->value() < 0)
            return mismatch(bad, "sizes", "size", "at least 0", size->value());
        out.push_back(std::move(*size));
    }
    if (!is_tractable(out)) return fail(ErrorCode::limit_exceeded, "sizes", "their expressions are too large");
    return out;
}

Result<TensorType> ProgramImporter::recorded_type(std::string_view name) {
    const auto values = member(*graph_, "tensor_values");
    if (!values) return std::unexpected(values.error());
    const Json* meta = (*values)->find(name);
    if (meta == nullptr) return fail(bad, name, "tensor_values does not describe it");
    const auto number = integer_member(*meta, "dtype");
    if (!number) return std::unexpected(Error(number.error()).in(name));
    const auto dtype = dtype_of_number(*number);
    if (!dtype) return std::unexpected(Error(dtype.error()).in(name));
    constexpr std::int64_t strided = 7;
    if (const Json* layout = meta->find("layout");
        layout != nullptr && layout->integer() != nullptr && *layout->integer() != strided)
        return fail(ErrorCode::unsupported_argument, name, "its layout is not strided");
    const auto sizes = member(*meta, "sizes");
    if (!sizes) return std::unexpected(Error(sizes.error()).in(name));
    auto shape = recorded_shape(**sizes);
    if (!shape) return std::unexpected(std::move(shape.error()).in(name));
    return TensorType{*dtype, std::move(*shape)};
}

Result<> ProgramImporter::read_inputs(const Json& signature) {
    const auto specs = array_member(signature, "input_specs");
    if (!specs) return std::unexpected(specs.error());
    for (const Json& json : **specs) {
        const auto spec = tagged(json);
        if (!spec) return std::unexpected(spec.error());
        if (spec->tag == "constant_input") continue;  // a value that the export fixed
        if (spec->tag == "user_input") {
            const auto arg = member(*spec->value, "arg");
            if (!arg) return std::unexpected(arg.error());
            const auto kind = tagged(**arg);
            if (!kind) return std::unexpected(kind.error());
            if (kind->tag == "as_none" || kind->tag == "as_string" || kind->tag == "as_bool" ||
                kind->tag == "as_float" || kind->tag == "as_int")
                continue;
            if (kind->tag != "as_tensor")
                return fail(ErrorCode::unsupported_argument, "input_specs", "a user input of kind ", kind->tag);
            const auto name = string_member(*kind->value, "name");
            if (!name) return std::unexpected(name.error());
            auto type = recorded_type(**name);
            if (!type) return std::unexpected(type.error());
            for (const Sym& size : type->shape) declare(size);
            auto cell = std::make_shared<Cell>();
            cell->value = builder_.input(**name, type->dtype, type->shape);
            if (builder_.error()) return std::unexpected(*builder_.error());
            if (!cells_.emplace(**name, std::move(cell)).second) return fail(bad, **name, "two inputs have this name");
            continue;
        }
        constexpr std::pair<std::string_view, std::string_view> kinds[] = {
            {"parameter", "parameter_name"}, {"buffer", "buffer_name"}, {"tensor_constant", "tensor_constant_name"}};
        const auto kind =
            std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return k.first == spec->tag; });
        if (kind == std::end(kinds))
            return fail(ErrorCode::unsupported_argument, "input_specs", "an input of kind ", spec->tag);
        const auto arg = member(*spec->value, "arg");
        if (!arg) return std::unexpected(arg.error());
        const auto name = string_member(**arg, "name"), payload = string_member(*spec->value, kind->second);
        if (!name) return std::unexpected(name.error());
        if (!payload) return std::unexpected(payload.error());
        auto cell = std::make_shared<Cell>();
        cell->payload = **payload;
        if (spec->tag == "buffer") {
            cell->buffer = **payload;
            buffers_.push_back(cell);
        }
        if (!cells_.emplace(**name, std::move(cell)).second) return fail(bad, **name, "two inputs have this name");
    }
    return {};
}

Result<> ProgramImporter::read_guards() {
    const Json* guards = model_.find("guards_code");
    if (guards == nullptr || guards->array() == nullptr) return {};
    const auto size_of = [&](std::string_view input, std::int64_t dim) -> std::optional<Sym> {
        const auto at = cells_.find(input);
        if (at == cells_.end() || !at->second->value) return std::nullopt;
        const Shape& shape = builder_.type(*at->second->value).shape;
        if (dim < 0 || static_cast<std::size_t>(dim) >= shape.size()) return std::nullopt;
        return shape[static_cast<std::size_t>(dim)];
    };
    for (const Json& guard : *guards->array()) {
        if (guard.string() == nullptr) return mismatch(bad, "guards_code", "kind", "a string", guard.kind());
        auto relations = parse_condition(*guard.string(), size_of);
        if (!relations) return std::unexpected(std::move(relations.error()).in("guards_code"));
        for (Relation& relation : *relations) builder_.require(std::move(relation));
    }
    return {};
}

Result<> ProgramImporter::check_operators(const Json::Array& nodes) const {
    std::map<std::string, std::size_t> missing;
    std::size_t total = 0;
    for (const Json& node : nodes) {
        const auto target = string_member(node, "target");
        if (!target) return std::unexpected(target.error());
        if (is_about_sizes(**target) || find_target(**target).op != nullptr) continue;
        ++missing[**target];
        ++total;
    }
    if (missing.empty()) return {};
    std::string list;
    for (const auto& [name, count] : missing) list += cat(list.empty() ? "" : ", ", name, " (", count, ")");
    return fail(ErrorCode::unsupported_operator, "graph", total,
                total == 1 ? " node uses an operator" : " nodes use operators", " that lyo does not have: ", list);
}

Result<> ProgramImporter::read_outputs(const Json& signature) {
    const auto specs = array_member(signature, "output_specs");
    if (!specs) return std::unexpected(specs.error());
    std::vector<std::pair<std::string, ValueId>> written;
    for (const Json& json : **specs) {
        const auto spec = tagged(json);
        if (!spec) return std::unexpected(spec.error());
        const auto arg = member(*spec->value, "arg");
        if (!arg) return std::unexpected(arg.error());
        const bool user = spec->tag == "user_output";
        if (!user && spec->tag != "buffer_mutation" && spec->tag != "user_input_mutation")
            return fail(ErrorCode::unsupported_argument, "output_specs", "an output of kind ", spec->tag);
        const Json* named = *arg;
        if (user) {
            const auto kind = tagged(**arg);
            if (!kind) return std::unexpected(kind.error());
            if (kind->tag == "as_none") continue;
            if (kind->tag != "as_tensor")
                return fail(ErrorCode::unsupported_argument, "output_specs", "an output of kind ", kind->tag,
                            ", not a tensor");
            named = kind->value;
        }
        const auto given = string_member(*named, "name");
        if (!given) return std::unexpected(given.error());
        const auto value = tensor(**given);
        if (!value) return std::unexpected(value.error());
        if (user) {
            builder_.output(*value);
            continue;
        }
        const auto target =
            string_member(*spec->value, spec->tag == "buffer_mutation" ? "buffer_name" : "user_input_name");
        if (!target) return std::unexpected(target.error());
        written.emplace_back(**target, *value);
    }
    for (const CellRef& buffer : buffers_)
        if (buffer->written) written.emplace_back(buffer->buffer, *buffer->value);
    for (const auto& [name, value] : written) {
        builder_.rename(value, cat(name, ".written"));
        builder_.output(value);
    }
    return {};
}

Result<Graph> ProgramImporter::run() {
    const auto version = member(model_, "schema_version");
    if (!version) return std::unexpected(version.error());
    const auto major = integer_member(**version, "major");
    if (!major) return std::unexpected(major.error());
    constexpr std::int64_t known_major = 8;
    if (*major != known_major)
        return mismatch(bad, "schema_version", "major version of torch's export schema", known_major, *major);
    const auto module = member(model_, "graph_module");
    if (!module) return std::unexpected(module.error());
    const auto graph = member(**module, "graph"), signature = member(**module, "signature");
    if (!graph) return std::unexpected(graph.error());
    if (!signature) return std::unexpected(signature.error());
    graph_ = *graph;
    const auto nodes = array_member(*graph_, "nodes");
    if (!nodes) return std::unexpected(nodes.error());
    if (auto ok = check_operators(**nodes); !ok) return std::unexpected(ok.error());
    if (auto ok = read_symbols(); !ok) return std::unexpected(ok.error());
    if (auto ok = read_inputs(**signature); !ok) return std::unexpected(std::move(ok.error()).in("signature"));
    if (auto ok = read_guards(); !ok) return std::unexpected(ok.error());

    // Arguments that lyo cannot take are reported together; what a failed node would have made is skipped over.
    std::string unsupported;
    std::size_t failures = 0;
    for (const Json& node : **nodes) {
        auto ok = add_node(node);
        if (ok) continue;
        if (ok.error().code != ErrorCode::unsupported_argument) return std::unexpected(ok.error());
        constexpr std::size_t shown = 20;
        if (++failures <= shown) unsupported += cat(unsupported.empty() ? "" : "; ", ok.error().to_string());
    }
    if (failures > 0)
        return fail(ErrorCode::unsupported_argument, "graph", failures,
                    failures == 1 ? " node: " : " nodes: ", unsupported);
    if (auto ok = read_outputs(**signature); !ok) return std::unexpected(std::move(ok.error()).in("signature"));
    return builder_.finish();
}

}  // namespace lyo
