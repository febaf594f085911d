module lyo.aot;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import lyo.compiler;
import lyo.kernel;
import lyo.hydration;
import lyo.cache;
import :build;
import :callable;

namespace lyo {
namespace {

using List = std::vector<Specialisation>;

/// The size that an expression of a function's table is, where it is a constant.
std::optional<std::int64_t> constant_of(const FunctionSpec& spec, std::uint32_t expr) {
    const Expr& e = spec.exprs[expr];
    return e.op == ExprOp::constant ? std::optional(e.value) : std::nullopt;
}

/// Inputs and outputs as the model's, sizes aside.
Result<> same_signature(const FunctionSpec& spec, const Graph& model) {
    const auto compare = [&](std::string_view what, const std::vector<TensorSpec>& have,
                             const std::vector<ValueId>& want) -> Result<> {
        if (have.size() != want.size())
            return mismatch(ErrorCode::bad_model, spec.name, cat("number of ", what, "s"), want.size(), have.size());
        for (std::size_t i = 0; i < have.size(); ++i) {
            const TensorType& type = model.type(want[i]);
            if (have[i].dtype != type.dtype)
                return mismatch(ErrorCode::bad_model, spec.name, cat("dtype of ", what, " ", i), to_string(type.dtype),
                                to_string(have[i].dtype));
            if (have[i].shape.size() != type.rank())
                return mismatch(ErrorCode::bad_model, spec.name, cat("rank of ", what, " ", i), type.rank(),
                                have[i].shape.size());
        }
        return {};
    };
    if (auto ok = compare("input", spec.inputs, model.inputs); !ok) return ok;
    return compare("output", spec.outputs, model.outputs);
}

/// What sizes of the model have been so far: the numbers that specialisations were made for, and those that vary.
struct Seen {
    std::map<std::string, std::set<std::int64_t>> numbers;
    std::set<std::string> varying;

    void add(const FunctionSpec& spec, const Graph& model) {
        std::set<std::string> fixed;
        for (const SymbolRange& s : model.symbols) fixed.insert(s.name);
        for (const Symbol& s : spec.symbols) {
            fixed.erase(s.name);
            varying.insert(s.name);
        }
        for (std::size_t i = 0; i < model.inputs.size(); ++i) {
            const Shape& shape = model.type(model.inputs[i]).shape;
            for (std::size_t d = 0; d < shape.size(); ++d) {
                if (shape[d].kind() != Sym::Kind::symbol) continue;
                const auto number = constant_of(spec, spec.inputs[i].shape[d]);
                if (number && fixed.erase(shape[d].name()) > 0) numbers[shape[d].name()].insert(*number);
            }
        }
        // Those that no size is equal to: a number of their own, below any size.
        for (const std::string& name : fixed) numbers[name].insert(--unknown);
    }

  private:
    std::int64_t unknown = 0;
};

}  // namespace

struct Callable::State {
    explicit State(CallableOptions o) : options(std::move(o)), stance(options.stance) {}

    std::shared_ptr<const List> list() const {
        const std::lock_guard lock(reading);
        return specialisations;
    }
    void replace(std::shared_ptr<const List> next) {
        const std::lock_guard lock(reading);
        specialisations = std::move(next);
    }
    const Function* find(const List& from, std::span<const Tensor> inputs) const {
        for (const Specialisation& s : from)
            if (s.function.accepts(inputs)) return &s.function;
        return nullptr;
    }
    Result<> add(const Graph& graph);
    Result<Function> specialize_for(std::span<const Tensor> inputs);
    Error refusal(const List& from, std::span<const Tensor> inputs) const;

    CallableOptions options;
    std::optional<Graph> model;
    std::atomic<Stance> stance;
    std::mutex compiling;
    mutable std::mutex reading;
    std::shared_ptr<const List> specialisations = std::make_shared<List>();
};

Result<> Callable::State::add(const Graph& graph) {
    auto built = build(graph, options.compile, options.cache ? &*options.cache : nullptr);
    if (!built) return std::unexpected(built.error());
    auto function = hydrate(built->artifact, options.device, options.hydrate);
    if (!function) return std::unexpected(function.error());
    auto next = std::make_shared<List>(*list());
    next->push_back({std::move(*function), std::move(built->key), built->source, false});
    replace(std::move(next));
    return {};
}

/// Every specialisation's reason.
Error Callable::State::refusal(const List& from, std::span<const Tensor> inputs) const {
    Error out{
        ErrorCode::guard_failed, from.empty() ? "nothing is compiled" : "no specialisation takes these inputs", {}};
    out.where = model ? model->name : from.empty() ? "call" : from.front().function.spec().name;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto ok = from[i].function.accepts(inputs);
        if (!ok) out.what += cat(i == 0 ? ": " : "; ", i + 1, ": ", ok.error().to_string());
    }
    return out;
}

Result<Function> Callable::State::specialize_for(std::span<const Tensor> inputs) {
    const std::lock_guard lock(compiling);
    // Another thread may have compiled it in the meantime.
    auto now = list();
    if (const Function* f = find(*now, inputs)) return *f;
    const auto sizes = bind_symbols(*model, inputs);
    if (!sizes) return std::unexpected(sizes.error());
    Seen seen;
    for (const Specialisation& s : *now) seen.add(s.function.spec(), *model);
    std::map<std::string, std::int64_t> fixed;
    if (now->size() + 1 < options.max_specialisations)
        for (const auto& [name, value] : *sizes) {
            seen.numbers[name].insert(value);
            if (!seen.varying.contains(name) && seen.numbers[name].size() <= options.widen_after) fixed[name] = value;
        }
    const auto graph = specialize(*model, fixed);
    if (!graph) return std::unexpected(graph.error());
    if (auto ok = add(*graph); !ok) return std::unexpected(ok.error());
    now = list();
    // Guards on devices and on what only a call knows.
    if (auto ok = now->back().function.accepts(inputs); !ok) return std::unexpected(ok.error());
    return now->back().function;
}

Result<Callable> Callable::make(Graph model, CallableOptions options) try {
    auto state = std::make_shared<State>(std::move(options));
    state->model = std::move(model);
    return Callable(std::move(state));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "callable", "no memory");
}

Result<Callable> Callable::load(const Bytes& bytes, CallableOptions options, std::optional<Graph> model) try {
    auto state = std::make_shared<State>(std::move(options));
    state->model = std::move(model);
    auto list = std::make_shared<List>();
    const auto add = [&](const Bytes& artifact_bytes, std::optional<CacheKey> key) -> Result<> {
        const auto artifact = Artifact::check(artifact_bytes);
        if (!artifact) return std::unexpected(artifact.error());
        auto function = hydrate(*artifact, state->options.device, state->options.hydrate);
        if (!function) return std::unexpected(function.error());
        if (state->model)
            if (auto ok = same_signature(function->spec(), *state->model); !ok) return ok;
        if (!key) {
            auto own = CacheKey::make({{"artifact", artifact->id().hex()}});
            if (!own) return std::unexpected(own.error());
            key = std::move(*own);
        }
        list->push_back({std::move(*function), std::move(*key), Source::local, true});
        return {};
    };
    if (!EntryArchive::is_archive(bytes)) {
        if (auto ok = add(bytes, std::nullopt); !ok) return std::unexpected(ok.error());
    } else {
        const auto archive = EntryArchive::open(bytes);
        if (!archive) return std::unexpected(archive.error());
        for (std::size_t i = 0; i < archive->size(); ++i) {
            auto entry = archive->entry(i);
            Result<> ok = entry ? add(entry->value, std::move(entry->key)) : std::unexpected(entry.error());
            if (!ok) return std::unexpected(std::move(ok.error()).in(cat("archive, entry ", i)));
        }
        if (list->empty()) return fail(ErrorCode::bad_value, "archive", "there is nothing in it");
    }
    state->replace(std::move(list));
    return Callable(std::move(state));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "callable", "no memory");
}

Result<Callable> Callable::load(const std::string& path, CallableOptions options, std::optional<Graph> model) {
    const auto bytes = load_file(path);
    if (!bytes) return std::unexpected(bytes.error());
    auto out = load(*bytes, std::move(options), std::move(model));
    if (!out) return std::unexpected(std::move(out.error()).in(path));
    return out;
}

Result<std::vector<Tensor>> Callable::call(std::span<const Tensor> inputs, Stream stream) const try {
    State& s = *state_;
    const Stance stance = s.stance.load(std::memory_order_relaxed);
    if (stance != Stance::force_eager) {
        const auto list = s.list();
        if (const Function* f = s.find(*list, inputs)) return f->call(inputs, stream);
        if (stance == Stance::fail_on_recompile) return std::unexpected(s.refusal(*list, inputs));
        if (!s.model) {
            Error error = s.refusal(*list, inputs);
            error.what += "; there is no model to compile from";
            return std::unexpected(std::move(error));
        }
        if (stance == Stance::compile) {
            const auto fresh = s.specialize_for(inputs);
            if (!fresh) return std::unexpected(fresh.error());
            return fresh->call(inputs, stream);
        }
    }
    if (!s.model) return fail(ErrorCode::invalid_argument, "call", "there is no model to run eagerly");
    return interpret(*s.model, inputs);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "call", "no memory");
}

Result<> Callable::compile() const try {
    State& s = *state_;
    if (!s.model) return fail(ErrorCode::invalid_argument, "compile", "there is no model to compile from");
    const std::lock_guard lock(s.compiling);
    for (const Specialisation& one : *s.list())
        if (one.function.spec().symbols.size() == s.model->symbols.size()) return {};
    return s.add(*s.model);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "compile", "no memory");
}

Result<Bytes> Callable::serialize() const try {
    const auto list = state_->list();
    if (list->empty()) return fail(ErrorCode::invalid_argument, "serialize", "nothing is compiled yet");
    if (list->size() == 1) return list->front().function.serialize();
    std::vector<Bytes> entries;
    for (const Specialisation& s : *list) {
        auto sealed = seal_entry(s.key, s.function.serialize());
        if (!sealed) return std::unexpected(sealed.error());
        entries.push_back(std::move(*sealed));
    }
    return EntryArchive::make(entries);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "serialize", "no memory");
}

Result<> Callable::save(const std::string& path) const {
    const auto bytes = serialize();
    if (!bytes) return std::unexpected(bytes.error());
    return write_file(path, *bytes);
}

void Callable::set_stance(Stance stance) const noexcept { state_->stance.store(stance, std::memory_order_relaxed); }
Stance Callable::stance() const noexcept { return state_->stance.load(std::memory_order_relaxed); }
void Callable::reset() const { state_->replace(std::make_shared<List>()); }
std::vector<Specialisation> Callable::specialisations() const { return *state_->list(); }

}  // namespace lyo
