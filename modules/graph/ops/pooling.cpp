// Pooling: reductions over windows of the padded input.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;
import :window;

namespace lyo::ops {
namespace {

using Numbers = std::vector<std::int64_t>;

struct Form {
    std::size_t n = 0;
    Numbers kernel, stride, padding, dilation;
    bool ceil = false, include_padding = true;
    std::optional<std::int64_t> divisor;

    /// Padding behind the input so that the last window fits, and windows along a dimension of constant size.
    std::pair<std::int64_t, std::int64_t> behind_and_count(std::int64_t size, std::size_t d) const {
        const std::int64_t span = dilation[d] * (kernel[d] - 1) + 1, room = size + 2 * padding[d] - span;
        std::int64_t count = floor_div(room + (ceil ? stride[d] - 1 : 0), stride[d]) + 1;
        // The last window begins within the input or the padding before it.
        if (ceil && (count - 1) * stride[d] >= size + padding[d]) --count;
        return {std::max((count - 1) * stride[d] + span - size - padding[d], padding[d]), count};
    }
};

Result<Form> form_of(const NodeView& node) {
    Form f;
    const std::string_view name = node.op().name;
    f.n = name.find("1d") != std::string_view::npos ? 1 : name.find("2d") != std::string_view::npos ? 2 : 3;
    const TensorType& x = node.type(0);
    if (x.rank() != f.n + 1 && x.rank() != f.n + 2)
        return mismatch(ErrorCode::bad_graph, node.place(), "rank", cat(f.n + 1, " or ", f.n + 2), x.rank());
    if (!is_float(x.dtype))
        return mismatch(ErrorCode::bad_graph, node.place(), "dtype", "a floating one", to_string(x.dtype));
    const auto numbers = [&](std::string_view parameter_name, Numbers& to, const Numbers& otherwise,
                             std::int64_t least) -> Result<> {
        const auto i = parameter(node, parameter_name);
        if (!i || node.sizes(*i).empty()) {
            to = otherwise;
            return {};
        }
        auto list = spread(node, *i, f.n);
        if (!list) return std::unexpected(list.error());
        for (const std::int64_t v : *list)
            if (v < least)
                return mismatch(ErrorCode::bad_graph, node.place(), parameter_name, cat("at least ", least), v);
        to = std::move(*list);
        return {};
    };
    if (auto ok = numbers("kernel_size", f.kernel, Numbers(f.n, 1), 1); !ok) return std::unexpected(ok.error());
    if (auto ok = numbers("stride", f.stride, f.kernel, 1); !ok) return std::unexpected(ok.error());
    if (auto ok = numbers("padding", f.padding, Numbers(f.n, 0), 0); !ok) return std::unexpected(ok.error());
    if (auto ok = numbers("dilation", f.dilation, Numbers(f.n, 1), 1); !ok) return std::unexpected(ok.error());
    for (std::size_t d = 0; d < f.n; ++d)
        if (2 * f.padding[d] > f.kernel[d]) return node.error("padding is more than half of the kernel");
    if (const auto i = parameter(node, "ceil_mode")) f.ceil = node.boolean(*i);
    if (const auto i = parameter(node, "count_include_pad")) f.include_padding = node.boolean(*i);
    if (const auto i = parameter(node, "divisor_override"); i && !node.is_none(*i)) {
        const auto divisor = node.integer(*i);
        if (!divisor) return std::unexpected(divisor.error());
        if (*divisor == 0) return node.error("divisor_override is 0");
        f.divisor = *divisor;
    }
    return f;
}

Types infer_pool(const InferContext& context, std::size_t outputs) {
    const auto f = form_of(context);
    if (!f) return std::unexpected(f.error());
    TensorType out = context.type(0);
    const std::size_t lead = out.rank() - f->n;
    for (std::size_t d = 0; d < f->n; ++d) {
        Sym& size = out.shape[lead + d];
        if (size.is_constant()) {
            size = f->behind_and_count(size.value(), d).second;
        } else {
            if (f->ceil) return context.unsupported("ceil_mode over a symbolic size");
            size =
                floor_div(size + Sym(2 * f->padding[d] - f->dilation[d] * (f->kernel[d] - 1) - 1), Sym(f->stride[d])) +
                Sym(1);
        }
        if (auto ok = at_least(context, size, 1, "size of the output"); !ok) return std::unexpected(ok.error());
    }
    std::vector<TensorType> types{out};
    if (outputs == 2) types.push_back({DType::i64, out.shape});
    return types;
}

/// Calls visit(index of the output, positions of the window's elements that are inside, first position of the window).
template <class Visit>
void each_window(const Form& f, const HostTensor& x, const Dims& out_shape, Visit visit) {
    const std::size_t lead = x.shape.size() - f.n;
    Dims kernel;
    for (const std::int64_t k : f.kernel) kernel.push_back(k);
    const auto taps = static_cast<std::size_t>(element_count(std::span<const std::int64_t>(kernel)).value_or(0));
    const auto count = static_cast<std::size_t>(element_count(std::span<const std::int64_t>(out_shape)).value_or(0));
    for (std::size_t i = 0; i < count; ++i) {
        const Dims at = unravel(i, out_shape);
        std::vector<std::size_t> inside;
        std::int64_t in_padding = 0;  // elements inside the input or its own padding
        for (std::size_t t = 0; t < taps; ++t) {
            const Dims tap = unravel(t, kernel);
            Dims from = at;
            bool within = true, counted = true;
            for (std::size_t d = 0; d < f.n; ++d) {
                const std::int64_t p = at[lead + d] * f.stride[d] - f.padding[d] + tap[d] * f.dilation[d];
                within = within && p >= 0 && p < x.shape[lead + d];
                counted = counted && p < x.shape[lead + d] + f.padding[d];
                from[lead + d] = p;
            }
            in_padding += counted;
            if (within) inside.push_back(ravel(from, x.shape));
        }
        visit(i, inside, in_padding);
    }
}

ValueId seen(Steps& s, ValueId x, const Form& f, double filler) {
    const Shape shape = s.type(x).shape;
    Numbers high;
    for (std::size_t d = 0; d < f.n; ++d) {
        const Sym& size = shape[shape.size() - f.n + d];
        high.push_back(size.is_constant() ? f.behind_and_count(size.value(), d).first : f.padding[d]);
    }
    return windows(s, padded(s, x, f.padding, high, filler), f.kernel, f.stride, f.dilation);
}

Axes window_axes(std::size_t rank, std::size_t n) {
    Axes axes;
    for (std::size_t d = 0; d < n; ++d) axes.push_back(rank - n + d);
    return axes;
}

template <std::size_t outputs>
struct MaxPool {
    static Types infer(const InferContext& context) { return infer_pool(context, outputs); }
    static Values eval(const EvalContext& context) {
        const auto f = form_of(context.node());
        if (!f) return std::unexpected(f.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& x = context.tensor(0);
        std::vector<HostTensor> results{*out};
        if (outputs == 2) {
            auto indices = context.make(DType::i64, out->shape);
            if (!indices) return std::unexpected(indices.error());
            results.push_back(std::move(*indices));
        }
        std::size_t plane = 1;
        for (std::size_t d = 0; d < f->n; ++d) plane *= static_cast<std::size_t>(x.shape[x.shape.size() - f->n + d]);
        each_window(*f, x, out->shape, [&](std::size_t i, const std::vector<std::size_t>& inside, std::int64_t) {
            double best = -std::numeric_limits<double>::infinity();
            std::size_t where = inside.empty() ? 0 : inside.front();
            for (const std::size_t p : inside)
                if (x.reals[p] > best || std::isnan(x.reals[p])) {
                    best = x.reals[p];
                    where = p;
                }
            results[0].reals[i] = best;
            if (outputs == 2) results[1].ints[i] = static_cast<std::int64_t>(where % plane);
        });
        return results;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto f = form_of(node);
        if (!f) return std::unexpected(f.error());
        Steps s(builder);
        const Shape shape = node.type(0).shape;
        const std::size_t lead = shape.size() - f->n;
        const ValueId view = seen(s, node.tensor(0), *f, -std::numeric_limits<double>::infinity());
        const Axes axes = window_axes(shape.size(), f->n);
        std::vector<ValueId> out{s.reduce("lyo_max", view, axes, false)};
        if (outputs == 2) {
            // The position within the window, taken apart, is moved to where the window stands.
            ValueId at = s.reduce("lyo_argmax", view, axes, false);
            ValueId flat = at;
            std::int64_t taps = 1;
            Sym step = 1;
            for (std::size_t d = f->n; d-- > 0;) {
                const Sym count = builder.error() ? Sym(1) : s.type(at).shape[lead + d];
                const ValueId tap =
                    s.call("remainder.Scalar", {s.call("floor_divide.Scalar", {at, Sym(taps)}), Sym(f->kernel[d])});
                Shape along(f->n - d, Sym(1));
                along[0] = count;
                const ValueId start =
                    s.reshape(s.sub(s.mul(s.iota(count), Sym(f->stride[d])), Sym(f->padding[d])), along);
                const ValueId place = s.mul(s.add(s.mul(tap, Sym(f->dilation[d])), start), step);
                flat = d + 1 == f->n ? place : s.add(flat, place);
                taps *= f->kernel[d];
                step = step * shape[lead + d];
            }
            out.push_back(flat);
        }
        return s.done(std::move(out));
    }
};

struct AvgPool {
    static Types infer(const InferContext& context) { return infer_pool(context, 1); }
    static Values eval(const EvalContext& context) {
        const auto f = form_of(context.node());
        if (!f) return std::unexpected(f.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& x = context.tensor(0);
        each_window(
            *f, x, out->shape, [&](std::size_t i, const std::vector<std::size_t>& inside, std::int64_t in_padding) {
                double sum = 0;
                for (const std::size_t p : inside) sum += x.reals[p];
                const auto count = static_cast<std::int64_t>(inside.size());
                out->reals[i] = sum / static_cast<double>(f->divisor.value_or(f->include_padding ? in_padding : count));
            });
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto f = form_of(node);
        if (!f) return std::unexpected(f.error());
        Steps s(builder);
        const TensorType type = node.type(0);
        const DType wide = compute_dtype(type.dtype);
        const Axes axes = window_axes(type.rank(), f->n);
        const ValueId sum = s.reduce("lyo_sum", seen(s, s.cast(node.tensor(0), wide), *f, 0), axes, false);
        std::int64_t area = 1;
        bool plain = !f->ceil;
        for (std::size_t d = 0; d < f->n; ++d) {
            area *= f->kernel[d];
            plain = plain && (f->include_padding || f->padding[d] == 0);
        }
        if (f->divisor || plain) return s.done({s.cast(s.div(sum, Sym(f->divisor.value_or(area))), type.dtype)});
        // How many elements count depends on the place: the same sum over ones.
        Shape spatial(type.shape.end() - static_cast<std::ptrdiff_t>(f->n), type.shape.end());
        ValueId ones = s.full(spatial, 1.0, wide);
        if (f->include_padding) {
            // The input's own padding counts; only what ceil_mode adds behind it does not.
            Form counted = *f;
            Numbers high;
            for (std::size_t d = 0; d < f->n; ++d) high.push_back(f->behind_and_count(spatial[d].value(), d).first);
            ones = padded(s, ones, f->padding, f->padding, 1);
            for (std::size_t d = 0; d < f->n; ++d) high[d] -= f->padding[d];
            ones = padded(s, ones, Numbers(f->n, 0), high, 0);
            ones = windows(s, ones, counted.kernel, counted.stride, counted.dilation);
        } else {
            ones = seen(s, ones, *f, 0);
        }
        const ValueId count = s.reduce("lyo_sum", ones, window_axes(f->n, f->n), false);
        return s.done({s.cast(s.div(sum, count), type.dtype)});
    }
};

/// adaptive_avg_pool: output i averages [floor(i*S/O), ceil((i+1)*S/O)); the mean of a box is the mean of means.
struct AdaptiveAvgPool {
    static Result<Numbers> sizes(const NodeView& node) {
        const std::string_view name = node.op().name;
        return spread(node, 1,
                      name.find("1d") != std::string_view::npos   ? 1
                      : name.find("2d") != std::string_view::npos ? 2
                                                                  : 3);
    }
    static Types infer(const InferContext& context) {
        const auto out = sizes(context);
        if (!out) return std::unexpected(out.error());
        TensorType type = context.type(0);
        if (type.rank() <= out->size()) return context.error("the input has too few dimensions");
        if (!is_float(type.dtype))
            return mismatch(ErrorCode::bad_graph, context.place(), "dtype", "a floating one", to_string(type.dtype));
        for (std::size_t d = 0; d < out->size(); ++d) {
            Sym& size = type.shape[type.rank() - out->size() + d];
            if ((*out)[d] < 1)
                return mismatch(ErrorCode::bad_graph, context.place(), "output_size", "at least 1", (*out)[d]);
            if (!size.is_constant() && (*out)[d] != 1) return context.unsupported("a symbolic size to other than 1");
            size = (*out)[d];
        }
        return one(std::move(type));
    }
    static Values eval(const EvalContext& context) {
        const auto sized = sizes(context.node());
        if (!sized) return std::unexpected(sized.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor& x = context.tensor(0);
        const std::size_t n = sized->size(), lead = x.shape.size() - n;
        for (std::size_t i = 0; i < out->reals.size(); ++i) {
            const Dims at = unravel(i, out->shape);
            Dims first, box;
            for (std::size_t d = 0; d < n; ++d) {
                const std::int64_t size = x.shape[lead + d], o = at[lead + d];
                const std::int64_t begin = o * size / (*sized)[d],
                                   end = ((o + 1) * size + (*sized)[d] - 1) / (*sized)[d];
                first.push_back(begin);
                box.push_back(end - begin);
            }
            const auto count = static_cast<std::size_t>(element_count(std::span<const std::int64_t>(box)).value_or(0));
            double sum = 0;
            for (std::size_t t = 0; t < count; ++t) {
                const Dims tap = unravel(t, box);
                Dims from = at;
                for (std::size_t d = 0; d < n; ++d) from[lead + d] = first[d] + tap[d];
                sum += x.reals[ravel(from, x.shape)];
            }
            out->reals[i] = sum / static_cast<double>(count);
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto sized = sizes(node);
        if (!sized) return std::unexpected(sized.error());
        Steps s(builder);
        const TensorType type = node.type(0);
        ValueId x = s.cast(node.tensor(0), compute_dtype(type.dtype));
        const std::size_t lead = type.rank() - sized->size();
        if (std::all_of(sized->begin(), sized->end(), [](std::int64_t v) { return v == 1; })) {
            Axes axes;
            for (std::size_t d = lead; d < type.rank(); ++d) axes.push_back(d);
            return s.done({s.cast(s.mean(x, axes, true), type.dtype)});
        }
        for (std::size_t d = 0; d < sized->size(); ++d) {
            const std::size_t axis = lead + d;
            const Sym& whole = type.shape[axis];
            const std::int64_t count = (*sized)[d];
            if (whole == Sym(count)) continue;
            std::vector<ValueId> parts;
            for (std::int64_t o = 0; o < count; ++o) {
                if (!whole.is_constant()) {
                    parts.push_back(s.mean(x, {axis}, true));
                    continue;
                }
                const std::int64_t size = whole.value();
                parts.push_back(
                    s.mean(s.slice(x, axis, o * size / count, ((o + 1) * size + count - 1) / count), {axis}, true));
            }
            x = s.cat(parts, axis);
        }
        return s.done({s.cast(x, type.dtype)});
    }
};

constexpr OpDef defs[] = {
    made<MaxPool<1>, true>(
        "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool "
        "ceil_mode=False) -> Tensor"),
    made<MaxPool<1>, true>(
        "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
        "ceil_mode=False) -> Tensor"),
    made<MaxPool<1>, true>(
        "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
        "ceil_mode=False) -> Tensor"),
    made<MaxPool<2>, true>(
        "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
        "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)"),
    made<AvgPool, true>(
        "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool "
        "count_include_pad=True) -> Tensor"),
    made<AvgPool, true>(
        "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
        "count_include_pad=True, int? divisor_override=None) -> Tensor"),
    made<AvgPool, true>(
        "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
        "count_include_pad=True, int? divisor_override=None) -> Tensor"),
    made<AdaptiveAvgPool, true>("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor"),
    made<AdaptiveAvgPool, true>("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"),
    made<AdaptiveAvgPool, true>("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"),
    made<AdaptiveAvgPool, true>("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor"),
};

}  // namespace

std::span<const OpDef> pooling() { return defs; }

}  // namespace lyo::ops
