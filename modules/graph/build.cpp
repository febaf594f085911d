module lyo.graph;

import lyo.prelude;
import lyo.base;

namespace lyo {

Builder::Builder(std::string_view name) { graph_.name = name; }

Builder::Builder(Graph graph) : graph_(std::move(graph)) {
    for (const Value& value : graph_.values) names_.insert(value.name);
}

void Builder::set_error(Error error) {
    if (!error_) error_ = std::move(error);
}

ValueId Builder::add_value(std::string_view name, TensorType type) {
    const ValueId id{static_cast<std::uint32_t>(graph_.values.size())};
    std::string unique(name);
    for (int n = 1; !names_.insert(unique).second; ++n) unique = cat(name, "_", n);
    graph_.values.push_back({std::move(unique), std::move(type)});
    return id;
}

void Builder::rename(ValueId value, std::string_view name) {
    if (error_ || graph_[value].name == name) return;
    names_.erase(graph_[value].name);
    std::string unique(name);
    for (int n = 1; !names_.insert(unique).second; ++n) unique = cat(name, "_", n);
    graph_.values[value.index].name = std::move(unique);
}

Sym Builder::symbol(std::string_view name, std::int64_t min, std::int64_t max) {
    graph_.symbols.push_back({std::string(name), min, max});
    return Sym::symbol(name);
}

ValueId Builder::input(std::string_view name, DType dtype, Shape shape) {
    if (shape.size() > max_rank)
        set_error({ErrorCode::bad_graph, cat("rank: expected at most ", max_rank, ", got ", shape.size()),
                   std::string(name)});
    if (error_) return {};
    for (const Sym& size : shape)
        if (size.is_constant() && size.value() < 0)
            set_error({ErrorCode::bad_graph, cat("negative size in shape ", to_string(shape)), std::string(name)});
    const ValueId id = add_value(name, {dtype, std::move(shape)});
    graph_.inputs.push_back(id);
    return id;
}

ValueId Builder::constant(std::string_view name, const Tensor& data) {
    if (error_) return {};
    auto row_major = data.contiguous();
    if (!row_major) {
        set_error(std::move(row_major.error()).in(name));
        return {};
    }
    const ValueId id = add_value(name, {data.dtype(), to_shape(data.shape())});
    graph_.constants.push_back({id, std::move(*row_major)});
    return id;
}

Result<std::vector<ValueId>> Builder::add(const Op& op, std::vector<Argument> arguments) {
    if (error_) return std::unexpected(*error_);
    Node node{&op, std::move(arguments), {}};
    for (const ValueId id : operands(node))
        if (id.index >= graph_.values.size())
            return fail(ErrorCode::bad_graph, op.name, "an operand is of another graph");
    std::vector<Relation> relations;
    auto types = op.def.infer(InferContext(NodeView(graph_, op, node.arguments), relations));
    if (!types) return std::unexpected(types.error());
    for (TensorType& type : *types) {
        if (type.rank() > max_rank)
            return mismatch(ErrorCode::bad_graph, op.name, "rank of the result", cat("at most ", max_rank),
                            type.rank());
        for (const Sym& size : type.shape)
            if (size.is_constant() && size.value() < 0)
                return fail(ErrorCode::bad_graph, op.name, "the result has a negative size: ", to_string(type.shape));
        node.outputs.push_back(add_value(op.name.substr(0, op.name.find('.')), std::move(type)));
    }
    for (Relation& relation : relations) require(std::move(relation));
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().outputs;
}

std::vector<ValueId> Builder::call_all(std::string_view name, std::vector<Argument> arguments,
                                       std::vector<Named> named) {
    if (error_) return {};
    const Op* op = find_op(name);
    if (op == nullptr) {
        set_error({ErrorCode::unsupported_operator, cat("no operator is named ", name), {}});
        return {};
    }
    auto bound = bind_arguments(*op, std::move(arguments), std::move(named));
    if (!bound) {
        set_error(std::move(bound.error()));
        return {};
    }
    auto outputs = add(*op, std::move(*bound));
    if (!outputs) {
        set_error(std::move(outputs.error()));
        return {};
    }
    return std::move(*outputs);
}

ValueId Builder::call(std::string_view op, std::vector<Argument> arguments, std::vector<Named> named) {
    const auto outputs = call_all(op, std::move(arguments), std::move(named));
    if (error_) return {};
    if (outputs.size() != 1) {
        set_error({ErrorCode::bad_graph, cat("outputs: expected 1, got ", outputs.size()), std::string(op)});
        return {};
    }
    return outputs[0];
}

void Builder::require(Relation relation) {
    for (const Relation& known : graph_.relations)
        if (known.kind == relation.kind && known.left == relation.left && known.right == relation.right) return;
    graph_.relations.push_back(std::move(relation));
}

void Builder::output(ValueId value) {
    if (error_) return;
    if (value.index >= graph_.values.size())
        set_error({ErrorCode::bad_graph, "an output is of another graph", {}});
    else
        graph_.outputs.push_back(value);
}

Result<Graph> Builder::finish() {
    if (error_) return std::unexpected(*error_);
    if (graph_.outputs.empty()) return fail(ErrorCode::bad_graph, graph_.name, "there is no output");
    return std::move(graph_);
}

}  // namespace lyo
