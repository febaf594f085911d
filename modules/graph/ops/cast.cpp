// Conversions between dtypes, and the operators that are nothing once a model is compiled: copies, moves between
// devices, memory formats, dropout at inference.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;
import :pointwise;

namespace lyo::ops {
namespace {

/// The dtype that a conversion names: its ScalarType argument, the dtype of its tensor `other`, or none.
DType target_of(const NodeView& node) noexcept {
    if (const auto i = parameter(node, "dtype"); i && !node.is_none(*i)) return node.dtype(*i);
    if (const auto i = parameter(node, "other"); i && node.is_tensor(*i)) return node.type(*i).dtype;
    return node.type(0).dtype;
}

struct Cast {
    static Types infer(const InferContext& context) { return one(target_of(context), context.type(0).shape); }
    static Scalar emit(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> operands) {
        return e.round_to(operands[0], target_of(node));
    }
};
constexpr OpDef cast_op(std::string_view schema) {
    return {.schema = schema, .infer = Cast::infer, .eval = eval_pointwise, .emit = Cast::emit, .differentiable = true};
}

/// to.other, type_as: of the other tensor only the dtype counts, whatever its shape.
struct CastLike {
    static std::vector<Argument> arguments(const NodeView& node) {
        return {node[0], target_of(node), false, false, std::monostate{}};
    }
    static Values eval(const EvalContext& context) {
        const std::vector<Argument> plain = arguments(context.node());
        return eval_pointwise(context.with(NodeView(context.node().graph(), *find_op("to.dtype"), plain)));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps steps(builder);
        return steps.done({steps.call("to.dtype", arguments(node))});
    }
};
constexpr OpDef cast_like(std::string_view schema) {
    return {.schema = schema,
            .infer = Cast::infer,
            .eval = CastLike::eval,
            .decompose = CastLike::decompose,
            .differentiable = true};
}

struct Identity {
    static Types infer(const InferContext& context) {
        if (const auto train = parameter(context, "train");
            train && !context.is_none(*train) && context.boolean(*train)) {
            const auto p = parameter(context, "p");
            if (p && context.real(*p) != 0) return context.unsupported("dropout in training: call model.eval() first");
        }
        return one(context.type(0));
    }
    static Result<std::vector<HostTensor>> eval(const EvalContext& context) { return one(context.tensor(0)); }
    static View view(const NodeView&, const StridedView& operand, const TensorType&) { return operand; }
};
constexpr OpDef identity(std::string_view schema) {
    return {.schema = schema,
            .infer = Identity::infer,
            .eval = Identity::eval,
            .view = Identity::view,
            .differentiable = true};
}

/// copy: the source, broadcast and converted to the destination's type.
struct Copy {
    static Types infer(const InferContext& context) {
        const auto shape = context.broadcast(context.type(0).shape, context.type(1).shape);
        if (!shape) return std::unexpected(shape.error());
        if (shape->size() != context.type(0).rank())
            return mismatch(ErrorCode::bad_graph, context.place(), "rank of src",
                            cat("at most ", context.type(0).rank()), context.type(1).rank());
        return one(context.type(0));
    }
    static Scalar emit(ScalarEmitter& e, const NodeView& node, std::span<const Scalar> operands) {
        return e.round_to(operands[1], node.type(0).dtype);
    }
};

constexpr OpDef defs[] = {
    cast_op("to.dtype(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
            "memory_format=None) -> Tensor"),
    cast_op("to.dtype_layout(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor"),
    cast_op("to.device(Tensor self, Device? device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
            "MemoryFormat? memory_format=None) -> Tensor"),
    cast_like("to.other(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
              "memory_format=None) -> Tensor"),
    cast_op("_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor"),
    cast_op("to.prim_dtype(Tensor self, ScalarType? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor"),
    cast_like("type_as(Tensor self, Tensor other) -> Tensor"),
    {.schema = "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
     .infer = Copy::infer,
     .eval = eval_pointwise,
     .emit = Copy::emit,
     .differentiable = true},

    identity("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"),
    identity("contiguous(Tensor self, *, MemoryFormat memory_format=contiguous_format) -> Tensor"),
    identity("alias(Tensor self) -> Tensor"),
    identity("detach(Tensor self) -> Tensor"),
    identity("lift(Tensor self) -> Tensor"),
    identity("lift_fresh(Tensor self) -> Tensor"),
    identity("lift_fresh_copy(Tensor self) -> Tensor"),
    identity("positive(Tensor self) -> Tensor"),
    identity("resolve_conj(Tensor self) -> Tensor"),
    identity("resolve_neg(Tensor self) -> Tensor"),
    identity("conj(Tensor self) -> Tensor"),
    identity("real(Tensor self) -> Tensor"),
    identity("dropout(Tensor input, float p, bool train) -> Tensor"),
    identity("feature_dropout(Tensor input, float p, bool train) -> Tensor"),
    identity("alpha_dropout(Tensor input, float p, bool train) -> Tensor"),
    identity("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor"),
};

}  // namespace

std::span<const OpDef> cast() { return defs; }

}  // namespace lyo::ops
