// The families of the operator table, and what their files share. Each family is one or more files in this folder; the
// registry (op.cpp) joins them.
module lyo.graph:ops;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;
import :op;
import :build;

namespace lyo::ops {

// Families. A list may come from several files: the function that joins them is in the first.
std::span<const OpDef> unary();      // unary.cpp: sin, relu, gelu, ...
std::span<const OpDef> binary();     // binary.cpp: add.Tensor, pow.Tensor_Scalar, eq.Scalar, where.self, clamp, ...
std::span<const OpDef> cast();       // cast.cpp: to.dtype, _to_copy, alias, dropout, contiguous, ...
std::span<const OpDef> view();       // view.cpp: permute, slice.Tensor, expand, reshape, ...
std::span<const OpDef> reduction();  // reduction.cpp: sum.dim_IntList, mean, var, amax, argmax, any, ...
std::span<const OpDef> norm();       // norm.cpp: softmax, layer_norm, rms_norm, group_norm, ...
std::span<const OpDef> matmul();     // matmul.cpp: matmul, linear, addmm, bmm, einsum, ...
std::span<const OpDef> creation();   // creation.cpp: full, ones, arange, zeros_like, ...
std::span<const OpDef> join();       // join.cpp: cat, stack, pad, ...
std::span<const OpDef> indexing();   // indexing.cpp: embedding, gather, index.Tensor, cumsum, ...
std::span<const OpDef> window();     // window.cpp: convolutions and pooling

using Types = Result<std::vector<TensorType>>;

/// `dim` in [-rank, rank) as [0, rank); a rank of 0 counts as 1. Errors: bad_graph.
Result<std::size_t> normalize_dim(const NodeView& node, std::int64_t dim, std::size_t rank);
/// Several of them, distinct. Errors: bad_graph.
Result<std::vector<std::size_t>> normalize_dims(const NodeView& node, std::span<const std::int64_t> dims,
                                                std::size_t rank);

/// One output of a type, as an InferFn gives it.
inline Types one(TensorType type) {
    std::vector<TensorType> out;
    out.push_back(std::move(type));
    return out;
}
inline Types one(DType dtype, Shape shape) { return one(TensorType{dtype, std::move(shape)}); }

/// One output, as an EvalFn gives it.
inline Result<std::vector<HostTensor>> one(HostTensor tensor) {
    std::vector<HostTensor> out;
    out.push_back(std::move(tensor));
    return out;
}

/// Row-major index of the element that a broadcast operand of shape `from` has at row-major index `linear` of `to`.
std::size_t broadcast_index(std::size_t linear, const Dims& to, const Dims& from) noexcept;
/// The coordinates of a row-major index, and back.
Dims unravel(std::size_t linear, const Dims& shape) noexcept;
std::size_t ravel(const Dims& coordinates, const Dims& shape) noexcept;

}  // namespace lyo::ops
