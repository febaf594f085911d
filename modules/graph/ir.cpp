module lyo.graph;

import lyo.prelude;
import lyo.base;

namespace lyo {
namespace {

template <class List, class Print>
std::string joined(const List& list, Print print) {
    std::string out;
    for (const auto& item : list) {
        if (!out.empty()) out += ", ";
        out += print(item);
    }
    return out;
}

/// Real numbers as the shortest text that reads back the same.
std::string number(double value) { return cat(value); }

struct PrintArgument {
    const Graph& graph;
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(ValueId id) const { return cat("%", graph[id].name); }
    std::string operator()(const std::vector<std::optional<ValueId>>& list) const {
        return cat("[", joined(list, [&](const auto& v) { return v ? (*this)(*v) : std::string("None"); }), "]");
    }
    std::string operator()(bool value) const { return value ? "True" : "False"; }
    std::string operator()(const Sym& value) const { return value.to_string(); }
    std::string operator()(double value) const { return number(value); }
    std::string operator()(const std::string& value) const { return cat("'", value, "'"); }
    std::string operator()(DType value) const { return std::string(lyo::to_string(value)); }
    std::string operator()(const std::vector<Sym>& list) const { return lyo::to_string(list); }
    std::string operator()(const std::vector<double>& list) const { return cat("[", joined(list, number), "]"); }
    std::string operator()(const std::vector<bool>& list) const {
        return cat("[", joined(list, [](bool b) { return std::string(b ? "True" : "False"); }), "]");
    }
};

}  // namespace

std::string to_string(const TensorType& type) { return cat(to_string(type.dtype), to_string(type.shape)); }

std::string to_string(const Argument& argument, const Graph& graph) {
    return std::visit(PrintArgument{graph}, argument);
}

std::vector<ValueId> operands(const Node& node) {
    std::vector<ValueId> out;
    for (const Argument& argument : node.arguments) {
        if (const auto* id = std::get_if<ValueId>(&argument)) out.push_back(*id);
        if (const auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument))
            for (const auto& id : *list)
                if (id) out.push_back(*id);
    }
    return out;
}

std::string Graph::to_string() const {
    const auto declared = [&](ValueId id) { return cat("%", values[id.index].name, ": ", lyo::to_string(type(id))); };
    std::string out = cat("graph ", name, "(", joined(inputs, declared), ")\n");
    for (const SymbolRange& s : symbols) {
        out += cat("  symbol ", s.name, " in [", s.min, ", ");
        out += s.max == std::numeric_limits<std::int64_t>::max() ? "inf" : std::to_string(s.max);
        out += "]\n";
    }
    for (const Relation& r : relations)
        out += cat("  require ", r.left.to_string(),
                   r.kind == Relation::Kind::equal ? " == " : " <= ", r.right.to_string(), "\n");
    for (const GraphConstant& c : constants) out += cat("  constant ", declared(c.value), "\n");
    for (const Node& node : nodes) {
        out += cat("  ", joined(node.outputs, declared), " = ", node.op->name, "(");
        for (std::size_t i = 0; i < node.arguments.size(); ++i)
            out += cat(i > 0 ? ", " : "", lyo::to_string(node.arguments[i], *this));
        out += ")\n";
    }
    return out + cat("  return ", joined(outputs, [&](ValueId id) { return cat("%", values[id.index].name); }), "\n");
}

}  // namespace lyo
