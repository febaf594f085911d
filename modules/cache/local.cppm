// The local store: a folder in which one key is one file, made by one rename.
//
//   v1/entries/ab/abcd...   sealed entries, named by their key's digest; never changed in place
//   v1/tmp/                 entries being written, each locked by its writer: one that can be locked is left over
//   v1/locks/abcd...        who makes that key at the moment holds the lock of this file
//   v1/damaged/             entries that failed their check, moved aside for whoever wants to look
//   v1/usage                bytes in the store, about, and counters of all processes
//
// No process ever waits for another inside these functions, so one that was stopped or killed holds nobody up; locks
// end with the process that holds them. Nothing is synced to the disk: an entry that a power cut leaves half written
// fails its check and is made again. Machines that share the folder need a file system with locks between them (flock).
export module lyo.cache:local;

import lyo.prelude;
import lyo.base;
import :key;
import :entry;
import :counters;
import :store;

namespace lyo {

export struct LocalOptions {
    /// The folder; made when something is first written.
    std::string path;
    /// Least recently used entries are removed beyond this; 0: never.
    std::uint64_t max_bytes = std::uint64_t{10} << 30;
};

/// The folder that is used unless another is named: $XDG_CACHE_HOME/lyo, else $HOME/.cache/lyo. Errors:
/// invalid_argument (neither is set to an absolute path).
export [[nodiscard]] Result<std::string> default_cache_path();

export struct LocalEntry {
    Digest key;
    std::uint64_t bytes = 0;
    std::int64_t used_ns = 0;  ///< since 1970; set by every hit
};

export struct LocalUsage {
    std::uint64_t entries = 0, bytes = 0;
    std::uint64_t damaged = 0, damaged_bytes = 0;
    std::uint64_t max_bytes = 0;
    /// Of every process that has used the folder, this one included.
    CounterValues totals{};
};

/// Safe from many threads and processes.
export class LocalStore {
  public:
    /// Touches no file. `counters` must outlive it.
    LocalStore(LocalOptions options, Counters& counters, Reporter report);
    LocalStore(const LocalStore&) = delete;
    LocalStore& operator=(const LocalStore&) = delete;
    ~LocalStore();

    const std::string& path() const noexcept { return options_.path; }

    /// The entry, every byte checked; nullopt where there is none. A damaged one is moved aside, reported, counted, and
    /// is none. Errors: file (the folder cannot be read), out_of_memory.
    [[nodiscard]] Result<std::optional<CacheEntry>> get(const Digest& key);
    /// Errors: file (no space, no permission); nothing is left behind then.
    [[nodiscard]] Result<> put(const CacheKey& key, std::span<const std::byte> value);
    /// A sealed and checked entry, as it is.
    [[nodiscard]] Result<> put_sealed(const Digest& key, std::span<const std::byte> entry);
    /// Moves an entry aside whose value turned out to be no good.
    void reject(const Digest& key, const Error& reason);
    /// True when it was there. Errors: file.
    Result<bool> remove(const Digest& key);

    /// Every entry, sorted by key; contents are not looked at. Errors: file.
    [[nodiscard]] Result<std::vector<LocalEntry>> list() const;
    /// An entry's key and size; its value is not checked. Errors: file (none there), those of read_entry_tail.
    [[nodiscard]] Result<EntryHead> head(const Digest& key) const;
    /// Removes the least recently used entries until at most `bytes` are left, and what dead processes left over.
    /// The number removed; 0 when another process is at it. Errors: file.
    Result<std::uint64_t> collect(std::uint64_t bytes);
    [[nodiscard]] Result<LocalUsage> usage() const;

    /// The right to make a key. Ends with the object, or with the process.
    class Flight {
      public:
        Flight(Flight&&) noexcept;
        Flight& operator=(Flight&&) = delete;
        ~Flight();

      private:
        struct State;
        explicit Flight(std::unique_ptr<State> state) noexcept;
        std::unique_ptr<State> state_;
        friend class LocalStore;
    };
    /// nullopt while somebody else has it. Errors: file (the folder cannot be written to, or has no locks).
    [[nodiscard]] Result<std::optional<Flight>> try_begin(const Digest& key);

  private:
    std::string entry_path(const Digest& key) const;
    std::string place(std::string_view name) const;
    Result<> write_entry(const Digest& key, std::initializer_list<std::span<const std::byte>> parts);
    void move_aside(const Digest& key, std::uint64_t inode, const Error& reason);
    void add_usage(std::int64_t bytes);
    void remove_leftovers() const;
    void report(const Error& error) const;

    LocalOptions options_;
    Counters& counters_;
    Reporter report_;
    std::atomic<std::int64_t> pending_bytes_{0};
    mutable std::mutex flushing_;
    CounterValues flushed_{};
    std::atomic<bool> swept_{false};
};

}  // namespace lyo
