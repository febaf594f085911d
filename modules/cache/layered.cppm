// The cache that programs use: the local store, and perhaps a remote one behind it.
export module lyo.cache:layered;

import lyo.prelude;
import lyo.base;
import :key;
import :entry;
import :counters;
import :store;
import :local;

namespace lyo {

/// Makes the store behind the local one, given where to count and report.
export using RemoteFactory = std::function<Result<std::unique_ptr<RemoteStore>>(Counters&, const Reporter&)>;

export struct CacheOptions {
    LocalOptions local;
    RemoteFactory remote = {};
    /// How long somebody else's making is waited for, before it is made here as well.
    std::chrono::milliseconds max_wait = std::chrono::minutes(10);
    /// Told of everything that went wrong without costing the result.
    Reporter report = {};
};

/// Where a value came from.
export enum class Source : std::uint8_t {
    local,   ///< the local store
    remote,  ///< the store behind it
    waited,  ///< another process or thread made it meanwhile
    made,    ///< made here
};

export struct Found {
    Bytes value;
    Source source = Source::local;
};

/// A handle; copies share. Safe from many threads. The local store always serves: nothing that is wrong with the store
/// behind it, or with the disk, costs more than the time to make a value.
export class Cache {
  public:
    /// Touches no file and no network. Errors: those of the factory (an address that is none).
    [[nodiscard]] static Result<Cache> open(CacheOptions options);

    /// Whether a value is any good, for whoever asked for it; one that is refused is moved aside and is none.
    using Accept = std::function<Result<>(const Bytes&)>;
    /// The checked value, from the local store or, copied into that, from the one behind; nullopt where neither has it.
    /// Nothing that goes wrong is an error, but out_of_memory.
    [[nodiscard]] Result<std::optional<Found>> get(const CacheKey& key, const Accept& accept = {}) const;
    /// Into the local store, and the one behind. Errors: file (the local store could not take it).
    [[nodiscard]] Result<> put(const CacheKey& key, const Bytes& value) const;
    /// The value, made only if nobody has it. Of all processes and threads that ask at the same time one makes it and
    /// the others wait; if that one dies, the next makes it. Errors: those of `make`, out_of_memory.
    [[nodiscard]] Result<Found> get_or_make(const CacheKey& key, const std::function<Result<Bytes>()>& make,
                                            const Accept& accept = {}) const;

    /// Copies every entry that the other side lacks; nothing is copied that fails its check. The number copied.
    /// Errors: remote, file, invalid_argument (there is no store behind).
    Result<std::uint64_t> push() const;
    Result<std::uint64_t> pull() const;

    LocalStore& local() const noexcept;
    RemoteStore* remote() const noexcept;
    Counters& counters() const noexcept;

  private:
    struct State;
    explicit Cache(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace lyo
