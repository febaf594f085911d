module lyo.cache;

import lyo.prelude;
import lyo.base;
import :key;
import :entry;
import :counters;
import :store;
import :local;
import :layered;

namespace lyo {
namespace {

using Clock = std::chrono::steady_clock;

/// Entries a remote store is asked for, or given, at once.
constexpr std::size_t batch = 32;

}  // namespace

struct Cache::State {
    explicit State(CacheOptions o) : options(std::move(o)), local(options.local, counters, options.report) {}

    void report(const Error& error) const {
        if (options.report) options.report(error);
    }
    Result<std::optional<Found>> look(const CacheKey& key, const Accept& accept);
    std::optional<Bytes> look_behind(const CacheKey& key, const Accept& accept);
    void put_behind(const CacheKey& key, const Bytes& value);

    CacheOptions options;
    Counters counters;
    LocalStore local;
    std::unique_ptr<RemoteStore> remote;
};

std::optional<Bytes> Cache::State::look_behind(const CacheKey& key, const Accept& accept) {
    const std::array<Digest, 1> wanted = {key.digest()};
    auto got = remote->get(wanted);
    if (!got) {
        report(got.error());
        return std::nullopt;
    }
    if (got->size() != 1 || !(*got)[0]) return std::nullopt;
    const Bytes& sealed = *(*got)[0];
    auto entry = open_entry(sealed, key.digest());
    Result<> good = entry ? Result<>() : std::unexpected(entry.error());
    if (good && accept) good = accept(entry->value);
    if (!good) {
        counters.add(Counter::remote_refused);
        report(Error(good.error()).in(cat(remote->name(), ", ", key.digest().hex())));
        return std::nullopt;
    }
    counters.add(Counter::bytes_read, sealed.size());
    if (auto filled = local.put_sealed(key.digest(), sealed); !filled) report(filled.error());
    return std::move(entry->value);
}

Result<std::optional<Found>> Cache::State::look(const CacheKey& key, const Accept& accept) {
    const Stopwatch watch(counters, Counter::lookup_ns);
    auto found = local.get(key.digest());
    if (!found) {
        if (found.error().code == ErrorCode::out_of_memory) return std::unexpected(found.error());
        report(found.error());
    } else if (*found) {
        const auto good = accept ? accept((*found)->value) : Result<>();
        if (good) return Found{std::move((*found)->value), Source::local};
        if (good.error().code == ErrorCode::out_of_memory) return std::unexpected(good.error());
        local.reject(key.digest(), good.error());
    }
    if (remote)
        if (auto value = look_behind(key, accept)) return Found{std::move(*value), Source::remote};
    return std::optional<Found>();
}

void Cache::State::put_behind(const CacheKey& key, const Bytes& value) {
    if (!remote) return;
    auto sealed = seal_entry(key, value);
    if (!sealed) return report(sealed.error());
    const std::array<RemoteStore::Item, 1> items = {RemoteStore::Item{key.digest(), std::move(*sealed)}};
    if (auto done = remote->put(items); !done) report(done.error());
}

Result<Cache> Cache::open(CacheOptions options) try {
    auto state = std::make_shared<State>(std::move(options));
    if (state->options.remote) {
        auto remote = state->options.remote(state->counters, state->options.report);
        if (!remote) return std::unexpected(remote.error());
        state->remote = std::move(*remote);
    }
    return Cache(std::move(state));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<std::optional<Found>> Cache::get(const CacheKey& key, const Accept& accept) const try {
    auto found = state_->look(key, accept);
    if (found)
        state_->counters.add(!*found                              ? Counter::misses
                             : (*found)->source == Source::remote ? Counter::remote_hits
                                                                  : Counter::hits);
    return found;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<> Cache::put(const CacheKey& key, const Bytes& value) const try {
    auto done = state_->local.put(key, value);
    state_->put_behind(key, value);
    return done;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<Found> Cache::get_or_make(const CacheKey& key, const std::function<Result<Bytes>()>& make,
                                 const Accept& accept) const try {
    State& s = *state_;
    auto found = get(key, accept);
    if (!found) return std::unexpected(found.error());
    if (*found) return std::move(**found);

    // Somebody else may be making it: then the lock of the key cannot be had until that one is done, or dead.
    std::optional<LocalStore::Flight> flight;
    const auto deadline = Clock::now() + s.options.max_wait;
    bool waited = false;
    {
        std::optional<Stopwatch> watch;
        for (auto pause = std::chrono::microseconds(100);;
             pause = std::min(2 * pause, std::chrono::microseconds(20'000))) {
            auto begun = s.local.try_begin(key.digest());
            if (!begun) {
                s.report(begun.error());  // no locks to be had: everybody makes their own
                break;
            }
            if (*begun) {
                flight.emplace(std::move(**begun));
                break;
            }
            if (Clock::now() >= deadline) {
                s.report({ErrorCode::file,
                          cat("still being made by somebody else after ", s.options.max_wait.count(),
                              " ms; made here as well"),
                          key.digest().hex()});
                break;
            }
            if (!waited) watch.emplace(s.counters, Counter::wait_ns);
            waited = true;
            std::this_thread::sleep_for(pause);
        }
    }
    if (flight) {
        // Whoever had the lock before may have finished.
        auto again = s.local.get(key.digest());
        if (again && *again && (!accept || accept((*again)->value))) {
            s.counters.add(Counter::waits);
            return Found{std::move((*again)->value), Source::waited};
        }
    }
    Result<Bytes> made;
    {
        const Stopwatch watch(s.counters, Counter::make_ns);
        s.counters.add(Counter::makes);
        made = make();
    }
    if (!made) return std::unexpected(made.error());
    if (auto done = put(key, *made); !done) s.report(done.error());
    return Found{std::move(*made), Source::made};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<std::uint64_t> Cache::push() const try {
    State& s = *state_;
    if (!s.remote) return fail(ErrorCode::invalid_argument, "cache push", "there is no store behind the local one");
    const auto theirs = s.remote->keys();
    if (!theirs) return std::unexpected(theirs.error());
    const auto entries = s.local.list();
    if (!entries) return std::unexpected(entries.error());
    std::uint64_t copied = 0;
    std::vector<RemoteStore::Item> items;
    const auto flush = [&]() -> Result<> {
        auto done = items.empty() ? Result<>() : s.remote->put(items);
        if (done) copied += items.size();
        items.clear();
        return done;
    };
    for (const LocalEntry& entry : *entries) {
        if (std::binary_search(theirs->begin(), theirs->end(), entry.key)) continue;
        const auto checked = s.local.get(entry.key);
        if (!checked) return std::unexpected(checked.error());
        if (!*checked) continue;
        auto sealed = seal_entry((*checked)->key, (*checked)->value);
        if (!sealed) return std::unexpected(sealed.error());
        items.push_back({entry.key, std::move(*sealed)});
        if (items.size() < batch) continue;
        if (auto ok = flush(); !ok) return std::unexpected(ok.error());
    }
    if (auto ok = flush(); !ok) return std::unexpected(ok.error());
    return copied;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache push", "no memory");
}

Result<std::uint64_t> Cache::pull() const try {
    State& s = *state_;
    if (!s.remote) return fail(ErrorCode::invalid_argument, "cache pull", "there is no store behind the local one");
    auto theirs = s.remote->keys();
    if (!theirs) return std::unexpected(theirs.error());
    const auto entries = s.local.list();
    if (!entries) return std::unexpected(entries.error());
    std::erase_if(*theirs, [&](const Digest& key) {
        const auto at = std::lower_bound(entries->begin(), entries->end(), key,
                                         [](const LocalEntry& e, const Digest& k) { return e.key < k; });
        return at != entries->end() && at->key == key;
    });
    std::uint64_t copied = 0;
    for (std::size_t from = 0; from < theirs->size(); from += batch) {
        const auto wanted = std::span(*theirs).subspan(from, std::min(batch, theirs->size() - from));
        const auto got = s.remote->get(wanted);
        if (!got) return std::unexpected(got.error());
        for (std::size_t i = 0; i < got->size() && i < wanted.size(); ++i) {
            if (!(*got)[i]) continue;
            if (const auto entry = open_entry(*(*got)[i], wanted[i]); !entry) {
                s.counters.add(Counter::remote_refused);
                s.report(Error(entry.error()).in(cat(s.remote->name(), ", ", wanted[i].hex())));
                continue;
            }
            if (auto ok = s.local.put_sealed(wanted[i], *(*got)[i]); !ok) return std::unexpected(ok.error());
            ++copied;
        }
    }
    return copied;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache pull", "no memory");
}

LocalStore& Cache::local() const noexcept { return state_->local; }
RemoteStore* Cache::remote() const noexcept { return state_->remote.get(); }
Counters& Cache::counters() const noexcept { return state_->counters; }

}  // namespace lyo
