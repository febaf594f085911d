// The graph itself: values, nodes, and what a function's inputs, outputs and constants are.
export module lyo.graph:ir;

import lyo.prelude;
import lyo.base;
import :sym;

namespace lyo {

export struct Op;

/// What is known of a value before it exists.
export struct TensorType {
    DType dtype = DType::f32;
    Shape shape;
    std::size_t rank() const noexcept { return shape.size(); }
    friend bool operator==(const TensorType&, const TensorType&) = default;
};
/// "f32[s0, 4]".
export std::string to_string(const TensorType& type);

/// A value of one graph: an input, a constant, or a node's output.
export struct ValueId {
    std::uint32_t index = 0;
    friend bool operator==(ValueId, ValueId) = default;
    friend auto operator<=>(ValueId, ValueId) = default;
};

/// One argument of a node, in the position of the operator's parameter. None is monostate; an int is a Sym; a list of
/// tensors may have holes (index.Tensor).
export using Argument = std::variant<std::monostate, ValueId, std::vector<std::optional<ValueId>>, bool, Sym, double,
                                     std::string, DType, std::vector<Sym>, std::vector<double>, std::vector<bool>>;

/// One application of an operator.
export struct Node {
    const Op* op = nullptr;
    std::vector<Argument> arguments;
    std::vector<ValueId> outputs;
};

export struct Value {
    std::string name;
    TensorType type;
};

/// A tensor that is part of the model: CPU memory, row-major.
export struct GraphConstant {
    ValueId value;
    Tensor data;
};

/// A relation between sizes that holds for every call (checked by a guard): left == right, or left <= right.
export struct Relation {
    enum class Kind : std::uint8_t { equal, at_most };
    Kind kind = Kind::equal;
    Sym left, right;
};

/// A function on tensors. Nodes are in an order in which every value is made before it is used.
export struct Graph {
    std::string name = "forward";
    /// A deque, so that a type seen through a reference stays in place while the graph grows.
    std::deque<Value> values;
    std::vector<Node> nodes;
    std::vector<ValueId> inputs;
    std::vector<GraphConstant> constants;
    std::vector<ValueId> outputs;
    std::vector<SymbolRange> symbols;
    std::vector<Relation> relations;

    const Value& operator[](ValueId id) const noexcept { return values[id.index]; }
    const TensorType& type(ValueId id) const noexcept { return values[id.index].type; }
    /// A readable, deterministic listing, one node a line.
    std::string to_string() const;
};

/// Every tensor argument of a node, in order.
export std::vector<ValueId> operands(const Node& node);
/// "[2, s0]", "%3", "None", ... as `Graph::to_string` prints it.
export std::string to_string(const Argument& argument, const Graph& graph);

}  // namespace lyo
