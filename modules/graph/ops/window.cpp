// Convolutions and pooling: windows are a strided view of the (padded) input, so a convolution is a matrix product over
// them and pooling a reduction.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;
import :window;

namespace lyo::ops {
namespace {

/// lyo_windows: [lead..., S...] as [lead..., K..., O...].
struct Windows {
    struct Form {
        std::vector<std::int64_t> kernel, stride, dilation;
    };
    static Result<Form> form(const NodeView& node) {
        auto kernel = node.integers(1), stride = node.integers(2), dilation = node.integers(3);
        if (!kernel) return std::unexpected(kernel.error());
        if (!stride) return std::unexpected(stride.error());
        if (!dilation) return std::unexpected(dilation.error());
        if (kernel->size() > node.type(0).rank() || stride->size() != kernel->size() ||
            dilation->size() != kernel->size())
            return node.error("kernel, stride and dilation do not fit the operand");
        return Form{std::move(*kernel), std::move(*stride), std::move(*dilation)};
    }
    static Types infer(const InferContext& context) {
        const auto f = form(context);
        if (!f) return std::unexpected(f.error());
        const TensorType& x = context.type(0);
        const std::size_t n = f->kernel.size(), lead = x.rank() - n;
        Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(lead));
        for (const std::int64_t k : f->kernel) shape.push_back(k);
        for (std::size_t d = 0; d < n; ++d) {
            if (f->kernel[d] < 1 || f->stride[d] < 1 || f->dilation[d] < 1)
                return context.error("kernel, stride and dilation must be at least 1");
            const Sym span = f->dilation[d] * (f->kernel[d] - 1) + 1;
            if (auto ok = at_least(context, x.shape[lead + d], span, "size under a window"); !ok)
                return std::unexpected(ok.error());
            shape.push_back(floor_div(x.shape[lead + d] - span, Sym(f->stride[d])) + Sym(1));
        }
        return one(x.dtype, std::move(shape));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        const auto f = form(context.node());
        if (!out) return std::unexpected(out.error());
        if (!f) return std::unexpected(f.error());
        const HostTensor& x = context.tensor(0);
        const std::size_t n = f->kernel.size(), lead = x.shape.size() - n;
        gather(x, *out, [&](const Dims& at) {
            Dims from = x.shape;
            for (std::size_t d = 0; d < lead; ++d) from[d] = at[d];
            for (std::size_t d = 0; d < n; ++d)
                from[lead + d] = at[lead + d] * f->dilation[d] + at[lead + n + d] * f->stride[d];
            return from;
        });
        return one(std::move(*out));
    }
    static View view(const NodeView& node, const StridedView& operand, const TensorType& result) {
        const auto f = form(node);
        if (!f) return std::unexpected(f.error());
        const std::size_t n = f->kernel.size(), lead = operand.shape.size() - n;
        StridedView out{operand.offset, result.shape, {}};
        out.strides.assign(operand.strides.begin(), operand.strides.begin() + static_cast<std::ptrdiff_t>(lead));
        for (std::size_t d = 0; d < n; ++d) out.strides.push_back(operand.strides[lead + d] * Sym(f->dilation[d]));
        for (std::size_t d = 0; d < n; ++d) out.strides.push_back(operand.strides[lead + d] * Sym(f->stride[d]));
        return out;
    }
};

constexpr OpDef defs[] = {
    {.schema = "lyo_windows(Tensor self, int[] kernel, int[] stride, int[] dilation) -> Tensor",
     .infer = Windows::infer,
     .eval = Windows::eval,
     .view = Windows::view,
     .differentiable = true},
};

}  // namespace

Result<std::vector<std::int64_t>> spread(const NodeView& node, std::size_t i, std::size_t n) {
    auto list = node.integers(i);
    if (!list) return list;
    if (list->size() == 1) list->resize(n, list->front());
    if (list->size() != n)
        return mismatch(ErrorCode::bad_graph, node.place(), node.op().params[i].name, cat("1 or ", n, " numbers"),
                        list->size());
    return list;
}

ValueId windows(Steps& s, ValueId x, const std::vector<std::int64_t>& kernel, const std::vector<std::int64_t>& stride,
                const std::vector<std::int64_t>& dilation) {
    return s.call("lyo_windows", {x, syms(kernel), syms(stride), syms(dilation)});
}

ValueId padded(Steps& s, ValueId x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high,
               double value) {
    std::vector<Sym> pads;
    bool any = false;
    for (std::size_t d = low.size(); d-- > 0;) {
        pads.insert(pads.end(), {Sym(low[d]), Sym(high[d])});
        any = any || low[d] != 0 || high[d] != 0;
    }
    if (!any) return x;
    return s.call("constant_pad_nd", {x, pads, value});
}

std::vector<Sym> syms(const std::vector<std::int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

std::span<const OpDef> window() {
    static const std::vector<OpDef> all = joined({defs, convolution(), pooling()});
    return all;
}

}  // namespace lyo::ops
