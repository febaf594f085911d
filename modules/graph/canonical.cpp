module lyo.graph;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;
import :op;
import :canonical;

namespace lyo {
namespace {

/// Appends everything with its kind and length, so that different graphs never give the same bytes.
class Encoder {
  public:
    void number(std::uint64_t value) {
        for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
    void number(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
    void text(std::string_view value) {
        number(std::uint64_t{value.size()});
        for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
    }
    void sym(const Sym& value) {
        number(std::uint64_t{std::to_underlying(value.kind())});
        if (value.is_constant()) return number(value.value());
        text(value.name());
        list(value.operands(), [&](const Sym& s) { sym(s); });
    }
    template <class List, class Each>
    void list(const List& items, Each each) {
        number(std::uint64_t{items.size()});
        for (const auto& item : items) each(item);
    }
    void id(ValueId value) { number(std::uint64_t{value.index}); }
    void type(const TensorType& value) {
        text(lyo::to_string(value.dtype));
        list(value.shape, [&](const Sym& s) { sym(s); });
    }
    void argument(const Argument& value) {
        number(std::uint64_t{value.index()});
        std::visit([&](const auto& v) { content(v); }, value);
    }
    Digest digest() const { return sha256(bytes_); }

  private:
    void content(std::monostate) {}
    void content(ValueId v) { id(v); }
    void content(const std::vector<std::optional<ValueId>>& v) {
        list(v, [&](const std::optional<ValueId>& i) { number(i ? std::uint64_t{i->index} + 1 : std::uint64_t{0}); });
    }
    void content(bool v) { number(std::uint64_t{v ? 1u : 0u}); }
    void content(const Sym& v) { sym(v); }
    void content(double v) { number(std::bit_cast<std::uint64_t>(v)); }
    void content(const std::string& v) { text(v); }
    void content(DType v) { text(lyo::to_string(v)); }
    void content(const std::vector<Sym>& v) {
        list(v, [&](const Sym& s) { sym(s); });
    }
    void content(const std::vector<double>& v) {
        list(v, [&](double d) { content(d); });
    }
    void content(const std::vector<bool>& v) {
        number(std::uint64_t{v.size()});
        for (const bool b : v) content(b);
    }

    std::vector<std::byte> bytes_;
};

Argument substitute(const Argument& argument, const std::map<std::string, std::int64_t>& sizes) {
    if (const auto* sym = std::get_if<Sym>(&argument)) return lyo::substitute(*sym, sizes);
    if (const auto* list = std::get_if<std::vector<Sym>>(&argument)) {
        std::vector<Sym> out;
        for (const Sym& sym : *list) out.push_back(lyo::substitute(sym, sizes));
        return out;
    }
    return argument;
}

}  // namespace

GraphDigests digests(const Graph& graph) {
    Encoder code, constants, sizes;
    code.text(graph.name);
    code.list(graph.values, [&](const Value& v) {
        code.text(v.name);
        code.type(v.type);
    });
    const auto ids = [&](const std::vector<ValueId>& list) { code.list(list, [&](ValueId v) { code.id(v); }); };
    ids(graph.inputs);
    ids(graph.outputs);
    code.list(graph.nodes, [&](const Node& node) {
        code.text(node.op->def.schema);
        code.list(node.arguments, [&](const Argument& a) { code.argument(a); });
        ids(node.outputs);
    });
    code.list(graph.constants, [&](const GraphConstant& c) { code.id(c.value); });
    constants.list(graph.constants, [&](const GraphConstant& c) {
        const std::size_t size = static_cast<std::size_t>(c.data.numel()) * size_of(c.data.dtype());
        const Digest digest = tree_digest({static_cast<const std::byte*>(c.data.data()), size});
        constants.number(std::uint64_t{size});
        constants.text({reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()});
    });
    sizes.list(graph.symbols, [&](const SymbolRange& s) {
        sizes.text(s.name);
        sizes.number(s.min);
        sizes.number(s.max);
    });
    sizes.list(graph.relations, [&](const Relation& r) {
        sizes.number(std::uint64_t{std::to_underlying(r.kind)});
        sizes.sym(r.left);
        sizes.sym(r.right);
    });
    return {code.digest(), constants.digest(), sizes.digest()};
}

Sym substitute(const Sym& value, const std::map<std::string, std::int64_t>& sizes) {
    if (value.is_constant()) return value;
    if (value.kind() == Sym::Kind::symbol) {
        const auto at = sizes.find(value.name());
        return at == sizes.end() ? value : Sym(at->second);
    }
    std::optional<Sym> out;
    for (const Sym& operand : value.operands()) {
        const Sym next = substitute(operand, sizes);
        if (!out) {
            out = next;
            continue;
        }
        switch (value.kind()) {
            case Sym::Kind::sum:
                out = *out + next;
                break;
            case Sym::Kind::product:
                out = *out * next;
                break;
            case Sym::Kind::floor_div:
                out = floor_div(*out, next);
                break;
            case Sym::Kind::mod:
                out = mod(*out, next);
                break;
            case Sym::Kind::max:
                out = max(*out, next);
                break;
            case Sym::Kind::min:
                out = min(*out, next);
                break;
            default:
                break;
        }
    }
    return *out;
}

Result<Graph> specialize(const Graph& graph, const std::map<std::string, std::int64_t>& sizes) {
    for (const auto& [name, value] : sizes) {
        const auto symbol = std::find_if(graph.symbols.begin(), graph.symbols.end(),
                                         [&](const SymbolRange& s) { return s.name == name; });
        if (symbol == graph.symbols.end())
            return fail(ErrorCode::invalid_argument, graph.name, "no size is named ", name);
        if (value < symbol->min || value > symbol->max)
            return mismatch(ErrorCode::invalid_argument, graph.name, name, cat(symbol->min, " to ", symbol->max),
                            value);
    }
    Graph out = graph;
    std::erase_if(out.symbols, [&](const SymbolRange& s) { return sizes.contains(s.name); });
    for (Value& value : out.values)
        for (Sym& size : value.type.shape) size = substitute(size, sizes);
    for (Node& node : out.nodes)
        for (Argument& argument : node.arguments) argument = substitute(argument, sizes);
    out.relations.clear();
    for (const Relation& relation : graph.relations) {
        const Relation now{relation.kind, substitute(relation.left, sizes), substitute(relation.right, sizes)};
        if (!now.left.is_constant() || !now.right.is_constant()) {
            out.relations.push_back(now);
            continue;
        }
        const bool equal = relation.kind == Relation::Kind::equal;
        if (equal ? now.left.value() != now.right.value() : now.left.value() > now.right.value())
            return mismatch(ErrorCode::guard_failed, graph.name, relation.left.to_string(),
                            cat(equal ? "" : "at most ", now.right.to_string()), now.left.to_string());
    }
    return out;
}

}  // namespace lyo
