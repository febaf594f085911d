// The operator table. An operator is one entry: its ATen schema, how its result's type follows from its operands, what
// it computes (reference), and how the compiler sees it: as a scalar expression, a view, a reduction, one of a few core
// kernels, or by decomposition into other operators. A new operator is a new entry in one file of ops/.
export module lyo.graph:op;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;

namespace lyo {

/// A parameter of a schema: "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "int" (also SymInt), "int?", "int[]",
/// "float", "float?", "float[]", "bool", "bool?", "bool[]", "Scalar", "Scalar?", "str", "str?", "ScalarType?", and
/// those that lyo accepts and ignores ("Device?", "Layout?", "MemoryFormat?", "Generator?").
export struct Param {
    std::string name;
    std::string type;
    bool keyword_only = false;
    std::optional<Argument> default_value;
};

/// What an operator's functions see of a node: its arguments by position, and the types of the values.
export class NodeView {
  public:
    NodeView(const Graph& graph, const Op& op, std::span<const Argument> arguments) noexcept
        : graph_(&graph), op_(&op), arguments_(arguments) {}

    const Graph& graph() const noexcept { return *graph_; }
    const Op& op() const noexcept { return *op_; }
    std::size_t size() const noexcept { return arguments_.size(); }
    const Argument& operator[](std::size_t i) const noexcept { return arguments_[i]; }
    bool is_none(std::size_t i) const noexcept { return std::holds_alternative<std::monostate>(arguments_[i]); }
    bool is_tensor(std::size_t i) const noexcept { return std::holds_alternative<ValueId>(arguments_[i]); }

    // The arguments have been bound against the schema, so asking for the type the schema names always works; optional
    // ones are asked is_none first.
    ValueId tensor(std::size_t i) const noexcept { return *std::get_if<ValueId>(&arguments_[i]); }
    std::optional<ValueId> optional_tensor(std::size_t i) const noexcept;
    std::span<const std::optional<ValueId>> tensors(std::size_t i) const noexcept;
    const TensorType& type(std::size_t i) const noexcept { return graph_->type(tensor(i)); }
    bool boolean(std::size_t i) const noexcept { return *std::get_if<bool>(&arguments_[i]); }
    /// int or SymInt.
    const Sym& size(std::size_t i) const noexcept { return *std::get_if<Sym>(&arguments_[i]); }
    /// An int that must be constant. Errors: unsupported_argument.
    Result<std::int64_t> integer(std::size_t i) const;
    /// float, or a Scalar of any kind, as a double (a symbolic one gives 0: ask is_symbolic first).
    double real(std::size_t i) const noexcept;
    const std::string& text(std::size_t i) const noexcept { return *std::get_if<std::string>(&arguments_[i]); }
    DType dtype(std::size_t i) const noexcept { return *std::get_if<DType>(&arguments_[i]); }
    const std::vector<Sym>& sizes(std::size_t i) const noexcept {
        return *std::get_if<std::vector<Sym>>(&arguments_[i]);
    }
    /// int[] that must be constant. Errors: unsupported_argument.
    Result<std::vector<std::int64_t>> integers(std::size_t i) const;

    /// `fail` with the operator's name as the place.
    template <class... Parts>
    [[nodiscard]] std::unexpected<Error> error(const Parts&... what) const {
        return fail(ErrorCode::bad_graph, place(), what...);
    }
    template <class... Parts>
    [[nodiscard]] std::unexpected<Error> unsupported(const Parts&... what) const {
        return fail(ErrorCode::unsupported_argument, place(), what...);
    }
    std::string_view place() const noexcept;

  private:
    const Graph* graph_;
    const Op* op_;
    std::span<const Argument> arguments_;
};

/// What inference may add to the graph: sizes that must be equal at run time become guards.
export class InferContext : public NodeView {
  public:
    InferContext(const NodeView& view, std::vector<Relation>& relations) noexcept
        : NodeView(view), relations_(&relations) {}
    /// Two sizes that the operator needs equal. Different constants are an error; anything not provable is assumed,
    /// and checked at every call. Gives the constant one if either is.
    Result<Sym> equal(const Sym& a, const Sym& b, std::string_view what) const;
    /// The shape to which two shapes broadcast.
    Result<Shape> broadcast(const Shape& a, const Shape& b) const;

  private:
    std::vector<Relation>* relations_;
};

/// A tensor of the reference interpreter: row-major, reals as doubles, integers and booleans as int64.
export struct HostTensor {
    DType dtype = DType::f32;
    Dims shape;
    std::vector<double> reals;
    std::vector<std::int64_t> ints;

    bool is_real() const noexcept { return is_float(dtype); }
    std::int64_t numel() const noexcept { return lyo::element_count(std::span<const std::int64_t>(shape)).value_or(0); }
    double real(std::size_t i) const noexcept { return is_real() ? reals[i] : static_cast<double>(ints[i]); }
    std::int64_t integer(std::size_t i) const noexcept { return is_real() ? double_to_int(reals[i]) : ints[i]; }
    /// Stores a value with the dtype's wrapping (integers) or as it is (reals keep double precision).
    void set(std::size_t i, double value) noexcept;
    void set(std::size_t i, std::int64_t value) noexcept;
};

/// What the reference evaluation of a node sees. Sizes are already numbers; types are those of this call.
export class EvalContext {
  public:
    EvalContext(const NodeView& node, const std::map<std::string, std::int64_t>& symbols,
                const std::vector<HostTensor>& values, std::size_t limit) noexcept
        : node_(node), symbols_(&symbols), values_(&values), limit_(limit) {}
    const NodeView& node() const noexcept { return node_; }
    /// The same call as another node of its operands sees it.
    EvalContext with(const NodeView& node) const noexcept {
        EvalContext out = *this;
        out.node_ = node;
        return out;
    }
    const HostTensor& tensor(std::size_t i) const noexcept { return (*values_)[node_.tensor(i).index]; }
    const HostTensor& tensor(ValueId id) const noexcept { return (*values_)[id.index]; }
    /// An int or SymInt argument of this call. Errors: invalid_argument.
    Result<std::int64_t> integer(std::size_t i) const;
    Result<std::vector<std::int64_t>> integers(std::size_t i) const;
    /// A Scalar or float argument as a double.
    Result<double> real(std::size_t i) const;
    /// A zeroed tensor. Errors: limit_exceeded (more elements than the interpreter is allowed), invalid_argument.
    Result<HostTensor> make(DType dtype, const Dims& shape) const;
    Result<Dims> dims(const Shape& shape) const;

  private:
    NodeView node_;
    const std::map<std::string, std::int64_t>* symbols_;
    const std::vector<HostTensor>* values_;
    std::size_t limit_;
};

/// A value in a scalar program under construction.
export struct Scalar {
    std::uint32_t id = 0;
};

/// Where a pointwise operator writes its scalar program. All operands of an operation have one dtype; use `cast`.
/// Arithmetic on integers narrower than their register, and on booleans, wraps as the dtype does.
export class ScalarEmitter {
  public:
    virtual ~ScalarEmitter() = default;
    virtual Scalar op(ScalarOp op, Scalar a) = 0;
    virtual Scalar op(ScalarOp op, Scalar a, Scalar b) = 0;
    /// condition (boolean) ? a : b.
    virtual Scalar select(Scalar condition, Scalar a, Scalar b) = 0;
    virtual Scalar constant(double value, DType dtype) = 0;
    virtual Scalar constant(std::int64_t value, DType dtype) = 0;
    /// A size as an i64.
    virtual Scalar size(const Sym& value) = 0;
    /// Conversion as Tensor.to(dtype) does it, without rounding between floats of one class (see `round_to`).
    virtual Scalar cast(Scalar a, DType dtype) = 0;
    /// Conversion that also rounds to f16 or bf16 (an explicit cast in the model).
    virtual Scalar round_to(Scalar a, DType dtype) = 0;
    virtual DType dtype(Scalar a) const noexcept = 0;
    /// An i64 that must be in [0, size): the call fails with index_out_of_range where it is not.
    virtual Scalar check_index(Scalar index, const Sym& size) = 0;
};

/// A strided window on a row-major tensor: offset and strides in elements.
export struct StridedView {
    Sym offset = 0;
    Shape shape;
    Shape strides;
};

export class Builder;

/// Types of the outputs. Errors: bad_graph, unsupported_argument.
export using InferFn = Result<std::vector<TensorType>>(*)(const InferContext&);
/// The outputs' values.
export using EvalFn = Result<std::vector<HostTensor>>(*)(const EvalContext&);
/// The scalar program of one element. `operands` has one entry per parameter: the element of a tensor argument (in its
/// own dtype), anything for other arguments. The result must have the output's dtype (of the same class is enough).
export using EmitFn = Scalar(*)(ScalarEmitter&, const NodeView&, std::span<const Scalar> operands);
/// The view of operand 0 that the node is, given the view that operand 0 is; nullopt when no strides describe it (the
/// compiler then copies operand 0 and asks again with a row-major view).
export using ViewFn =
    Result<std::optional<StridedView>>(*)(const NodeView&, const StridedView& operand, const TensorType& result);
/// Outputs in terms of other operators, added to the builder's graph; the node's operands exist there already.
export using DecomposeFn = Result<std::vector<ValueId>>(*)(Builder&, const NodeView&);

/// What remains after decomposition, besides pointwise operators and views.
export enum class Core : std::uint8_t {
    none,
    reduction,  ///< arguments: self, int[] dims (never empty, non-negative), bool keepdim
    matmul,     ///< [batch..., m, k] x [batch..., k, n], batches broadcast
    cat,        ///< tensors (all of the result's dtype and rank), dim
    arange,     ///< start, end, step: values start + i*step
    take,       ///< self, index (i64): the elements of self at row-major positions, which are within it
};

/// One entry of the table.
export struct OpDef {
    /// As in ATen's native_functions: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
    std::string_view schema;
    InferFn infer = nullptr;
    EvalFn eval = nullptr;
    // Exactly one of the following.
    EmitFn emit = nullptr;
    ViewFn view = nullptr;
    DecomposeFn decompose = nullptr;
    Core core = Core::none;
    /// The reduction of Core::reduction.
    ScalarOp reduce = ScalarOp::reduce_sum;
    bool differentiable = false;
};

/// An entry with its schema read.
export struct Op {
    OpDef def;
    std::string name;  ///< "add.Tensor"; the default overload without suffix: "relu"
    std::vector<Param> params;
    std::size_t outputs = 1;
};

/// The operator of that name ("add.Tensor", "relu" or "relu.default"), or null.
export const Op* find_op(std::string_view name) noexcept;
/// All operators, sorted by name.
export std::span<const Op* const> all_ops() noexcept;

}  // namespace lyo
