module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;
import :cuda;

namespace lyo {
namespace {

/// Constants that kernels read, each content once.
class ConstantTable {
  public:
    std::uint32_t add(const GraphConstant& constant, const std::string& name) {
        const auto count = static_cast<std::size_t>(constant.data.numel());
        const std::span<const std::byte> bytes(static_cast<const std::byte*>(constant.data.data()),
                                               count * size_of(constant.data.dtype()));
        Constant entry;
        entry.name = name;
        entry.dtype = constant.data.dtype();
        for (const std::int64_t d : constant.data.shape()) entry.shape.push_back(static_cast<std::uint64_t>(d));
        const auto key = std::tuple(entry.dtype, entry.shape, sha256(bytes));
        const auto [at, fresh] = known_.try_emplace(key, static_cast<std::uint32_t>(table.size()));
        if (fresh) {
            table.push_back(std::move(entry));
            data.push_back(bytes);
        }
        return at->second;
    }

    std::vector<Constant> table;
    std::vector<std::span<const std::byte>> data;

  private:
    std::map<std::tuple<DType, std::vector<std::uint64_t>, Digest>, std::uint32_t> known_;
};

FunctionSpec function_spec(const Graph& graph, const Graph& named) {
    FunctionSpec out;
    out.name = graph.name;
    for (const SymbolRange& s : graph.symbols) out.symbols.push_back({s.name, s.min, s.max});
    ExprPool exprs(graph.symbols);
    const auto spec = [&](const std::string& name, const TensorType& type) {
        TensorSpec t{name, type.dtype, {}};
        for (const Sym& s : type.shape) t.shape.push_back(exprs(s));
        return t;
    };
    for (const ValueId id : graph.inputs) out.inputs.push_back(spec(graph[id].name, graph.type(id)));
    for (std::size_t i = 0; i < graph.outputs.size(); ++i)
        out.outputs.push_back(spec(named[named.outputs[i]].name, graph.type(graph.outputs[i])));
    for (const Relation& r : graph.relations)
        out.guards.push_back(
            {r.kind == Relation::Kind::equal ? GuardKind::equal : GuardKind::at_most, exprs(r.left), exprs(r.right)});
    out.exprs = exprs.take();
    return out;
}

/// Outputs that are an item as it is made: the item is stored there. Others are copied after everything else.
bool is_whole_item(const Flow& f, const Access& access) {
    return access.base.kind == BaseId::Kind::item && access.view.offset == Sym(0) &&
           access.view.shape == f.items[access.base.index].type.shape &&
           access.view.strides == row_major(f.items[access.base.index].type.shape);
}

/// A plan, and what its expressions stand for.
struct Lowered {
    Program program;
    std::map<std::uint32_t, Sym> syms;
};

Result<Lowered> lower(const Flow& f, ConstantTable& constants) {
    ExprPool exprs(f.graph->symbols);
    std::map<BaseId, Placement> places;
    std::map<std::uint32_t, std::vector<Placement>> stores;
    std::vector<Sym> slots;
    for (std::uint32_t i = 0; i < f.outputs.size(); ++i)
        if (is_whole_item(f, f.outputs[i])) {
            const BaseId base = f.outputs[i].base;
            places.try_emplace(base, Placement{Space::output, i});
            stores[base.index].push_back({Space::output, i});
        }
    const auto read = [&](const Access& access) {
        const BaseId base = access.base;
        if (places.contains(base)) return;
        switch (base.kind) {
            case BaseId::Kind::input:
                places[base] = {Space::input, base.index};
                break;
            case BaseId::Kind::constant: {
                const GraphConstant& constant = f.graph->constants[base.index];
                places[base] = {Space::constant, constants.add(constant, (*f.graph)[constant.value].name)};
                break;
            }
            case BaseId::Kind::item: {
                const TensorType& type = f.items[base.index].type;
                places[base] = {Space::slot, static_cast<std::uint32_t>(slots.size())};
                stores[base.index].push_back(places[base]);
                slots.push_back(element_count(type.shape) * Sym(static_cast<std::int64_t>(size_of(type.dtype))));
                break;
            }
        }
    };
    const auto in_memory = [&](const Item& reader, const std::optional<Access>& operand) {
        if (operand->base.kind != BaseId::Kind::item || reader.takes_address(operand)) return true;
        const Item& made = f.items[operand->base.index];
        return !made.is_inline() && made.group != reader.group;
    };
    for (const std::uint32_t g : f.order)
        for (const std::uint32_t i : f.groups[g].items)
            for (const auto& o : f.items[i].operands)
                if (o && in_memory(f.items[i], o)) read(*o);
    for (const Access& o : f.outputs)
        if (!is_whole_item(f, o) && !(o.base.kind == BaseId::Kind::item && f.items[o.base.index].is_inline())) read(o);

    Program program;
    const LowerContext context{f, exprs, places, stores};
    for (const std::uint32_t g : f.order) {
        auto steps = lower_group(context, f.groups[g]);
        if (!steps) return std::unexpected(steps.error());
        for (Step& step : *steps) program.steps.push_back(std::move(step));
    }
    for (std::uint32_t i = 0; i < f.outputs.size(); ++i)
        if (!is_whole_item(f, f.outputs[i]))
            program.steps.emplace_back(
                copy_loop(context, f.outputs[i], dtype_of(f, f.outputs[i].base), {Space::output, i}));
    plan_memory(program, std::move(slots), exprs);
    Lowered out{std::move(program), exprs.syms()};
    out.program.exprs = exprs.take();
    return out;
}

Result<Lowered> plan(const Graph& graph, ConstantTable& constants) {
    auto flow = make_items(graph);
    if (!flow) return std::unexpected(flow.error());
    // Fewer items a kernel where one would need more registers than there are.
    Result<Lowered> out;
    for (std::size_t max_items = 256; max_items > 0; max_items /= 4) {
        Flow attempt = *flow;
        make_groups(attempt, max_items);
        ConstantTable table = constants;
        out = lower(attempt, table);
        if (out) constants = std::move(table);
        if (out || out.error().code != ErrorCode::limit_exceeded) return out;
    }
    return out;
}

/// The plan for every target that is not "cpu", and each one's machine code, from one source.
Result<> add_cuda(ArtifactContents& contents, std::vector<std::vector<std::byte>>& code, const Lowered& lowered,
                  const Graph& graph) {
    const auto sym = [&](std::uint32_t i) { return lowered.syms.find(i)->second; };
    auto generated = cuda::generate(lowered.program, graph.symbols, sym, "lyo");
    if (!generated) return std::unexpected(generated.error());
    const std::string source = std::string(cuda::prelude()) + generated->source;
    for (const std::string& target : contents.manifest.targets) {
        if (target == "cpu") continue;
        auto bytes = cuda::assemble(source, target);
        if (!bytes) return std::unexpected(bytes.error());
        code.push_back(std::move(*bytes));
        contents.device_images.emplace_back().programs.push_back(generated->program);
    }
    contents.device_code.assign(code.begin(), code.end());
    return {};
}

/// Sorted, each once. Errors: invalid_argument.
Result<std::vector<std::string>> targets_of(const CompileOptions& options) {
    std::vector<std::string> targets = options.targets;
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    for (const std::string& target : targets)
        if (target != "cpu" && !cuda::is_target(target))
            return mismatch(ErrorCode::invalid_argument, "compile", "target", "cpu, cuda:sm_NN or cuda:ptx", target);
    if (targets.empty()) return fail(ErrorCode::invalid_argument, "compile", "no target is given");
    return targets;
}

}  // namespace

Result<std::vector<CompilerIdentity>> compiler_identity(const CompileOptions& options) {
    const auto targets = targets_of(options);
    if (!targets) return std::unexpected(targets.error());
    std::string joined;
    for (const std::string& target : *targets) joined += cat(joined.empty() ? "" : ",", target);
    std::vector<CompilerIdentity> out = {
        {"compiler", cat("lyo ", version(), " ", detail::compiler_fingerprint())},
        {"format", cat(format::version, ".", format::abi_version)},
        {"options", options.debug ? "debug" : "no-debug"},
        {"targets", std::move(joined)},
    };
    if (targets->size() > 1 || targets->front() != "cpu") {
        auto nvrtc = cuda::nvrtc_version();
        if (!nvrtc) return std::unexpected(nvrtc.error());
        out.push_back({"nvrtc", std::move(*nvrtc)});
    }
    return out;
}

Result<Bytes> compile(const Graph& graph, const CompileOptions& options) try {
    auto targets = targets_of(options);
    if (!targets) return std::unexpected(targets.error());
    auto core = decompose(graph);
    if (!core) return std::unexpected(core.error());
    ConstantTable constants;
    auto lowered = plan(*core, constants);
    if (!lowered) return std::unexpected(lowered.error());

    ArtifactContents contents;
    contents.manifest.producer = cat("lyo ", version());
    contents.manifest.abi = format::abi_version;
    contents.manifest.targets = std::move(*targets);
    contents.functions.functions.push_back(function_spec(*core, graph));
    contents.functions.constants = std::move(constants.table);
    contents.constants = std::move(constants.data);
    std::vector<std::vector<std::byte>> code;
    const auto& wanted = contents.manifest.targets;
    if (std::find(wanted.begin(), wanted.end(), "cpu") != wanted.end())
        contents.images.emplace_back().programs.push_back(lowered->program);
    if (wanted.size() > contents.images.size())
        if (auto ok = add_cuda(contents, code, *lowered, *core); !ok) return std::unexpected(ok.error());
    if (options.debug) contents.debug = Debug{graph.to_string()};
    return Artifact::encode(std::move(contents));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "compile", "no memory");
}

}  // namespace lyo
