// What a live function is made of.
module lyo.hydration:live;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import :function;
import :guard;

namespace lyo {

/// Everything one call writes to, besides its outputs.
struct LiveWorkspace {
    CpuWorkspace cpu;
    std::vector<std::int64_t> symbols;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<AlignedBuffer> packed;      // row-major copies of inputs that are not
    std::vector<std::size_t> packed_bytes;  // their capacities
};

/// A plan with its guards, and a pool of workspaces: one a concurrent call, kept for the next.
struct Specialisation {
    Specialisation(Guards g, CpuProgram p) : guards(std::move(g)), program(std::move(p)) {}
    ~Specialisation() { delete hot.load(); }
    Specialisation(const Specialisation&) = delete;
    Specialisation& operator=(const Specialisation&) = delete;

    std::unique_ptr<LiveWorkspace> take() const;
    void give_back(std::unique_ptr<LiveWorkspace> workspace) const;

    Guards guards;
    CpuProgram program;

  private:
    // The common case, one call at a time, is one exchange; others go through the list.
    mutable std::atomic<LiveWorkspace*> hot{nullptr};
    mutable std::mutex mutex;
    mutable std::vector<std::unique_ptr<LiveWorkspace>> idle;
};

struct Function::State {
    explicit State(const Artifact& a) : artifact(a) {}
    Artifact artifact;
    Device device;
    std::vector<std::unique_ptr<Specialisation>> specialisations;
};

}  // namespace lyo
