// Tensors from nothing. A filled tensor is a pointwise operator without operands (full); ranges are lyo_arange
// (Core::arange); identity and triangles compare two ranges.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

/// The dtype that PyTorch gives a Python number.
DType number_dtype(const Argument& number) noexcept {
    if (std::holds_alternative<bool>(number)) return DType::boolean;
    return std::holds_alternative<double>(number) ? DType::f32 : DType::i64;
}

std::optional<DType> dtype_argument(const NodeView& node) noexcept {
    const auto i = parameter(node, "dtype");
    if (!i || node.is_none(*i)) return std::nullopt;
    return node.dtype(*i);
}

// Filled tensors. The shape is the parameter `size`, or that of `self`, or none; the dtype the parameter `dtype`, or
// that of `self`, or that of the value.

enum class Fill : std::uint8_t { zero, one, argument };

template <Fill fill>
struct Filled {
    static Shape shape(const NodeView& node) {
        if (const auto i = parameter(node, "size")) return node.sizes(*i);
        if (const auto i = parameter(node, "self")) return node.type(*i).shape;
        return {};
    }
    static Argument value(const NodeView& node) {
        if (fill == Fill::zero) return Sym(0);
        if (fill == Fill::one) return Sym(1);
        for (const std::string_view name : {"fill_value", "value", "s"})
            if (const auto i = parameter(node, name)) return node[*i];
        return Sym(0);
    }
    static DType dtype(const NodeView& node) {
        if (const auto given = dtype_argument(node)) return *given;
        if (const auto i = parameter(node, "self")) return node.type(*i).dtype;
        return fill == Fill::argument ? number_dtype(value(node)) : DType::f32;
    }
    static Types infer(const InferContext& context) {
        Shape out = shape(context);
        for (const Sym& size : out) {
            const auto ok = at_least(context, size, 0, "size");
            if (!ok) return std::unexpected(ok.error());
        }
        return one(dtype(context), std::move(out));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const Argument number = value(context.node());
        Result<std::vector<std::int64_t>> integer = std::vector<std::int64_t>();
        if (const auto* size = std::get_if<Sym>(&number)) {
            const auto dims = context.dims({*size});
            if (!dims) return std::unexpected(dims.error());
            integer->push_back((*dims)[0]);
        }
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            if (const auto* real = std::get_if<double>(&number))
                out->set(i, *real);
            else if (const auto* flag = std::get_if<bool>(&number))
                out->set(i, std::int64_t{*flag});
            else
                out->set(i, out->dtype == DType::boolean ? std::int64_t{(*integer)[0] != 0} : (*integer)[0]);
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const Shape size = shape(node);
        const DType type = dtype(node);
        Steps steps(builder);
        return steps.done({steps.full(size, value(node), type)});
    }
};

Scalar emit_full(ScalarEmitter& emitter, const NodeView& node, std::span<const Scalar>) {
    const DType dtype = Filled<Fill::argument>::dtype(node);
    const Argument& value = node[1];
    if (const auto* flag = std::get_if<bool>(&value)) return emitter.constant(std::int64_t{*flag}, dtype);
    if (const auto* size = std::get_if<Sym>(&value)) {
        if (!size->is_constant()) return emitter.cast(emitter.size(*size), dtype);
        const std::int64_t number = dtype == DType::boolean ? std::int64_t{size->value() != 0} : size->value();
        return emitter.constant(number, dtype);
    }
    const double real = node.real(1);
    if (is_float(dtype)) return emitter.constant(real, dtype);
    return emitter.constant(dtype == DType::boolean ? std::int64_t{real != 0} : double_to_int(real), dtype);
}

// Ranges.

/// lyo_arange(start, step, length): start + i * step.
struct Iota {
    static Types infer(const InferContext& context) {
        if (const auto ok = at_least(context, context.size(2), 0, "length"); !ok) return std::unexpected(ok.error());
        if (context.dtype(3) == DType::boolean) return context.error("a range of booleans");
        return one(context.dtype(3), {context.size(2)});
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        const auto start = context.real(0), step = context.real(1);
        if (!out) return std::unexpected(out.error());
        if (!start) return std::unexpected(start.error());
        if (!step) return std::unexpected(step.error());
        if (out->is_real()) {
            for (std::size_t i = 0; i < out->reals.size(); ++i) out->set(i, *start + static_cast<double>(i) * *step);
            return one(std::move(*out));
        }
        const auto first = whole(context, 0), by = whole(context, 1);
        if (!first) return std::unexpected(first.error());
        if (!by) return std::unexpected(by.error());
        for (std::size_t i = 0; i < out->ints.size(); ++i)
            out->set(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(*first) +
                                                  static_cast<std::uint64_t>(*by) * static_cast<std::uint64_t>(i)));
        return one(std::move(*out));
    }

  private:
    /// An int exactly, a real truncated.
    static Result<std::int64_t> whole(const EvalContext& context, std::size_t i) {
        if (std::holds_alternative<Sym>(context.node()[i])) return context.integer(i);
        return double_to_int(context.node().real(i));
    }
};

struct Progression {
    Argument start = Sym(0), step = Sym(1);
    Sym length;
    DType dtype = DType::i64;
};

/// ceil((end - start) / step), and the numbers in the form in which the result's dtype takes them.
Result<Progression> progression_of(const NodeView& node) {
    Progression out;
    Argument end;
    for (std::size_t i = 0; i < node.size(); ++i) {
        const std::string& name = node.op().params[i].name;
        if (name == "start") out.start = node[i];
        if (name == "end") end = node[i];
        if (name == "step") out.step = node[i];
    }
    bool whole = true;
    for (Argument* number : {&out.start, &end, &out.step}) {
        if (const auto* flag = std::get_if<bool>(number)) *number = Sym(*flag ? 1 : 0);
        whole = whole && std::holds_alternative<Sym>(*number);
    }
    out.dtype = dtype_argument(node).value_or(whole ? DType::i64 : DType::f32);
    if (out.dtype == DType::boolean) return node.error("a range of booleans");
    const auto real = [](const Argument& number) {
        const auto* size = std::get_if<Sym>(&number);
        return size ? static_cast<double>(size->value()) : *std::get_if<double>(&number);
    };
    if (!whole) {
        for (const Argument* number : {&out.start, &end, &out.step})
            if (const auto* size = std::get_if<Sym>(number); size && !size->is_constant())
                return node.unsupported("a range of reals with the bound ", size->to_string());
        if (out.dtype != DType::i64) {
            const double count = std::ceil((real(end) - real(out.start)) / real(out.step));
            if (!(count >= 0 && count < 0x1p62))
                return node.error("no range from ", real(out.start), " to ", real(end), " by ", real(out.step));
            out.length = static_cast<std::int64_t>(count);
            return out;
        }
        // For i64, PyTorch truncates the numbers first.
        for (Argument* number : {&out.start, &end, &out.step}) *number = Sym(double_to_int(real(*number)));
    }
    const Sym start = *std::get_if<Sym>(&out.start), step = *std::get_if<Sym>(&out.step),
              stop = *std::get_if<Sym>(&end);
    if (!step.is_constant()) return node.unsupported("a step that is not constant: ", step.to_string());
    if (step == Sym(0)) return node.error("a step of 0");
    const bool up = step.value() > 0;
    const Sym distance = up ? stop - start : start - stop;
    if (distance.is_constant() && distance.value() < 0)
        return node.error("no range from ", start.to_string(), " to ", stop.to_string(), " by ", step.value());
    out.length = ceil_div(larger(node.graph(), distance, 0), up ? step : step * Sym(-1));
    return out;
}

struct Arange {
    static Types infer(const InferContext& context) {
        const auto range = progression_of(context);
        if (!range) return std::unexpected(range.error());
        return one(range->dtype, {range->length});
    }
    static Values eval(const EvalContext& context) {
        const auto range = progression_of(context.node());
        auto out = make_result(context);
        if (!range) return std::unexpected(range.error());
        if (!out) return std::unexpected(out.error());
        const auto number = [&](const Argument& argument) -> Result<double> {
            if (const auto* real = std::get_if<double>(&argument)) return *real;
            const auto dims = context.dims({*std::get_if<Sym>(&argument)});
            if (!dims) return std::unexpected(dims.error());
            return static_cast<double>((*dims)[0]);
        };
        const auto start = number(range->start), step = number(range->step);
        if (!start) return std::unexpected(start.error());
        if (!step) return std::unexpected(step.error());
        // Integer results count from the truncated start by the truncated step.
        const double first = out->is_real() ? *start : std::trunc(*start);
        const double by = out->is_real() ? *step : std::trunc(*step);
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i)
            out->set(i, first + static_cast<double>(i) * by);
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const auto range = progression_of(node);
        if (!range) return std::unexpected(range.error());
        Steps steps(builder);
        return steps.done(
            {steps.call("lyo_arange", {range->start, range->step, range->length}, {{"dtype", range->dtype}})});
    }
};

/// linspace: from both ends towards the middle, so that both are exact.
struct Linspace {
    static DType dtype(const NodeView& node) { return dtype_argument(node).value_or(DType::f32); }
    static Types infer(const InferContext& context) {
        const auto steps = context.integer(2);
        if (!steps) return std::unexpected(steps.error());
        if (*steps < 0) return mismatch(ErrorCode::bad_graph, context.place(), "steps", "at least 0", *steps);
        for (const std::size_t i : {0, 1})
            if (const auto* size = std::get_if<Sym>(&context[i]); size && !size->is_constant())
                return context.unsupported("the end ", size->to_string(), " is not constant");
        return one(dtype(context), {*steps});
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const double start = context.node().real(0), end = context.node().real(1);
        const std::int64_t count = out->numel();
        const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
        for (std::int64_t i = 0; i < count; ++i)
            out->set(static_cast<std::size_t>(i), i < count / 2 || count == 1
                                                      ? start + step * static_cast<double>(i)
                                                      : end - step * static_cast<double>(count - 1 - i));
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const DType type = dtype(node);
        // Integers are computed in f64, as PyTorch does.
        const DType compute = is_float(type) ? compute_dtype(type) : DType::f64;
        const auto length = node.integer(2);
        if (!length) return std::unexpected(length.error());
        const std::int64_t count = *length;
        const double start = node.real(0), end = node.real(1);
        const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
        Steps steps(builder);
        if (count < 2) return steps.done({steps.cast(steps.full({count}, start, compute), type)});
        const ValueId up = steps.iota(count, 0, compute);
        const ValueId down = steps.call("lyo_arange", {Sym(count - 1), Sym(-1), Sym(count)}, {{"dtype", compute}});
        const ValueId from_start = steps.add(steps.mul(up, step), start);
        const ValueId from_end = steps.add(steps.mul(down, -step), end);
        const ValueId first_half = steps.call("lt.Scalar", {up, Sym(count / 2)});
        return steps.done({steps.cast(steps.where(first_half, from_start, from_end), type)});
    }
};

// Matrices by row and column.

struct Eye {
    static Shape shape(const NodeView& node) {
        const auto m = parameter(node, "m");
        return {node.size(0), node.size(m ? *m : 0)};
    }
    static Types infer(const InferContext& context) {
        Shape out = shape(context);
        for (const Sym& size : out)
            if (const auto ok = at_least(context, size, 0, "size"); !ok) return std::unexpected(ok.error());
        return one(dtype_argument(context).value_or(DType::f32), std::move(out));
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        for (std::int64_t i = 0; i < std::min(out->shape[0], out->shape[1]); ++i)
            out->set(static_cast<std::size_t>(i * out->shape[1] + i), std::int64_t{1});
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const Shape size = shape(node);
        const DType type = dtype_argument(node).value_or(DType::f32);
        Steps steps(builder);
        const ValueId row = steps.unsqueeze(steps.iota(size[0]), 1), column = steps.iota(size[1]);
        return steps.done({steps.cast(steps.call("eq.Tensor", {row, column}), type)});
    }
};

/// tril, triu: what is on one side of a diagonal, zeros on the other.
template <bool lower>
struct Triangle {
    static Types infer(const InferContext& context) {
        if (context.type(0).rank() < 2)
            return mismatch(ErrorCode::bad_graph, context.place(), "rank", "at least 2", context.type(0).rank());
        return one(context.type(0));
    }
    static Values eval(const EvalContext& context) {
        const HostTensor& in = context.tensor(0);
        auto out = make_result(context);
        const auto diagonal = context.integer(1);
        if (!out) return std::unexpected(out.error());
        if (!diagonal) return std::unexpected(diagonal.error());
        for (std::size_t i = 0; i < static_cast<std::size_t>(in.numel()); ++i) {
            const Dims at = unravel(i, in.shape);
            const std::int64_t distance = at[at.size() - 1] - at[at.size() - 2];
            if (lower ? distance <= *diagonal : distance >= *diagonal) copy_element(in, i, *out, i);
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const TensorType self = node.type(0);
        const Sym diagonal = node.size(1);
        Steps steps(builder);
        const ValueId row = steps.unsqueeze(steps.iota(self.shape[self.rank() - 2], diagonal), 1);
        const ValueId column = steps.iota(self.shape.back());
        const ValueId kept = steps.call(lower ? "le.Tensor" : "ge.Tensor", {column, row});
        return steps.done({steps.where(kept, node.tensor(0), steps.full({}, Sym(0), self.dtype))});
    }
};

// What every factory ends with.
#define LYO_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define LYO_FORMAT ", MemoryFormat? memory_format=None) -> Tensor"

constexpr OpDef defs[] = {
    {.schema = "full(SymInt[] size, Scalar fill_value, *, " LYO_OPTIONS ") -> Tensor",
     .infer = Filled<Fill::argument>::infer,
     .eval = Filled<Fill::argument>::eval,
     .emit = emit_full},
    made<Filled<Fill::zero>>("zeros(SymInt[] size, *, " LYO_OPTIONS ") -> Tensor"),
    made<Filled<Fill::one>>("ones(SymInt[] size, *, " LYO_OPTIONS ") -> Tensor"),
    // What an uninitialised tensor holds is open: zeros make programs deterministic.
    made<Filled<Fill::zero>>("empty.memory_format(SymInt[] size, *, " LYO_OPTIONS LYO_FORMAT),
    made<Filled<Fill::zero>>("empty_strided(SymInt[] size, SymInt[] stride, *, " LYO_OPTIONS ") -> Tensor"),
    made<Filled<Fill::zero>>("empty_permuted(SymInt[] size, int[] physical_layout, *, " LYO_OPTIONS ") -> Tensor"),
    made<Filled<Fill::argument>>("scalar_tensor(Scalar s, *, " LYO_OPTIONS ") -> Tensor"),
    made<Filled<Fill::argument>>("full_like(Tensor self, Scalar fill_value, *, " LYO_OPTIONS LYO_FORMAT),
    made<Filled<Fill::zero>>("zeros_like(Tensor self, *, " LYO_OPTIONS LYO_FORMAT),
    made<Filled<Fill::one>>("ones_like(Tensor self, *, " LYO_OPTIONS LYO_FORMAT),
    made<Filled<Fill::zero>>("empty_like(Tensor self, *, " LYO_OPTIONS LYO_FORMAT),
    made<Filled<Fill::argument>>("new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " LYO_OPTIONS
                                 ") -> Tensor"),
    made<Filled<Fill::zero>>("new_zeros(Tensor self, SymInt[] size, *, " LYO_OPTIONS ") -> Tensor"),
    made<Filled<Fill::one>>("new_ones(Tensor self, SymInt[] size, *, " LYO_OPTIONS ") -> Tensor"),
    made<Filled<Fill::zero>>("new_empty(Tensor self, SymInt[] size, *, " LYO_OPTIONS ") -> Tensor"),
    made<Filled<Fill::zero>>("new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " LYO_OPTIONS
                             ") -> Tensor"),
    made<Filled<Fill::argument>>("fill.Scalar(Tensor self, Scalar value) -> Tensor"),
    made<Filled<Fill::zero>>("zero(Tensor self) -> Tensor"),

    {.schema = "lyo_arange(Scalar start, Scalar step, SymInt length, *, ScalarType dtype) -> Tensor",
     .infer = Iota::infer,
     .eval = Iota::eval,
     .core = Core::arange},
    made<Arange>("arange(Scalar end, *, " LYO_OPTIONS ") -> Tensor"),
    made<Arange>("arange.start(Scalar start, Scalar end, *, " LYO_OPTIONS ") -> Tensor"),
    made<Arange>("arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " LYO_OPTIONS ") -> Tensor"),
    made<Linspace>("linspace(Scalar start, Scalar end, int steps, *, " LYO_OPTIONS ") -> Tensor"),
    made<Eye>("eye(SymInt n, *, " LYO_OPTIONS ") -> Tensor"),
    made<Eye>("eye.m(SymInt n, SymInt m, *, " LYO_OPTIONS ") -> Tensor"),
    made<Triangle<true>>("tril(Tensor self, int diagonal=0) -> Tensor"),
    made<Triangle<false>>("triu(Tensor self, int diagonal=0) -> Tensor"),
};

}  // namespace

std::span<const OpDef> creation() { return defs; }

}  // namespace lyo::ops
