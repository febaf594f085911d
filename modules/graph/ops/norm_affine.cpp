// Normalizations: (x - mean) * rsqrt(variance + eps) over some dimensions, then weight and bias. Statistics take two
// passes (mean, then mean of squares), half types are computed in f32 and rounded at the end.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

Result<> float_operand(const NodeView& node) {
    const DType dtype = node.type(0).dtype;
    if (is_float(dtype)) return {};
    return mismatch(ErrorCode::bad_graph, node.place(), "dtype", "a floating one", to_string(dtype));
}

/// The optional tensor `i` must have this shape.
Result<> has_shape(const InferContext& context, std::size_t i, const Shape& shape) {
    if (context.is_none(i)) return {};
    const TensorType& type = context.type(i);
    const std::string& name = context.op().params[i].name;
    if (!is_float(type.dtype))
        return mismatch(ErrorCode::bad_graph, context.place(), cat("dtype of ", name), "a floating one",
                        to_string(type.dtype));
    if (type.rank() != shape.size())
        return mismatch(ErrorCode::bad_graph, context.place(), name, to_string(shape), to_string(type.shape));
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const auto same = context.equal(shape[d], type.shape[d], name);
        if (!same) return std::unexpected(same.error());
    }
    return {};
}

/// Where the parts of a normalization stand among the arguments.
struct Places {
    std::optional<std::size_t> weight, bias;
};
Places places_of(const NodeView& node) {
    Places out;
    if (const auto i = parameter(node, "weight"); i && !node.is_none(*i)) out.weight = *i;
    if (const auto i = parameter(node, "bias"); i && !node.is_none(*i)) out.bias = *i;
    return out;
}

/// x * weight + bias, both brought to `shape` first (their own when it is empty).
ValueId affine(Steps& steps, const NodeView& node, ValueId x, const Shape& shape, DType dtype) {
    const Places places = places_of(node);
    const auto part = [&](std::size_t i) {
        const ValueId value = steps.cast(node.tensor(i), dtype);
        return shape.empty() ? value : steps.reshape(value, shape);
    };
    if (places.weight) x = steps.mul(x, part(*places.weight));
    if (places.bias) x = steps.add(x, part(*places.bias));
    return x;
}

struct Normalized {
    ValueId value, mean, rstd;
};
Normalized normalize(Steps& steps, ValueId x, const Axes& axes, double eps) {
    const ValueId mean = steps.mean(x, axes, true);
    const ValueId centered = steps.sub(x, mean);
    const ValueId variance = steps.mean(steps.mul(centered, centered), axes, true);
    const ValueId rstd = steps.call("rsqrt", {steps.add(variance, eps)});
    return {steps.mul(centered, rstd), mean, rstd};
}

struct Moments {
    double mean = 0, rstd = 0;
};
Moments moments(const HostTensor& in, std::span<const std::size_t> group, double eps) {
    const auto n = static_cast<double>(group.size());
    double total = 0, squares = 0;
    for (const std::size_t i : group) total += in.reals[i];
    for (const std::size_t i : group) squares += (in.reals[i] - total / n) * (in.reals[i] - total / n);
    return {total / n, 1 / std::sqrt(squares / n + eps)};
}

/// The outputs of a native_* operator, or the first one.
template <class T>
std::vector<T> three(bool native, T first, T second, T third) {
    std::vector<T> out;
    out.push_back(std::move(first));
    if (native) {
        out.push_back(std::move(second));
        out.push_back(std::move(third));
    }
    return out;
}

// layer_norm, rms_norm: over the last dimensions, which `normalized_shape` repeats.

Axes trailing(const NodeView& node) {
    const std::size_t rank = node.type(0).rank(), count = node.sizes(1).size();
    Axes axes;
    for (std::size_t d = rank - count; d < rank; ++d) axes.push_back(d);
    return axes;
}

Result<> check_trailing(const InferContext& context) {
    if (const auto ok = float_operand(context); !ok) return ok;
    const Shape& shape = context.type(0).shape;
    const Shape& last = context.sizes(1);
    if (last.empty() || last.size() > shape.size())
        return mismatch(ErrorCode::bad_graph, context.place(), "dimensions of normalized_shape",
                        cat("in [1, ", shape.size(), "]"), last.size());
    for (std::size_t d = 0; d < last.size(); ++d) {
        const auto same = context.equal(shape[shape.size() - last.size() + d], last[d], "normalized_shape");
        if (!same) return std::unexpected(same.error());
    }
    for (const std::string_view name : {"weight", "bias"}) {
        const auto i = parameter(context, name);
        if (!i) continue;
        if (const auto ok = has_shape(context, *i, last); !ok) return ok;
    }
    return {};
}

double eps_of(const NodeView& node) noexcept {
    const auto i = parameter(node, "eps");
    if (!node.is_none(*i)) return node.real(*i);
    // rms_norm's default: that of the type in which it is computed.
    return compute_dtype(node.type(0).dtype) == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                           : static_cast<double>(std::numeric_limits<float>::epsilon());
}

template <bool native>
struct LayerNorm {
    static Types infer(const InferContext& context) {
        if (const auto ok = check_trailing(context); !ok) return std::unexpected(ok.error());
        const TensorType& self = context.type(0);
        const TensorType stats{self.dtype, reduced(self.shape, trailing(context), true)};
        return three(native, self, stats, stats);
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        const NodeView& node = context.node();
        auto out = context.make(in.dtype, in.shape), mean = make_result(context, native ? 1 : 0), rstd = mean;
        if (!out) return std::unexpected(out.error());
        if (!mean) return std::unexpected(mean.error());
        const Places places = places_of(node);
        const double eps = eps_of(node);
        for_each_group(in.shape, trailing(node), [&](std::size_t at, std::span<const std::size_t> group) {
            const Moments m = moments(in, group, eps);
            if (native) mean->reals[at] = m.mean;
            if (native) rstd->reals[at] = m.rstd;
            for (std::size_t k = 0; k < group.size(); ++k) {
                double y = (in.reals[group[k]] - m.mean) * m.rstd;
                if (places.weight) y *= context.tensor(*places.weight).reals[k];
                if (places.bias) y += context.tensor(*places.bias).reals[k];
                out->reals[group[k]] = y;
            }
        });
        return three(native, std::move(*out), std::move(*mean), std::move(*rstd));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const DType dtype = node.type(0).dtype, compute = compute_dtype(dtype);
        const Axes axes = trailing(node);
        Steps steps(builder);
        const Normalized n = normalize(steps, steps.cast(node.tensor(0), compute), axes, eps_of(node));
        const ValueId out = steps.cast(affine(steps, node, n.value, {}, compute), dtype);
        if (!native) return steps.done({out});
        return steps.done({out, steps.cast(n.mean, dtype), steps.cast(n.rstd, dtype)});
    }
};

/// rms_norm; the fused form also gives 1 / rms, in the type of the computation.
template <bool fused>
struct RmsNorm {
    static Types infer(const InferContext& context) {
        if (const auto ok = check_trailing(context); !ok) return std::unexpected(ok.error());
        const TensorType& self = context.type(0);
        std::vector<TensorType> out{self};
        if (fused) out.push_back({compute_dtype(self.dtype), reduced(self.shape, trailing(context), true)});
        return out;
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        const NodeView& node = context.node();
        auto out = context.make(in.dtype, in.shape), rstd = make_result(context, fused ? 1 : 0);
        if (!out) return std::unexpected(out.error());
        if (!rstd) return std::unexpected(rstd.error());
        const Places places = places_of(node);
        const double eps = eps_of(node);
        for_each_group(in.shape, trailing(node), [&](std::size_t at, std::span<const std::size_t> group) {
            double squares = 0;
            for (const std::size_t i : group) squares += in.reals[i] * in.reals[i];
            const double scale = 1 / std::sqrt(squares / static_cast<double>(group.size()) + eps);
            if (fused) rstd->reals[at] = scale;
            for (std::size_t k = 0; k < group.size(); ++k) {
                const double y = in.reals[group[k]] * scale;
                out->reals[group[k]] = places.weight ? y * context.tensor(*places.weight).reals[k] : y;
            }
        });
        std::vector<HostTensor> outputs;
        outputs.push_back(std::move(*out));
        if (fused) outputs.push_back(std::move(*rstd));
        return outputs;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const DType dtype = node.type(0).dtype, compute = compute_dtype(dtype);
        const Axes axes = trailing(node);
        Steps steps(builder);
        const ValueId x = steps.cast(node.tensor(0), compute);
        const ValueId squares = steps.mean(steps.mul(x, x), axes, true);
        const ValueId rstd = steps.call("rsqrt", {steps.add(squares, eps_of(node))});
        const ValueId out = steps.cast(affine(steps, node, steps.mul(x, rstd), {}, compute), dtype);
        if (!fused) return steps.done({out});
        return steps.done({out, rstd});
    }
};

// Normalizations with one weight a channel: dimension 1.

Result<> check_channels(const InferContext& context, std::initializer_list<std::string_view> names) {
    if (const auto ok = float_operand(context); !ok) return ok;
    if (context.type(0).rank() < 2)
        return mismatch(ErrorCode::bad_graph, context.place(), "rank", "at least 2", context.type(0).rank());
    for (const std::string_view name : names) {
        const auto i = parameter(context, name);
        if (const auto ok = has_shape(context, *i, {context.type(0).shape[1]}); !ok) return ok;
    }
    return {};
}

Shape channel_shape(const Shape& shape) {
    Shape out(shape.size(), Sym(1));
    out[1] = shape[1];
    return out;
}

std::size_t channel_of(std::size_t linear, const Dims& shape) noexcept {
    return static_cast<std::size_t>(unravel(linear, shape)[1]);
}

Result<std::int64_t> groups_of(const NodeView& node) {
    const auto i = parameter(node, "num_groups");
    return node.integer(i ? *i : *parameter(node, "group"));
}

/// [N, G, everything else], which row-major x also is.
Shape grouped_shape(const Shape& shape, std::int64_t groups) {
    Sym rest = floor_div(shape[1], groups);
    for (std::size_t d = 2; d < shape.size(); ++d) rest = rest * shape[d];
    return {shape[0], groups, rest};
}

template <bool native>
struct GroupNorm {
    static Types infer(const InferContext& context) {
        if (const auto ok = check_channels(context, {"weight", "bias"}); !ok) return std::unexpected(ok.error());
        const auto groups = groups_of(context);
        if (!groups) return std::unexpected(groups.error());
        const TensorType& self = context.type(0);
        if (*groups <= 0) return mismatch(ErrorCode::bad_graph, context.place(), "groups", "at least 1", *groups);
        const auto whole = context.equal(floor_div(self.shape[1], *groups) * Sym(*groups), self.shape[1], "channels");
        if (!whole) return std::unexpected(whole.error());
        if (native) {
            const Sym& batch = context.size(3);
            const Sym count = batch * context.size(4) * context.size(5);
            const auto same = context.equal(element_count(self.shape), count, "elements");
            if (!same) return std::unexpected(same.error());
        }
        const TensorType stats{self.dtype, {self.shape[0], *groups}};
        return three(native, self, stats, stats);
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        const NodeView& node = context.node();
        const auto groups = groups_of(node);
        if (!groups) return std::unexpected(groups.error());
        auto out = context.make(in.dtype, in.shape), mean = context.make(in.dtype, {in.shape[0], *groups}), rstd = mean;
        if (!out) return std::unexpected(out.error());
        if (!mean) return std::unexpected(mean.error());
        const Places places = places_of(node);
        const double eps = eps_of(node);
        std::int64_t rest = in.shape[1] / *groups;
        for (std::size_t d = 2; d < in.shape.size(); ++d) rest *= in.shape[d];
        for_each_group({in.shape[0], *groups, rest}, {2}, [&](std::size_t at, std::span<const std::size_t> group) {
            const Moments m = moments(in, group, eps);
            mean->reals[at] = m.mean;
            rstd->reals[at] = m.rstd;
            for (const std::size_t i : group) {
                const std::size_t channel = channel_of(i, in.shape);
                double y = (in.reals[i] - m.mean) * m.rstd;
                if (places.weight) y *= context.tensor(*places.weight).reals[channel];
                if (places.bias) y += context.tensor(*places.bias).reals[channel];
                out->reals[i] = y;
            }
        });
        return three(native, std::move(*out), std::move(*mean), std::move(*rstd));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto groups = groups_of(node);
        if (!groups) return std::unexpected(groups.error());
        const TensorType self = node.type(0);
        const DType compute = compute_dtype(self.dtype);
        Steps steps(builder);
        const ValueId x = steps.reshape(steps.cast(node.tensor(0), compute), grouped_shape(self.shape, *groups));
        const Normalized n = normalize(steps, x, {2}, eps_of(node));
        const ValueId value = steps.reshape(n.value, self.shape);
        const ValueId out = steps.cast(affine(steps, node, value, channel_shape(self.shape), compute), self.dtype);
        if (!native) return steps.done({out});
        const Shape stats{self.shape[0], *groups};
        return steps.done({out, steps.cast(steps.reshape(n.mean, stats), self.dtype),
                           steps.cast(steps.reshape(n.rstd, stats), self.dtype)});
    }
};

// batch_norm in inference, with the running statistics; instance_norm with them or with each instance's own.

struct Running {
    std::size_t mean = 0, variance = 0;
};

Result<Running> running_of(const NodeView& node) {
    const Running out{*parameter(node, "running_mean"), *parameter(node, "running_var")};
    if (node.is_none(out.mean) || node.is_none(out.variance)) return node.unsupported("running statistics are missing");
    return out;
}

std::vector<TensorType> with_empty_stats(const InferContext& context, bool native) {
    // PyTorch gives empty tensors for the statistics that only training saves.
    const TensorType& self = context.type(0);
    const TensorType none{compute_dtype(self.dtype), {0}};
    return three(native, self, none, none);
}

HostTensor none_saved(DType dtype) { return {compute_dtype(dtype), {0}, {}, {}}; }

Result<HostTensor> eval_with_running(const EvalContext& context) {
    const HostTensor& in = context.tensor(0);
    const NodeView& node = context.node();
    const auto running = running_of(node);
    if (!running) return std::unexpected(running.error());
    auto out = context.make(in.dtype, in.shape);
    if (!out) return out;
    const Places places = places_of(node);
    const double eps = eps_of(node);
    for (std::size_t i = 0; i < in.reals.size(); ++i) {
        const std::size_t channel = channel_of(i, in.shape);
        // PyTorch's order: a line for each channel, of which infinities show.
        double scale = 1 / std::sqrt(context.tensor(running->variance).reals[channel] + eps);
        if (places.weight) scale *= context.tensor(*places.weight).reals[channel];
        const double bias = places.bias ? context.tensor(*places.bias).reals[channel] : 0;
        out->reals[i] = in.reals[i] * scale + (bias - context.tensor(running->mean).reals[channel] * scale);
    }
    return out;
}

/// x * scale + shift: both depend on the parameters alone, so they fold into constants.
Result<ValueId> decompose_with_running(Steps& steps, const NodeView& node) {
    const auto running = running_of(node);
    if (!running) return std::unexpected(running.error());
    const Places places = places_of(node);
    const TensorType self = node.type(0);
    const DType compute = compute_dtype(self.dtype);
    const auto part = [&](std::size_t i) { return steps.cast(node.tensor(i), compute); };
    ValueId scale = steps.call("rsqrt", {steps.add(part(running->variance), eps_of(node))});
    if (places.weight) scale = steps.mul(scale, part(*places.weight));
    ValueId shift = steps.mul(part(running->mean), scale);
    shift = places.bias ? steps.sub(part(*places.bias), shift) : steps.call("neg", {shift});
    const Shape shape = channel_shape(self.shape);
    const ValueId x = steps.cast(node.tensor(0), compute);
    return steps.cast(steps.add(steps.mul(x, steps.reshape(scale, shape)), steps.reshape(shift, shape)), self.dtype);
}

template <bool native>
struct BatchNorm {
    static Types infer(const InferContext& context) {
        const auto names = {std::string_view("weight"), std::string_view("bias"), std::string_view("running_mean"),
                            std::string_view("running_var")};
        if (const auto ok = check_channels(context, names); !ok) return std::unexpected(ok.error());
        if (const auto i = parameter(context, "training"); i && context.boolean(*i))
            return context.unsupported("batch statistics (training=True)");
        if (const auto running = running_of(context); !running) return std::unexpected(running.error());
        return with_empty_stats(context, native);
    }
    static Values eval(const EvalContext& context) {
        auto out = eval_with_running(context);
        if (!out) return std::unexpected(out.error());
        const DType dtype = out->dtype;
        return three(native, std::move(*out), none_saved(dtype), none_saved(dtype));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps steps(builder);
        const DType dtype = compute_dtype(node.type(0).dtype);
        const auto out = decompose_with_running(steps, node);
        if (!out) return std::unexpected(out.error());
        if (!native) return steps.done({*out});
        return steps.done({*out, steps.full({0}, 0.0, dtype), steps.full({0}, 0.0, dtype)});
    }
};

struct InstanceNorm {
    static bool own_stats(const NodeView& node) { return node.boolean(*parameter(node, "use_input_stats")); }
    static Axes spatial(const NodeView& node) {
        Axes axes = all_axes(node.type(0).rank());
        axes.erase(axes.begin(), axes.begin() + 2);
        return axes;
    }
    static Types infer(const InferContext& context) {
        const auto names = {std::string_view("weight"), std::string_view("bias"), std::string_view("running_mean"),
                            std::string_view("running_var")};
        if (const auto ok = check_channels(context, names); !ok) return std::unexpected(ok.error());
        const bool tracked = !context.is_none(*parameter(context, "running_mean"));
        if (own_stats(context) && tracked) return context.unsupported("statistics that update running ones (training)");
        if (!own_stats(context))
            if (const auto running = running_of(context); !running) return std::unexpected(running.error());
        return one(context.type(0));
    }
    static Values eval(const EvalContext& context) {
        const NodeView& node = context.node();
        if (!own_stats(node)) {
            auto out = eval_with_running(context);
            if (!out) return std::unexpected(out.error());
            return one(std::move(*out));
        }
        const HostTensor& in = context.tensor(0);
        auto out = context.make(in.dtype, in.shape);
        if (!out) return std::unexpected(out.error());
        const Places places = places_of(node);
        const double eps = eps_of(node);
        for_each_group(in.shape, spatial(node), [&](std::size_t, std::span<const std::size_t> group) {
            const Moments m = moments(in, group, eps);
            for (const std::size_t i : group) {
                const std::size_t channel = channel_of(i, in.shape);
                double y = (in.reals[i] - m.mean) * m.rstd;
                if (places.weight) y *= context.tensor(*places.weight).reals[channel];
                if (places.bias) y += context.tensor(*places.bias).reals[channel];
                out->reals[i] = y;
            }
        });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        Steps steps(builder);
        if (!own_stats(node)) {
            const auto out = decompose_with_running(steps, node);
            if (!out) return std::unexpected(out.error());
            return steps.done({*out});
        }
        const TensorType self = node.type(0);
        const DType compute = compute_dtype(self.dtype);
        const ValueId x = steps.cast(node.tensor(0), compute);
        const Normalized n = normalize(steps, x, spatial(node), eps_of(node));
        const ValueId out = affine(steps, node, n.value, channel_shape(self.shape), compute);
        return steps.done({steps.cast(out, self.dtype)});
    }
};

constexpr OpDef defs[] = {
    made<LayerNorm<false>>(
        "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1e-05, bool cudnn_enable=True) -> Tensor"),
    made<LayerNorm<true>>("native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
                          "float eps) -> (Tensor, Tensor, Tensor)"),
    made<RmsNorm<false>>("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
                         "Tensor"),
    made<RmsNorm<true>>("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, "
                        "Tensor)"),
    made<GroupNorm<false>>("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
                           "eps=1e-05, bool cudnn_enabled=True) -> Tensor"),
    made<GroupNorm<true>>(
        "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
        "int group, float eps) -> (Tensor, Tensor, Tensor)"),
    made<InstanceNorm>("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                       "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor"),
    made<BatchNorm<false>>("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                           "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor"),
    made<BatchNorm<true>>("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                          "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)"),
    made<BatchNorm<true>>("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
                          "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)"),
};

}  // namespace

std::span<const OpDef> norm_affine() { return defs; }

}  // namespace lyo::ops
