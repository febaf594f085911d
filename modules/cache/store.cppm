// What a store behind the local one must be able to do.
export module lyo.cache:store;

import lyo.prelude;
import lyo.base;

namespace lyo {

/// Told of what went wrong without costing the result: a full disk, a damaged entry, a server that does not answer.
/// Called from any thread.
export using Reporter = std::function<void(const Error&)>;

/// A store of sealed entries (see :entry) somewhere else, shared by machines. What it returns is checked by whoever
/// asked, so it may lie; it must not hang, and must bound what it takes into memory. Safe from many threads.
export class RemoteStore {
  public:
    RemoteStore() = default;
    RemoteStore(const RemoteStore&) = delete;
    RemoteStore& operator=(const RemoteStore&) = delete;
    virtual ~RemoteStore() = default;

    /// "redis://host:port/0", for messages; without a password.
    virtual std::string name() const = 0;
    /// The sealed entries of these keys, in their order; nullopt where there is none, or none that the store's policy
    /// accepts (too large, unsigned): that is reported and counted. Errors: remote (a time-out, a refused connection,
    /// an open breaker).
    virtual Result<std::vector<std::optional<Bytes>>> get(std::span<const Digest> keys) = 0;
    struct Item {
        Digest key;
        Bytes entry;
    };
    /// Stores sealed entries; those above the store's size limit are left out, reported. Errors: remote.
    virtual Result<> put(std::span<const Item> items) = 0;
    /// Every key that it holds, sorted. Errors: remote.
    virtual Result<std::vector<Digest>> keys() = 0;
};

}  // namespace lyo
