// A model that is called: several specialisations behind one name, and what happens when none of them fits.
export module lyo.aot:callable;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import lyo.compiler;
import lyo.kernel;
import lyo.hydration;
import lyo.cache;
import :build;

namespace lyo {

/// What a call does when no specialisation takes its inputs; as in torch.compiler.set_stance.
export enum class Stance : std::uint8_t {
    compile,             ///< compiles one that does ("default" there)
    fail_on_recompile,   ///< is an error, with every specialisation's reason
    eager_on_recompile,  ///< runs the reference interpreter
    force_eager,         ///< runs the reference interpreter, always
};
export inline constexpr std::array<std::string_view, 4> stance_names = {"default", "fail_on_recompile",
                                                                        "eager_on_recompile", "force_eager"};

export struct CallableOptions {
    CompileOptions compile = {};
    Device device = Device::cpu();
    HydrateOptions hydrate = {};
    /// Where artifacts are looked up and kept; none: nowhere.
    std::optional<Cache> cache = {};
    Stance stance = Stance::compile;
    /// A size of the model that may vary is compiled as the number it has in the call, until it has had more different
    /// values than this: then it may vary in what is compiled, too. 0: from the first call on. As torch.compile's
    /// automatic dynamic shapes, which widen after 1.
    std::size_t widen_after = 1;
    /// When there are so many, the next is for all sizes that the model takes.
    std::size_t max_specialisations = 8;
};

export struct Specialisation {
    Function function;
    CacheKey key;
    Source source = Source::local;  ///< where the artifact came from; `local` for those of a file
    bool loaded = false;            ///< from what `load` was given
};

/// Copies share. Every member may be called from many threads at once; one thread compiles while the others call.
export class Callable {
  public:
    /// A callable for a model; compiles nothing yet. Errors: out_of_memory.
    [[nodiscard]] static Result<Callable> make(Graph model, CallableOptions options = {});
    /// What `serialize` gave, or any artifact: live at once, every specialisation of it. Without a model nothing can be
    /// added and nothing run eagerly. Errors: those of Artifact::check, of archives and of hydrate; bad_model (a
    /// specialisation whose inputs or outputs are not the model's).
    [[nodiscard]] static Result<Callable> load(const Bytes& bytes, CallableOptions options = {},
                                               std::optional<Graph> model = std::nullopt);
    [[nodiscard]] static Result<Callable> load(const std::string& path, CallableOptions options = {},
                                               std::optional<Graph> model = std::nullopt);

    /// Calls the first specialisation whose guards hold; if none does, acts by the stance. Errors: those of
    /// Function::call; guard_failed (by stance, or because the model itself does not take these inputs), those of
    /// build.
    [[nodiscard]] Result<std::vector<Tensor>> call(std::span<const Tensor> inputs, Stream stream = {}) const;
    [[nodiscard]] Result<std::vector<Tensor>> call(std::initializer_list<Tensor> inputs, Stream stream = {}) const {
        return call(std::span<const Tensor>(inputs.begin(), inputs.size()), stream);
    }
    /// Compiles, whatever the stance, the specialisation for all sizes that the model takes, unless there is one.
    Result<> compile() const;

    /// The bytes that it was made from: of one specialisation its artifact's, of several an archive of them in the
    /// order in which they are tried. Loaded again they give the same bytes. Errors: invalid_argument (nothing is
    /// compiled yet), out_of_memory.
    [[nodiscard]] Result<Bytes> serialize() const;
    /// Writes `serialize` beside the path, then over it. Errors: file.
    [[nodiscard]] Result<> save(const std::string& path) const;

    void set_stance(Stance stance) const noexcept;
    Stance stance() const noexcept;
    /// Drops every specialisation, as torch.compiler.reset does; the cache keeps what it has.
    void reset() const;
    /// In the order in which they are tried.
    std::vector<Specialisation> specialisations() const;

  private:
    struct State;
    explicit Callable(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace lyo
