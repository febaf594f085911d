// Convolutions in 1 to 3 dimensions, grouped, dilated, transposed: a matrix product of the weights with the windows.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;
import :window;

namespace lyo::ops {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Everything a convolution is told, whatever its schema.
struct Form {
    std::size_t n = 0;  ///< spatial dimensions
    bool batched = true, transposed = false;
    std::int64_t groups = 1;
    Numbers kernel, stride, low, high, dilation, output_padding;
    std::int64_t in = 0, out = 0;  ///< channels

    /// The size of the output along a spatial dimension.
    Sym size(const Sym& s, std::size_t d) const {
        const std::int64_t span = dilation[d] * (kernel[d] - 1);
        if (transposed) return (s - Sym(1)) * Sym(stride[d]) + Sym(span + 1 - low[d] - high[d] + output_padding[d]);
        return floor_div(s + Sym(low[d] + high[d] - span - 1), Sym(stride[d])) + Sym(1);
    }
};

Result<Form> form_of(const NodeView& node) {
    Form f;
    const TensorType &x = node.type(0), &w = node.type(1);
    if (w.rank() < 3 || w.rank() > 5 || !is_constant(w.shape))
        return node.unsupported("a weight of 3 to 5 constant dimensions is needed, got ", to_string(w.shape));
    f.n = w.rank() - 2;
    if (x.rank() != w.rank() && x.rank() + 1 != w.rank())
        return mismatch(ErrorCode::bad_graph, node.place(), "rank of the input", cat(w.rank() - 1, " or ", w.rank()),
                        x.rank());
    if (x.dtype != w.dtype || !is_float(x.dtype)) return node.error("input and weight must have one floating dtype");
    f.batched = x.rank() == w.rank();
    if (const auto i = parameter(node, "transposed")) f.transposed = node.boolean(*i);
    f.transposed = f.transposed || node.op().name.starts_with("conv_transpose");
    if (const auto i = parameter(node, "groups")) {
        const auto groups = node.integer(*i);
        if (!groups) return std::unexpected(groups.error());
        f.groups = *groups;
    }
    const Dims weight = constant_dims(w.shape);
    for (std::size_t d = 0; d < f.n; ++d) f.kernel.push_back(weight[2 + d]);
    const auto numbers = [&](std::string_view name, Numbers& to, std::int64_t least) -> Result<> {
        const auto i = parameter(node, name);
        if (!i) {
            to.assign(f.n, least);
            return {};
        }
        auto list = spread(node, *i, f.n);
        if (!list) return std::unexpected(list.error());
        for (const std::int64_t v : *list)
            if (v < least) return mismatch(ErrorCode::bad_graph, node.place(), name, cat("at least ", least), v);
        to = std::move(*list);
        return {};
    };
    if (auto ok = numbers("stride", f.stride, 1); !ok) return std::unexpected(ok.error());
    if (auto ok = numbers("dilation", f.dilation, 1); !ok) return std::unexpected(ok.error());
    if (auto ok = numbers("output_padding", f.output_padding, 0); !ok) return std::unexpected(ok.error());
    const auto padding = parameter(node, "padding");
    if (padding && node.op().params[*padding].type == "str") {
        const std::string& how = node.text(*padding);
        if (how != "valid" && how != "same")
            return mismatch(ErrorCode::unsupported_argument, node.place(), "padding", "valid or same", how);
        for (std::size_t d = 0; d < f.n; ++d) {
            const std::int64_t all = how == "same" ? f.dilation[d] * (f.kernel[d] - 1) : 0;
            f.low.push_back(all / 2);
            f.high.push_back(all - all / 2);
        }
    } else {
        if (auto ok = numbers("padding", f.low, 0); !ok) return std::unexpected(ok.error());
        f.high = f.low;
    }
    if (f.groups < 1 || weight[0] % f.groups != 0)
        return node.error("channels do not divide into ", f.groups, " groups");
    f.in = f.transposed ? weight[0] : weight[1] * f.groups;
    f.out = f.transposed ? weight[1] * f.groups : weight[0];
    return f;
}

/// The output's spatial position that an input position and a kernel position meet at, or its inverse: reference values
/// by the definition, one product at a time.
struct Convolution {
    static Types infer(const InferContext& context) {
        const auto f = form_of(context);
        if (!f) return std::unexpected(f.error());
        const Shape& x = context.type(0).shape;
        const std::size_t lead = f->batched ? 1 : 0;
        if (const auto same = context.equal(x[lead], f->in, "channels of input and weight"); !same)
            return std::unexpected(same.error());
        if (!context.is_none(2))
            if (const auto same =
                    context.equal(element_count(context.type(2).shape), f->out, "channels of bias and weight");
                !same)
                return std::unexpected(same.error());
        Shape shape;
        if (f->batched) shape.push_back(x[0]);
        shape.push_back(f->out);
        for (std::size_t d = 0; d < f->n; ++d) {
            const Sym& in = x[lead + 1 + d];
            const Sym size = f->size(in, d);
            const Sym under =
                f->transposed ? in : in + Sym(f->low[d] + f->high[d] - f->dilation[d] * (f->kernel[d] - 1));
            if (auto ok = at_least(context, under, 1, "padded input less the kernel's span, plus 1"); !ok)
                return std::unexpected(ok.error());
            if (auto ok = at_least(context, size, 1, "size of the output"); !ok) return std::unexpected(ok.error());
            shape.push_back(size);
        }
        return one(context.type(0).dtype, std::move(shape));
    }

    static Values eval(const EvalContext& context) {
        const auto f = form_of(context.node());
        if (!f) return std::unexpected(f.error());
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor &x = context.tensor(0), &w = context.tensor(1);
        const std::size_t lead = f->batched ? 1 : 0;
        const std::int64_t in_share = f->in / f->groups, out_share = f->out / f->groups;
        Dims kernel_shape;
        for (const std::int64_t k : f->kernel) kernel_shape.push_back(k);
        const auto taps =
            static_cast<std::size_t>(element_count(std::span<const std::int64_t>(kernel_shape)).value_or(0));
        for (std::size_t i = 0; i < out->reals.size(); ++i) {
            const Dims at = unravel(i, out->shape);
            const std::int64_t o = at[lead], group = o / out_share;
            double sum = 0;
            for (std::size_t t = 0; t < taps; ++t) {
                const Dims tap = unravel(t, kernel_shape);
                Dims from = x.shape;
                if (f->batched) from[0] = at[0];
                bool inside = true;
                for (std::size_t d = 0; d < f->n; ++d) {
                    const std::int64_t size = x.shape[lead + 1 + d];
                    std::int64_t p = 0;
                    if (f->transposed) {
                        p = at[lead + 1 + d] + f->low[d] - tap[d] * f->dilation[d];
                        inside = inside && p >= 0 && p % f->stride[d] == 0;
                        p /= f->stride[d];
                    } else {
                        p = at[lead + 1 + d] * f->stride[d] - f->low[d] + tap[d] * f->dilation[d];
                    }
                    inside = inside && p >= 0 && p < size;
                    from[lead + 1 + d] = p;
                }
                for (std::int64_t c = 0; c < in_share; ++c) {
                    from[lead] = group * in_share + c;
                    Dims weight_at;
                    weight_at.push_back(f->transposed ? from[lead] : o);
                    weight_at.push_back(f->transposed ? o % out_share : c);
                    for (const std::int64_t p : tap) weight_at.push_back(p);
                    // Padding, and what a transposed one has between its inputs, are zeros like any others: an infinite
                    // weight over one gives NaN.
                    const double value = inside ? x.reals[ravel(from, x.shape)] : 0;
                    sum += value * w.reals[ravel(weight_at, w.shape)];
                }
            }
            if (!context.node().is_none(2)) sum += context.tensor(2).reals[static_cast<std::size_t>(o)];
            out->reals[i] = sum;
        }
        return one(std::move(*out));
    }

    /// Zeros between the input's elements, so that a transposed convolution is a plain one.
    static ValueId spread_out(Steps& s, ValueId x, const Form& f) {
        if (std::all_of(f.stride.begin(), f.stride.end(), [](std::int64_t v) { return v == 1; })) return x;
        const Shape shape = s.type(x).shape;
        Shape apart(shape.begin(), shape.begin() + 2), together = apart;
        Numbers low, high;
        for (std::size_t d = 0; d < f.n; ++d) {
            apart.insert(apart.end(), {shape[2 + d], Sym(1)});
            together.push_back(shape[2 + d] * Sym(f.stride[d]));
            low.insert(low.end(), {0, 0});
            high.insert(high.end(), {0, f.stride[d] - 1});
        }
        x = s.reshape(padded(s, s.reshape(x, apart), low, high, 0), together);
        for (std::size_t d = 0; d < f.n; ++d)
            x = s.slice(x, 2 + d, 0, (shape[2 + d] - Sym(1)) * Sym(f.stride[d]) + Sym(1));
        return x;
    }

    static Ids decompose(Builder& builder, const NodeView& node) {
        auto parsed = form_of(node);
        if (!parsed) return std::unexpected(parsed.error());
        Form f = std::move(*parsed);
        if (2 + 2 * f.n + (f.groups > 1 ? 1 : 0) > max_rank) return node.unsupported("groups in 3 dimensions");
        Steps s(builder);
        ValueId x = node.tensor(0), w = node.tensor(1);
        if (!f.batched) x = s.unsqueeze(x, 0);
        const std::int64_t in_share = f.in / f.groups, out_share = f.out / f.groups;
        if (f.transposed) {
            x = spread_out(s, x, f);
            Axes spatial;
            Shape split{f.groups, in_share, out_share}, joined{f.out, in_share};
            Axes order{0, 2, 1};
            for (std::size_t d = 0; d < f.n; ++d) {
                spatial.push_back(2 + d);
                split.push_back(f.kernel[d]);
                joined.push_back(f.kernel[d]);
                order.push_back(3 + d);
                const std::int64_t span = f.dilation[d] * (f.kernel[d] - 1);
                f.high[d] = span - f.high[d] + f.output_padding[d];
                f.low[d] = span - f.low[d];
                f.stride[d] = 1;
            }
            w = s.reshape(s.permute(s.reshape(s.call("flip", {w, to_syms(spatial)}), split), order), joined);
        }
        x = padded(s, x, f.low, f.high, 0);
        const Shape from = s.type(x).shape;
        Shape grouped{from[0]};
        if (f.groups > 1) grouped.push_back(f.groups);
        grouped.push_back(in_share);
        grouped.insert(grouped.end(), from.begin() + 2, from.end());
        const ValueId seen = windows(s, s.reshape(x, grouped), f.kernel, f.stride, f.dilation);
        if (builder.error()) return std::unexpected(*builder.error());
        const Shape shape = s.type(seen).shape;
        Shape spatial(shape.end() - static_cast<std::ptrdiff_t>(f.n), shape.end());
        std::int64_t terms = in_share;
        for (const std::int64_t k : f.kernel) terms *= k;
        const Sym positions = element_count(spatial);
        Shape columns{from[0]}, rows, result{from[0], Sym(f.out)};
        if (f.groups > 1) {
            columns.push_back(f.groups);
            rows.push_back(f.groups);
        }
        columns.insert(columns.end(), {Sym(terms), positions});
        rows.insert(rows.end(), {Sym(out_share), Sym(terms)});
        result.insert(result.end(), spatial.begin(), spatial.end());
        ValueId y = s.matmul(s.reshape(w, rows), s.reshape(seen, columns));
        y = s.reshape(y, result);
        if (!node.is_none(2)) {
            Shape bias(1 + f.n, Sym(1));
            bias[0] = f.out;
            y = s.add(y, s.reshape(node.tensor(2), bias));
        }
        if (!f.batched) y = s.squeeze(y, 0);
        return s.done({y});
    }
};

constexpr OpDef defs[] = {
    made<Convolution, true>(
        "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] "
        "dilation=1, SymInt groups=1) -> Tensor"),
    made<Convolution, true>(
        "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] "
        "dilation=1, SymInt groups=1) -> Tensor"),
    made<Convolution, true>(
        "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] "
        "dilation=1, SymInt groups=1) -> Tensor"),
    made<Convolution, true>(
        "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, str padding='valid', "
        "SymInt[1] dilation=1, SymInt groups=1) -> Tensor"),
    made<Convolution, true>(
        "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str padding='valid', "
        "SymInt[2] dilation=1, SymInt groups=1) -> Tensor"),
    made<Convolution, true>(
        "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, str padding='valid', "
        "SymInt[3] dilation=1, SymInt groups=1) -> Tensor"),
    made<Convolution, true>(
        "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, "
        "SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> Tensor"),
    made<Convolution, true>(
        "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "
        "padding=0, "
        "SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> Tensor"),
    made<Convolution, true>(
        "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] "
        "padding=0, "
        "SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> Tensor"),
    made<Convolution, true>(
        "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
        "bool "
        "transposed, SymInt[] output_padding, SymInt groups) -> Tensor"),
};

}  // namespace

std::span<const OpDef> convolution() { return defs; }

}  // namespace lyo::ops
