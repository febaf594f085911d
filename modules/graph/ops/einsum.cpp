// einsum and what is one: tensordot, inner, outer, bilinear. Operands are contracted two at a time from the left; each
// pair becomes a batched matrix product, or a product of elements where nothing or everything is summed.
module lyo.graph;

import lyo.prelude;
import lyo.base;
import :ops;
import :tools;

namespace lyo::ops {
namespace {

/// Letters are 0 to 51 (capitals first, as PyTorch sorts them); the dimensions of an ellipsis count on from there, the
/// last one first.
using Label = int;
constexpr Label first_ellipsis_label = 52;

struct Term {
    ValueId operand;
    std::vector<Label> labels;
};
struct Equation {
    std::vector<Term> terms;
    std::vector<Label> output;
    std::map<Label, Sym> sizes;
    DType dtype = DType::f32;
};

bool has(const std::vector<Label>& labels, Label label) noexcept {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::optional<Label> label_of(char c) noexcept {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return std::nullopt;
}

/// One subscript; its ellipsis, if any, stands for `ellipsis` dimensions.
Result<std::vector<Label>> read_labels(const NodeView& node, std::string_view text, std::size_t ellipsis) {
    std::vector<Label> out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '.') {
            if (text.substr(i, 3) != "..." || text.substr(i + 3).find('.') != std::string_view::npos)
                return node.error("equation: a dot that is not of one ellipsis in ", text);
            for (std::size_t k = ellipsis; k-- > 0;) out.push_back(first_ellipsis_label + static_cast<Label>(k));
            i += 2;
        } else if (const auto label = label_of(text[i])) {
            out.push_back(*label);
        } else {
            return node.error("equation: subscripts are letters, got ", text[i]);
        }
    }
    return out;
}

/// Sets sizes and dtype; a size of 1 broadcasts.
Result<> set_sizes(const InferContext& context, Equation& equation) {
    if (equation.terms.empty()) return context.error("no operands");
    equation.dtype = context.graph().type(equation.terms[0].operand).dtype;
    for (const Term& term : equation.terms) {
        const TensorType& type = context.graph().type(term.operand);
        if (type.dtype != equation.dtype) return context.error("the operands' dtypes differ");
        if (type.rank() != term.labels.size())
            return mismatch(ErrorCode::bad_graph, context.place(), "subscripts", type.rank(), term.labels.size());
        for (std::size_t d = 0; d < type.rank(); ++d) {
            Sym& size = equation.sizes.try_emplace(term.labels[d], 1).first->second;
            if (type.shape[d] == Sym(1)) continue;
            if (size == Sym(1)) {
                size = type.shape[d];
                continue;
            }
            const auto same = context.equal(size, type.shape[d], "sizes of one subscript");
            if (!same) return std::unexpected(same.error());
            size = *same;
        }
    }
    for (std::size_t i = 0; i < equation.output.size(); ++i) {
        if (!equation.sizes.contains(equation.output[i])) return context.error("an output subscript is in no operand");
        if (std::count(equation.output.begin(), equation.output.end(), equation.output[i]) > 1)
            return context.error("an output subscript is repeated");
    }
    return {};
}

Result<Equation> einsum_equation(const InferContext& context) {
    std::string text;
    for (const char c : context.text(0))
        if (c != ' ') text += c;
    std::string_view inputs = text;
    std::optional<std::string_view> output;
    if (const auto arrow = text.find("->"); arrow != std::string::npos) {
        inputs = std::string_view(text).substr(0, arrow);
        output = std::string_view(text).substr(arrow + 2);
    }
    std::vector<std::string_view> parts;
    for (std::size_t start = 0; start <= inputs.size();) {
        const std::size_t comma = std::min(inputs.find(',', start), inputs.size());
        parts.push_back(inputs.substr(start, comma - start));
        start = comma + 1;
    }
    const auto tensors = context.tensors(1);
    if (parts.size() != tensors.size())
        return mismatch(ErrorCode::bad_graph, context.place(), "operands", parts.size(), tensors.size());
    Equation out;
    std::size_t widest = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!tensors[i]) return context.error("an operand is missing");
        const std::size_t rank = context.graph().type(*tensors[i]).rank();
        const bool dots = parts[i].find('.') != std::string_view::npos;
        const std::size_t letters = parts[i].size() - std::min<std::size_t>(parts[i].size(), dots ? 3 : 0);
        if (dots && letters > rank) return context.error("equation: more subscripts than dimensions in ", parts[i]);
        const std::size_t ellipsis = dots ? rank - letters : 0;
        widest = std::max(widest, ellipsis);
        auto labels = read_labels(context, parts[i], ellipsis);
        if (!labels) return std::unexpected(labels.error());
        out.terms.push_back({*tensors[i], std::move(*labels)});
    }
    if (output) {
        auto labels = read_labels(context, *output, widest);
        if (!labels) return std::unexpected(labels.error());
        out.output = std::move(*labels);
    } else {
        // Without an arrow: the ellipsis, then the letters that occur once, sorted.
        for (std::size_t k = widest; k-- > 0;) out.output.push_back(first_ellipsis_label + static_cast<Label>(k));
        for (Label label = 0; label < first_ellipsis_label; ++label) {
            std::ptrdiff_t uses = 0;
            for (const Term& term : out.terms) uses += std::count(term.labels.begin(), term.labels.end(), label);
            if (uses == 1) out.output.push_back(label);
        }
    }
    if (const auto ok = set_sizes(context, out); !ok) return std::unexpected(ok.error());
    return out;
}

std::vector<Label> fresh(Label& next, std::size_t count) {
    std::vector<Label> out(count);
    for (Label& label : out) label = next++;
    return out;
}

Result<Equation> tensordot_equation(const InferContext& context) {
    Label next = 0;
    Equation out;
    out.terms = {{context.tensor(0), fresh(next, context.type(0).rank())},
                 {context.tensor(1), fresh(next, context.type(1).rank())}};
    const auto left = context.integers(2), right = context.integers(3);
    if (!left) return std::unexpected(left.error());
    if (!right) return std::unexpected(right.error());
    const auto left_axes = normalize_dims(context, *left, context.type(0).rank());
    const auto right_axes = normalize_dims(context, *right, context.type(1).rank());
    if (!left_axes) return std::unexpected(left_axes.error());
    if (!right_axes) return std::unexpected(right_axes.error());
    if (left_axes->size() != right_axes->size())
        return mismatch(ErrorCode::bad_graph, context.place(), "dims_other", left_axes->size(), right_axes->size());
    for (std::size_t i = 0; i < left_axes->size(); ++i) {
        if ((*left_axes)[i] >= out.terms[0].labels.size() || (*right_axes)[i] >= out.terms[1].labels.size())
            return context.error("a tensor without dimensions has none to contract");
        out.terms[1].labels[(*right_axes)[i]] = out.terms[0].labels[(*left_axes)[i]];
    }
    for (const std::size_t k : {0, 1})
        for (const Label label : out.terms[k].labels)
            if (!has(out.terms[1 - k].labels, label)) out.output.push_back(label);
    if (const auto ok = set_sizes(context, out); !ok) return std::unexpected(ok.error());
    return out;
}

/// Over the last dimension of both.
Result<Equation> inner_equation(const InferContext& context) {
    Label next = 0;
    Equation out;
    out.terms = {{context.tensor(0), fresh(next, context.type(0).rank())},
                 {context.tensor(1), fresh(next, context.type(1).rank())}};
    std::vector<Label>&a = out.terms[0].labels, &b = out.terms[1].labels;
    out.output = a;
    if (a.empty() || b.empty()) {
        out.output.insert(out.output.end(), b.begin(), b.end());
    } else {
        b.back() = a.back();
        out.output.pop_back();
        out.output.insert(out.output.end(), b.begin(), b.end() - 1);
        const auto same = context.equal(context.type(0).shape.back(), context.type(1).shape.back(), "last dimensions");
        if (!same) return std::unexpected(same.error());
    }
    if (const auto ok = set_sizes(context, out); !ok) return std::unexpected(ok.error());
    return out;
}

/// out[..., k] = sum of input1[..., i] * weight[k, i, j] * input2[..., j].
Result<Equation> bilinear_equation(const InferContext& context) {
    const std::size_t rank = context.type(0).rank();
    if (rank == 0 || context.type(1).rank() != rank || context.type(2).rank() != 3)
        return context.error("ranks: inputs need the same, at least 1, and the weight 3");
    Label next = 3;
    std::vector<Label> batch = fresh(next, rank - 1), left = batch, right = batch;
    left.push_back(1);
    right.push_back(2);
    Equation out;
    out.terms = {{context.tensor(0), left}, {context.tensor(2), {0, 1, 2}}, {context.tensor(1), right}};
    out.output = batch;
    out.output.push_back(0);
    if (const auto ok = set_sizes(context, out); !ok) return std::unexpected(ok.error());
    return out;
}

// Decomposition.

/// Contracts terms; labels that nobody needs any more are summed as soon as they can be.
class Contraction {
  public:
    Contraction(Steps& steps, const Equation& equation) : steps_(&steps), equation_(&equation) {}

    ValueId run() {
        Term result = prepared(equation_->terms[0]);
        for (std::size_t i = 1; i < equation_->terms.size(); ++i) {
            Term next = prepared(equation_->terms[i]);
            const auto needed = [&](Label label) {
                if (has(equation_->output, label)) return true;
                for (std::size_t k = i + 1; k < equation_->terms.size(); ++k)
                    if (has(equation_->terms[k].labels, label)) return true;
                return false;
            };
            result = summed(std::move(result), [&](Label l) { return needed(l) || has(next.labels, l); });
            next = summed(std::move(next), [&](Label l) { return needed(l) || has(result.labels, l); });
            result = pair(result, next, needed);
        }
        result = summed(std::move(result), [&](Label l) { return has(equation_->output, l); });
        return arranged(result, equation_->output);
    }

  private:
    /// Repeated labels become a diagonal, sizes of 1 are expanded.
    Term prepared(Term term) {
        for (std::size_t d = 0; d < term.labels.size(); ++d) {
            const Label label = term.labels[d];
            const auto again =
                std::find(term.labels.begin() + static_cast<std::ptrdiff_t>(d) + 1, term.labels.end(), label);
            if (again == term.labels.end()) continue;
            const auto other = again - term.labels.begin();
            term.operand = steps_->call(
                "diagonal", {expanded(term), Sym(0), Sym(static_cast<std::int64_t>(d)), Sym(std::int64_t{other})});
            term.labels.erase(again);
            term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(d));
            term.labels.push_back(label);
            --d;
        }
        term.operand = expanded(term);
        return term;
    }
    ValueId expanded(const Term& term) { return steps_->expand(term.operand, shape_of(term.labels)); }
    Shape shape_of(const std::vector<Label>& labels) const {
        Shape out;
        for (const Label label : labels) out.push_back(equation_->sizes.at(label));
        return out;
    }
    Sym count_of(const std::vector<Label>& labels) const { return element_count(shape_of(labels)); }

    template <class Keep>
    Term summed(Term term, Keep keep) {
        Axes axes;
        std::vector<Label> rest;
        for (std::size_t d = 0; d < term.labels.size(); ++d) {
            if (keep(term.labels[d]))
                rest.push_back(term.labels[d]);
            else
                axes.push_back(d);
        }
        return {steps_->reduce("lyo_sum", term.operand, axes, false), std::move(rest)};
    }
    /// The operand with its dimensions in the order of `labels`; labels that it lacks are dimensions of size 1.
    ValueId arranged(const Term& term, const std::vector<Label>& labels) {
        Axes order;
        Shape shape;
        for (const Label label : labels) {
            const auto at = std::find(term.labels.begin(), term.labels.end(), label);
            shape.push_back(at == term.labels.end() ? Sym(1) : equation_->sizes.at(label));
            if (at != term.labels.end()) order.push_back(static_cast<std::size_t>(at - term.labels.begin()));
        }
        return steps_->reshape(steps_->permute(term.operand, order), shape);
    }
    template <class Needed>
    Term pair(const Term& a, const Term& b, Needed needed) {
        std::vector<Label> batch, left, right, inner;
        for (const Label label : a.labels) {
            if (!has(b.labels, label))
                left.push_back(label);
            else
                (needed(label) ? batch : inner).push_back(label);
        }
        for (const Label label : b.labels)
            if (!has(a.labels, label)) right.push_back(label);
        const auto all = [](std::initializer_list<const std::vector<Label>*> parts) {
            std::vector<Label> out;
            for (const auto* part : parts) out.insert(out.end(), part->begin(), part->end());
            return out;
        };
        if (inner.empty() || (left.empty() && right.empty())) {
            const std::vector<Label> labels = all({&batch, &left, &right, &inner});
            const Term product{steps_->mul(arranged(a, labels), arranged(b, labels)), labels};
            return summed(product, [&](Label label) { return !has(inner, label); });
        }
        const auto grouped = [&](const Term& term, const std::vector<Label>& rows, const std::vector<Label>& columns) {
            Shape shape = shape_of(batch);
            shape.push_back(count_of(rows));
            shape.push_back(count_of(columns));
            return steps_->reshape(arranged(term, all({&batch, &rows, &columns})), shape);
        };
        const std::vector<Label> labels = all({&batch, &left, &right});
        const ValueId product = steps_->matmul(grouped(a, left, inner), grouped(b, inner, right));
        return {steps_->reshape(product, shape_of(labels)), labels};
    }

    Steps* steps_;
    const Equation* equation_;
};

template <auto equation_of>
struct Einsum {
    static Types infer(const InferContext& context) {
        const auto equation = equation_of(context);
        if (!equation) return std::unexpected(equation.error());
        Shape shape;
        for (const Label label : equation->output) shape.push_back(equation->sizes.at(label));
        return one(equation->dtype, std::move(shape));
    }
    /// Every combination of all subscripts.
    static Values eval(const EvalContext& context) {
        std::vector<Relation> relations;
        const auto equation = equation_of(InferContext(context.node(), relations));
        auto out = make_result(context);
        if (!equation) return std::unexpected(equation.error());
        if (!out) return std::unexpected(out.error());
        std::map<Label, std::int64_t> sizes, at;
        for (const auto& [label, size] : equation->sizes) {
            const auto value = context.dims({size});
            if (!value) return std::unexpected(value.error());
            sizes[label] = (*value)[0];
            at[label] = 0;
            if (sizes[label] == 0) return one(std::move(*out));
        }
        for (bool more = true; more;) {
            const auto index = [&](const std::vector<Label>& labels, const Dims& shape) {
                Dims place;
                for (std::size_t d = 0; d < labels.size(); ++d) place.push_back(shape[d] == 1 ? 0 : at[labels[d]]);
                return ravel(place, shape);
            };
            double real = 1;
            std::uint64_t integer = 1;
            for (const Term& term : equation->terms) {
                const HostTensor& tensor = context.tensor(term.operand);
                const std::size_t i = index(term.labels, tensor.shape);
                if (tensor.is_real())
                    real *= tensor.reals[i];
                else
                    integer *= static_cast<std::uint64_t>(tensor.ints[i]);
            }
            const std::size_t to = index(equation->output, out->shape);
            if (out->is_real())
                out->set(to, out->reals[to] + real);
            else
                out->set(to, static_cast<std::int64_t>(static_cast<std::uint64_t>(out->ints[to]) + integer));
            more = false;
            for (auto& [label, value] : at) {
                if (++value < sizes[label]) {
                    more = true;
                    break;
                }
                value = 0;
            }
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        std::vector<Relation> relations;
        const auto equation = equation_of(InferContext(node, relations));
        if (!equation) return std::unexpected(equation.error());
        Steps steps(builder);
        return steps.done({Contraction(steps, *equation).run()});
    }
};

/// bilinear's bias comes after the contraction.
struct Bilinear {
    using Product = Einsum<bilinear_equation>;
    static Types infer(const InferContext& context) {
        auto out = Product::infer(context);
        if (out && !is_float((*out)[0].dtype)) return context.error("the inputs must be of a floating dtype");
        if (!out || context.is_none(3)) return out;
        const auto wide = context.broadcast((*out)[0].shape, context.type(3).shape);
        if (!wide) return std::unexpected(wide.error());
        if (context.type(3).rank() > 1 || context.type(3).dtype != (*out)[0].dtype)
            return context.error("bias must be a vector of the inputs' dtype");
        return out;
    }
    static Values eval(const EvalContext& context) {
        auto out = Product::eval(context);
        if (!out || context.node().is_none(3)) return out;
        HostTensor& result = (*out)[0];
        for (std::size_t i = 0; i < result.reals.size(); ++i)
            result.reals[i] += context.tensor(3).real(broadcast_index(i, result.shape, context.tensor(3).shape));
        return out;
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const std::optional<ValueId> bias = node.optional_tensor(3);
        const auto out = Product::decompose(builder, node);
        if (!out || !bias) return out;
        Steps steps(builder);
        return steps.done({steps.add((*out)[0], *bias)});
    }
};

/// outer: unlike the others, it promotes.
struct Outer {
    static Types infer(const InferContext& context) {
        const TensorType &a = context.type(0), &b = context.type(1);
        if (a.rank() != 1 || b.rank() != 1)
            return mismatch(ErrorCode::bad_graph, context.place(), "ranks", "1 and 1",
                            cat(a.rank(), " and ", b.rank()));
        return one(promote(a.dtype, b.dtype), {a.shape[0], b.shape[0]});
    }
    static Values eval(const EvalContext& context) {
        auto out = make_result(context);
        if (!out) return std::unexpected(out.error());
        const HostTensor a = converted(context.tensor(0), out->dtype), b = converted(context.tensor(1), out->dtype);
        const auto columns = static_cast<std::size_t>(out->shape[1]);
        for (std::size_t i = 0; i < static_cast<std::size_t>(out->numel()); ++i) {
            if (out->is_real())
                out->set(i, a.reals[i / columns] * b.reals[i % columns]);
            else
                out->set(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(a.ints[i / columns]) *
                                                      static_cast<std::uint64_t>(b.ints[i % columns])));
        }
        return one(std::move(*out));
    }
    static Ids decompose(Builder& builder, const NodeView& node) {
        const ValueId b = node.tensor(1);
        Steps steps(builder);
        return steps.done({steps.mul(steps.unsqueeze(node.tensor(0), 1), b)});
    }
};

constexpr OpDef defs[] = {
    made<Einsum<einsum_equation>>("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor"),
    made<Einsum<tensordot_equation>>(
        "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor"),
    made<Einsum<inner_equation>>("inner(Tensor self, Tensor other) -> Tensor"),
    made<Outer>("outer(Tensor self, Tensor vec2) -> Tensor"),
    made<Outer>("ger(Tensor self, Tensor vec2) -> Tensor"),
    made<Bilinear>("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor"),
};

}  // namespace

std::span<const OpDef> einsum() { return defs; }

}  // namespace lyo::ops
