// What the families of views, reductions, norms, products, creation and joins share: sizes and their bounds, axes,
// evaluation by groups, and short names for the steps of decompositions.
module lyo.graph:tools;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;
import :op;
import :build;
import :ops;

namespace lyo::ops {

// Parts of families that have several files.
std::span<const OpDef> view_index();       // view_index.cpp: slice.Tensor, select.int, flip, ...
std::span<const OpDef> view_split();       // view_split.cpp: split.Tensor, chunk, unbind.int, ...
std::span<const OpDef> view_shape();       // view_shape.cpp: expand_as, meshgrid, pixel_shuffle, ...
std::span<const OpDef> reduction_stats();  // reduction_stats.cpp: var, std, norms, logsumexp, ...
std::span<const OpDef> norm_affine();      // norm_affine.cpp: layer_norm, group_norm, batch_norm, ...
std::span<const OpDef> einsum();           // einsum.cpp: einsum, tensordot, outer, ...
std::span<const OpDef> attention();        // attention.cpp: scaled_dot_product_attention
std::span<const OpDef> pad();              // pad.cpp: pad, constant_pad_nd, reflection_pad1d, ...
std::vector<OpDef> joined(std::initializer_list<std::span<const OpDef>> families);

using Values = Result<std::vector<HostTensor>>;
using Ids = Result<std::vector<ValueId>>;
using View = Result<std::optional<StridedView>>;

// Sizes.

/// Between which numbers an expression lies, from the ranges of the graph's symbols.
struct Bounds {
    std::optional<std::int64_t> low, high;
};
Bounds bounds_of(const Graph& graph, const Sym& value);
/// max and min, decided where the bounds decide them.
Sym larger(const Graph& graph, const Sym& a, const Sym& b);
Sym smaller(const Graph& graph, const Sym& a, const Sym& b);
/// a >= b in every call: by the bounds, or by a guard. Errors: bad_graph when it never is.
Result<> at_least(const InferContext& context, const Sym& a, const Sym& b, std::string_view what);
/// ceil(a / b) for a >= 0 and b > 0.
Sym ceil_div(const Sym& a, const Sym& b);
/// Row-major strides.
Shape row_major(const Shape& shape);

// Axes: dimensions in [0, rank).

using Axes = std::vector<std::size_t>;
Axes all_axes(std::size_t rank);
/// The int argument `i` as an axis of a tensor of this rank. Errors: bad_graph, unsupported_argument.
Result<std::size_t> axis_at(const NodeView& node, std::size_t i, std::size_t rank);
/// The int[] argument `i` as sorted axes; None and, unless `empty_is_none`, an empty list mean all. A tensor without
/// dimensions has no axes. Errors: bad_graph, unsupported_argument.
Result<Axes> axes_at(const NodeView& node, std::size_t i, std::size_t rank, bool empty_is_none = false);
/// What a reduction was asked for, by the names of its parameters: dim (int, int[] or neither), keepdim, dtype.
struct Request {
    Axes axes;
    bool keepdim = false;
    std::optional<DType> dtype;
};
Result<Request> request_of(const NodeView& node, bool empty_is_none = false);
/// The position of the parameter of that name.
std::optional<std::size_t> parameter(const NodeView& node, std::string_view name) noexcept;
std::vector<Sym> to_syms(const Axes& axes);
bool contains(const Axes& axes, std::size_t axis) noexcept;
/// The shape after a reduction.
Shape reduced(const Shape& shape, const Axes& axes, bool keepdim);
/// Number of elements along the axes.
Sym count_along(const Shape& shape, const Axes& axes);

// Evaluation.

/// The type of an output of this call, by inference, and a zeroed tensor of that type.
Result<HostTensor> make_result(const EvalContext& context, std::size_t output = 0);
/// The same elements under another dtype: reals to integers truncate, nothing is rounded.
HostTensor converted(const HostTensor& tensor, DType dtype);
/// element `to` of `out` = element `from` of `in`; both have one dtype.
void copy_element(const HostTensor& in, std::size_t from, HostTensor& out, std::size_t to) noexcept;
/// A new tensor each of whose elements is copied from the source at `map(coordinates)`.
template <class Map>
void gather(const HostTensor& in, HostTensor& out, Map map) {
    const auto count = static_cast<std::size_t>(out.numel());
    for (std::size_t i = 0; i < count; ++i) copy_element(in, ravel(map(unravel(i, out.shape)), in.shape), out, i);
}
/// Calls visit(index of the result, indices of its group) for every element of a reduction over `axes`; a group is in
/// row-major order of the reduced dimensions.
template <class Visit>
void for_each_group(const Dims& shape, const Axes& axes, Visit visit) {
    const Dims strides = contiguous_strides(shape);
    Dims sizes[2], steps[2];  // kept, reduced
    for (std::size_t d = 0; d < shape.size(); ++d) {
        sizes[contains(axes, d)].push_back(shape[d]);
        steps[contains(axes, d)].push_back(strides[d]);
    }
    const auto offsets = [&](int side) {
        const std::span<const std::int64_t> along(sizes[side].begin(), sizes[side].end());
        std::vector<std::size_t> out(static_cast<std::size_t>(element_count(along).value_or(0)));
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Dims at = unravel(i, sizes[side]);
            for (std::size_t d = 0; d < at.size(); ++d) out[i] += static_cast<std::size_t>(at[d] * steps[side][d]);
        }
        return out;
    };
    const std::vector<std::size_t> bases = offsets(0), members = offsets(1);
    std::vector<std::size_t> group(members.size());
    for (std::size_t g = 0; g < bases.size(); ++g) {
        for (std::size_t m = 0; m < members.size(); ++m) group[m] = bases[g] + members[m];
        visit(g, std::span<const std::size_t>(group));
    }
}
/// The reduction of one group into element `at` of `out`: NaN propagates through max and min, the first of equals is
/// their index. Of nothing, the sum is 0, the product 1, the max the dtype's lowest value, the min its highest.
void fold(ScalarOp op, const HostTensor& in, std::span<const std::size_t> group, HostTensor& out, std::size_t at);

// Decomposition.

/// The dtype in which PyTorch computes on values of a dtype.
constexpr DType compute_dtype(DType dtype) noexcept {
    return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

/// The builder, with short names for what decompositions do often. Steps that change nothing add no node.
class Steps {
  public:
    explicit Steps(Builder& builder) noexcept : builder_(&builder) {}

    /// A copy: the next step may move the builder's values. After an error, an f32 scalar.
    TensorType type(ValueId x) const;
    ValueId call(std::string_view op, std::vector<Argument> arguments, std::vector<Named> named = {}) {
        return builder_->call(op, std::move(arguments), std::move(named));
    }

    ValueId cast(ValueId x, DType dtype);
    ValueId add(ValueId x, Argument y) { return call("add.Tensor", {x, std::move(y)}); }
    ValueId sub(ValueId x, Argument y) { return call("sub.Tensor", {x, std::move(y)}); }
    ValueId mul(ValueId x, Argument y) { return call("mul.Tensor", {x, std::move(y)}); }
    ValueId div(ValueId x, Argument y) { return call("div.Tensor", {x, std::move(y)}); }
    ValueId where(ValueId condition, ValueId x, ValueId y) { return call("where.self", {condition, x, y}); }
    /// A tensor of one value.
    ValueId full(const Shape& shape, Argument value, DType dtype);
    /// start, start + 1, ...
    ValueId iota(const Sym& length, const Sym& start = 0, DType dtype = DType::i64);

    ValueId reshape(ValueId x, const Shape& shape);
    ValueId expand(ValueId x, const Shape& shape);
    ValueId permute(ValueId x, const Axes& axes);
    ValueId unsqueeze(ValueId x, std::size_t axis);
    ValueId squeeze(ValueId x, std::size_t axis);
    ValueId slice(ValueId x, std::size_t axis, const Sym& start, const Sym& end);

    /// "lyo_sum", ...: over no axes, the value itself.
    ValueId reduce(std::string_view op, ValueId x, const Axes& axes, bool keepdim);
    ValueId mean(ValueId x, const Axes& axes, bool keepdim);
    /// Softmax, but zeros where every element is -inf (a row that a mask hides).
    ValueId safe_softmax(ValueId x, const Axes& axes);
    /// Both of one dtype and of at least two dimensions.
    ValueId matmul(ValueId x, ValueId y) { return call("lyo_matmul", {x, y}); }
    ValueId cat(const std::vector<ValueId>& parts, std::size_t axis);

    /// What a DecomposeFn returns: the outputs, or the builder's error.
    Ids done(std::vector<ValueId> outputs) const;

  private:
    Builder* builder_;
};

/// The entry of an operator that is decomposed: T has infer, eval and decompose.
template <class T, bool differentiable = false>
constexpr OpDef made(std::string_view schema) {
    return {.schema = schema,
            .infer = T::infer,
            .eval = T::eval,
            .decompose = T::decompose,
            .differentiable = differentiable};
}

/// A list of tensors as an argument.
Argument tensor_list(const std::vector<ValueId>& tensors);

}  // namespace lyo::ops
