// The builder: graphs from C++, one call a node, types inferred and checked at once.
export module lyo.graph:build;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;
import :op;

namespace lyo {

/// An argument given by name.
export struct Named {
    std::string_view name;
    Argument value;
};

/// Builds a Graph. The first error sticks: later calls do nothing, and `finish` returns it.
///
///     lyo::Builder b("mlp");
///     auto x = b.input("x", lyo::DType::f32, {2, 2});
///     auto h = b.call("relu", {b.call("linear", {x, b.constant("w1", w1), b.constant("b1", b1)})});
///     b.output(b.call("linear", {h, b.constant("w2", w2), b.constant("b2", b2)}));
///     lyo::Result<lyo::Graph> graph = b.finish();
export class Builder {
  public:
    explicit Builder(std::string_view name = "forward");
    /// Goes on from a graph.
    explicit Builder(Graph graph);

    /// A symbolic size for shapes, with its range.
    Sym symbol(std::string_view name, std::int64_t min = 0,
               std::int64_t max = std::numeric_limits<std::int64_t>::max());
    ValueId input(std::string_view name, DType dtype, Shape shape);
    /// A CPU tensor of any strides; shared, not copied, when it is row-major.
    ValueId constant(std::string_view name, const Tensor& data);
    /// The only output of `op` (see `find_op`), with positional arguments and then named ones; parameters left out take
    /// the schema's defaults. Integers go in as Sym, so write {x, Sym(1)} or {x, std::vector<Sym>{2, 3}}.
    ValueId call(std::string_view op, std::vector<Argument> arguments, std::vector<Named> named = {});
    /// All outputs of an operator.
    std::vector<ValueId> call_all(std::string_view op, std::vector<Argument> arguments, std::vector<Named> named = {});
    /// Adds a node whose arguments are bound already. Errors: those of inference.
    Result<std::vector<ValueId>> add(const Op& op, std::vector<Argument> arguments);
    /// A relation between sizes that every call must satisfy.
    void require(Relation relation);
    void output(ValueId value);
    /// Names a value (unique names are made where it is taken).
    void rename(ValueId value, std::string_view name);

    /// The graph so far.
    const Graph& graph() const noexcept { return graph_; }
    const TensorType& type(ValueId id) const noexcept { return graph_.type(id); }
    /// Error so far, if any.
    const std::optional<Error>& error() const noexcept { return error_; }
    void set_error(Error error);
    /// The graph. Errors: the first error of any call; bad_graph when there is no output.
    Result<Graph> finish();

  private:
    ValueId add_value(std::string_view name, TensorType type);
    Graph graph_;
    std::set<std::string> names_;
    std::optional<Error> error_;
};

/// Arguments in the order of the schema, defaults filled in, kinds checked (an int is accepted where a float or Scalar
/// is wanted, one int where an int[] is). Errors: unsupported_argument.
export Result<std::vector<Argument>> bind_arguments(const Op& op, std::vector<Argument> positional,
                                                    std::vector<Named> named);

}  // namespace lyo
