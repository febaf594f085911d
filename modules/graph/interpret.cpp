module lyo.graph;

import lyo.prelude;
import lyo.base;

namespace lyo {

void HostTensor::set(std::size_t i, double value) noexcept {
    if (is_real())
        reals[i] = value;
    else
        set(i, dtype == DType::boolean ? std::int64_t{value != 0} : double_to_int(value));
}

void HostTensor::set(std::size_t i, std::int64_t value) noexcept {
    if (is_real()) {
        reals[i] = static_cast<double>(value);
        return;
    }
    std::int64_t stored = 0;
    store_int(&stored, dtype, value);
    ints[i] = load_int(&stored, dtype);
}

Result<std::int64_t> EvalContext::integer(std::size_t i) const { return node_.size(i).evaluate(*symbols_); }

Result<std::vector<std::int64_t>> EvalContext::integers(std::size_t i) const {
    std::vector<std::int64_t> out;
    for (const Sym& s : node_.sizes(i)) {
        const auto value = s.evaluate(*symbols_);
        if (!value) return std::unexpected(value.error());
        out.push_back(*value);
    }
    return out;
}

Result<double> EvalContext::real(std::size_t i) const {
    if (const auto* s = std::get_if<Sym>(&node_[i])) {
        const auto value = s->evaluate(*symbols_);
        if (!value) return std::unexpected(value.error());
        return static_cast<double>(*value);
    }
    return node_.real(i);
}

Result<HostTensor> EvalContext::make(DType dtype, const Dims& shape) const {
    const auto count = lyo::element_count(std::span<const std::int64_t>(shape));
    if (!count) return node_.error("shape ", to_string(shape), " has no size");
    if (static_cast<std::size_t>(*count) > limit_)
        return mismatch(ErrorCode::limit_exceeded, node_.place(), "elements", cat("at most ", limit_), *count);
    HostTensor out{dtype, shape, {}, {}};
    if (out.is_real())
        out.reals.resize(static_cast<std::size_t>(*count));
    else
        out.ints.resize(static_cast<std::size_t>(*count));
    return out;
}

Result<Dims> EvalContext::dims(const Shape& shape) const {
    Dims out;
    for (const Sym& s : shape) {
        const auto value = s.evaluate(*symbols_);
        if (!value) return std::unexpected(value.error());
        out.push_back(*value);
    }
    return out;
}

HostTensor to_host(const Tensor& tensor) {
    HostTensor out{tensor.dtype(), tensor.shape(), {}, {}};
    const auto count = static_cast<std::size_t>(tensor.numel());
    const auto compact = tensor.contiguous();
    if (!compact) return out;
    const auto* data = static_cast<const std::byte*>(compact->data());
    const std::size_t size = size_of(tensor.dtype());
    for (std::size_t i = 0; i < count; ++i) {
        if (out.is_real())
            out.reals.push_back(load_double(data + i * size, tensor.dtype()));
        else
            out.ints.push_back(load_int(data + i * size, tensor.dtype()));
    }
    return out;
}

Result<Tensor> from_host(const HostTensor& tensor) {
    auto out = Tensor::empty(tensor.shape, tensor.dtype);
    if (!out) return out;
    auto* data = static_cast<std::byte*>(out->mutable_data());
    const std::size_t size = size_of(tensor.dtype);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.numel()); ++i) {
        if (tensor.is_real())
            store_double(data + i * size, tensor.dtype, tensor.reals[i]);
        else
            store_int(data + i * size, tensor.dtype, tensor.ints[i]);
    }
    return out;
}

namespace {

std::string input_place(const Graph& graph, std::size_t i) {
    return cat("input ", i, " (", graph[graph.inputs[i]].name, ")");
}

std::unexpected<Error> guard(const Graph& graph, std::size_t i, std::string_view what, const std::string& expected,
                             const std::string& got) {
    return mismatch(ErrorCode::guard_failed, input_place(graph, i), what, expected, got);
}

/// The symbol's value where size == coefficient * symbol + rest, or nullopt where the form is another.
struct Linear {
    std::string name;
    std::int64_t coefficient = 1, rest = 0;
};
std::optional<Linear> linear_form(const Sym& size) {
    if (size.kind() == Sym::Kind::symbol) return Linear{size.name()};
    if (size.kind() == Sym::Kind::product && size.operands().size() == 2 && size.operands()[0].is_constant() &&
        size.operands()[1].kind() == Sym::Kind::symbol)
        return Linear{size.operands()[1].name(), size.operands()[0].value()};
    if (size.kind() == Sym::Kind::sum && size.operands().size() == 2 && size.operands()[1].is_constant()) {
        auto inner = linear_form(size.operands()[0]);
        if (inner) inner->rest = size.operands()[1].value();
        return inner;
    }
    return std::nullopt;
}

}  // namespace

Result<std::map<std::string, std::int64_t>> bind_symbols(const Graph& graph, std::span<const Tensor> inputs) {
    if (inputs.size() != graph.inputs.size())
        return mismatch(ErrorCode::guard_failed, "call", "inputs", graph.inputs.size(), inputs.size());
    std::map<std::string, std::int64_t> symbols;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const TensorType& type = graph.type(graph.inputs[i]);
        if (inputs[i].dtype() != type.dtype)
            return guard(graph, i, "dtype", std::string(to_string(type.dtype)),
                         std::string(to_string(inputs[i].dtype())));
        if (inputs[i].rank() != type.rank())
            return guard(graph, i, "rank", std::to_string(type.rank()), std::to_string(inputs[i].rank()));
        for (std::size_t d = 0; d < type.rank(); ++d) {
            const auto form = linear_form(type.shape[d]);
            if (!form || form->coefficient <= 0 || symbols.contains(form->name)) continue;
            const std::int64_t value = inputs[i].shape()[d] - form->rest;
            if (value % form->coefficient == 0) symbols[form->name] = value / form->coefficient;
        }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Shape& shape = graph.type(graph.inputs[i]).shape;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const auto expected = shape[d].evaluate(symbols);
            if (!expected || *expected != inputs[i].shape()[d])
                return guard(graph, i, cat("size of dimension ", d),
                             expected ? std::to_string(*expected) : shape[d].to_string(),
                             std::to_string(inputs[i].shape()[d]));
        }
    }
    for (const SymbolRange& range : graph.symbols) {
        const auto at = symbols.find(range.name);
        if (at != symbols.end() && (at->second < range.min || at->second > range.max))
            return mismatch(ErrorCode::guard_failed, "call", range.name, cat("in [", range.min, ", ", range.max, "]"),
                            at->second);
    }
    for (const Relation& relation : graph.relations) {
        const auto left = relation.left.evaluate(symbols), right = relation.right.evaluate(symbols);
        if (!left) return std::unexpected(left.error());
        if (!right) return std::unexpected(right.error());
        if (relation.kind == Relation::Kind::equal ? *left != *right : *left > *right)
            return fail(ErrorCode::guard_failed, "call", relation.left.to_string(),
                        relation.kind == Relation::Kind::equal ? " == " : " <= ", relation.right.to_string(),
                        " is not so: ", *left, " and ", *right);
    }
    return symbols;
}

Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs,
                                      const InterpretOptions& options) {
    const auto symbols = bind_symbols(graph, inputs);
    if (!symbols) return std::unexpected(symbols.error());
    std::vector<HostTensor> values(graph.values.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i].index] = to_host(inputs[i]);
    for (const GraphConstant& constant : graph.constants) values[constant.value.index] = to_host(constant.data);
    for (const Node& node : graph.nodes) {
        const EvalContext context(NodeView(graph, *node.op, node.arguments), *symbols, values, options.max_elements);
        auto outputs = node.op->def.eval(context);
        if (!outputs) return std::unexpected(outputs.error());
        for (std::size_t i = 0; i < node.outputs.size() && i < outputs->size(); ++i)
            values[node.outputs[i].index] = std::move((*outputs)[i]);
    }
    std::vector<Tensor> out;
    for (const ValueId id : graph.outputs) {
        auto tensor = from_host(values[id.index]);
        if (!tensor) return std::unexpected(tensor.error());
        out.push_back(std::move(*tensor));
    }
    return out;
}

}  // namespace lyo
