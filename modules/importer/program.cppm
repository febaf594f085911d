// An exported program on its way to a graph.
module lyo.importer:program;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import :expr;
import :json;
import :payload;
import :pt2;
import :support;

namespace lyo {

/// A tensor of the model. Names whose tensors are one share a cell, so that what is written through one is seen by all.
struct Cell {
    std::optional<ValueId> value;
    /// Where it comes from, until it is used: the name of a parameter, buffer or constant.
    std::string payload;
    /// The cell whose memory it looks at, when it is a view.
    std::shared_ptr<Cell> base;
    /// An in-place operator wrote this memory through another view: what it holds now is not known here.
    bool stale = false;
    /// Of a buffer: its name, and whether something was written to it.
    std::string buffer;
    bool written = false;
};
using CellRef = std::shared_ptr<Cell>;

class ProgramImporter {
  public:
    ProgramImporter(const Json& model, const PayloadTable& weights, const PayloadTable& constants,
                    const PayloadReader& read, Budget budget)
        : model_(model), weights_(weights), constants_(constants), read_(read), budget_(budget) {}
    Result<Graph> run();

  private:
    // program.cpp: the frame.
    Result<> read_symbols();
    Result<> read_inputs(const Json& signature);
    Result<> read_guards();
    Result<> read_outputs(const Json& signature);
    Result<TensorType> recorded_type(std::string_view name);
    Result<Shape> recorded_shape(const Json& sizes);
    void declare(const Sym& size);
    Result<> check_operators(const Json::Array& nodes) const;

    // node.cpp: one node.
    Result<> add_node(const Json& node);
    Result<> add_operator(const Json& node, const Op& op, bool in_place);
    Result<> bind_outputs(const Json& outputs, const Op& op, const std::vector<ValueId>& values,
                          const CellRef& operand);
    Result<> bind_output(std::string_view name, ValueId value, const Op& op, const CellRef& operand);
    Result<> write_in_place(const CellRef& target, ValueId value, std::string_view name);
    Result<> assume(const Json& condition);

    // argument.cpp: one argument.
    Result<Argument> argument(const Json& json);
    Result<ValueId> tensor(std::string_view name);
    Result<CellRef> cell(std::string_view name) const;
    Result<Sym> size(const Json& json);
    Result<Sym> named_size(std::string_view name);
    Result<Sym> size_expression(const Json& json);

    const Json& model_;
    const PayloadTable& weights_;
    const PayloadTable& constants_;
    const PayloadReader& read_;
    Budget budget_;
    const Json* graph_ = nullptr;
    Builder builder_{"forward"};
    std::map<std::string, CellRef, std::less<>> cells_;
    std::vector<CellRef> buffers_;
    std::map<std::string, SymbolRange, std::less<>> ranges_;
    std::set<std::string, std::less<>> declared_;
};

/// "torch.ops.aten.add_.Tensor" as the table's entry, and whether it writes its first operand. Null where lyo has none.
struct Target {
    const Op* op = nullptr;
    bool in_place = false;
};
Target find_target(std::string_view target);
/// Nodes that compute sizes or state facts: no operator is needed for them.
bool is_about_sizes(std::string_view target) noexcept;

}  // namespace lyo
