// Operators in terms of simpler ones, until only core operators, views and pointwise ones are left.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import :kernels;

namespace lyo {
namespace {

ValueId mapped(const std::vector<ValueId>& map, ValueId id) { return map[id.index]; }

/// The node's arguments with the values of the new graph.
std::vector<Argument> remap(const Node& node, const std::vector<ValueId>& map) {
    std::vector<Argument> out = node.arguments;
    for (Argument& argument : out) {
        if (auto* id = std::get_if<ValueId>(&argument)) *id = mapped(map, *id);
        if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument))
            for (auto& id : *list)
                if (id) id = mapped(map, *id);
    }
    return out;
}

/// Everything but nodes and outputs, into a fresh builder; `map` takes old values to new ones.
Builder begin(const Graph& graph, std::vector<ValueId>& map) {
    Builder builder(graph.name);
    map.assign(graph.values.size(), {});
    for (const SymbolRange& s : graph.symbols) builder.symbol(s.name, s.min, s.max);
    for (const Relation& r : graph.relations) builder.require(r);
    for (const ValueId id : graph.inputs)
        map[id.index] = builder.input(graph[id].name, graph.type(id).dtype, graph.type(id).shape);
    for (const GraphConstant& c : graph.constants) map[c.value.index] = builder.constant(graph[c.value].name, c.data);
    return builder;
}

/// One round: every decomposable node once. Equal nodes become one; nodes that nothing needs are not copied.
Result<Graph> round(const Graph& graph) {
    std::vector<bool> needed(graph.values.size());
    for (const ValueId id : graph.outputs) needed[id.index] = true;
    std::vector<bool> live(graph.nodes.size());
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
        const Node& node = graph.nodes[i];
        live[i] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return needed[id.index]; });
        if (live[i])
            for (const ValueId id : operands(node)) needed[id.index] = true;
    }
    std::vector<ValueId> map;
    Builder builder = begin(graph, map);
    std::map<std::string, std::vector<ValueId>> known;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!live[i]) continue;
        const Op& op = *node.op;
        std::vector<Argument> arguments = remap(node, map);
        std::string key = op.name;
        for (const Argument& argument : arguments)
            key += cat(" ", argument.index(), ":", to_string(argument, builder.graph()));
        auto [at, fresh] = known.try_emplace(std::move(key));
        if (fresh) {
            if (op.def.decompose != nullptr) {
                // The node is looked at while the builder's graph grows: arguments are by value, types are asked anew.
                const NodeView view(builder.graph(), op, arguments);
                auto outputs = op.def.decompose(builder, view);
                if (builder.error()) return std::unexpected(*builder.error());
                if (!outputs) return std::unexpected(outputs.error());
                at->second = std::move(*outputs);
            } else {
                auto outputs = builder.add(op, std::move(arguments));
                if (!outputs) return std::unexpected(outputs.error());
                at->second = std::move(*outputs);
            }
        }
        for (std::size_t k = 0; k < node.outputs.size() && k < at->second.size(); ++k) {
            const TensorType& was = graph.type(node.outputs[k]);
            const TensorType& is = builder.type(at->second[k]);
            if (was.dtype != is.dtype || was.rank() != is.rank())
                return mismatch(ErrorCode::bad_graph, op.name, "type of its decomposition", to_string(was),
                                to_string(is));
            map[node.outputs[k].index] = at->second[k];
        }
    }
    for (const ValueId id : graph.outputs) builder.output(mapped(map, id));
    auto out = builder.finish();
    if (!out) return out;
    return out;
}

bool is_core(const Graph& graph) {
    return std::none_of(graph.nodes.begin(), graph.nodes.end(),
                        [](const Node& n) { return n.op->def.decompose != nullptr; });
}

}  // namespace

Result<Graph> decompose(const Graph& graph) {
    auto out = round(graph);
    // Deeper than any table entry goes; an entry that decomposes into itself is found instead of followed.
    constexpr int max_rounds = 32;
    for (int i = 0; out && !is_core(*out); ++i) {
        if (i == max_rounds) return fail(ErrorCode::bad_graph, "decompose", "decompositions do not end");
        out = round(*out);
    }
    // One more, for what the last round left unused or equal.
    return out ? round(*out) : std::move(out);
}

}  // namespace lyo
