// What a live function is made of.
module lyo.hydration:live;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import :function;
import :guard;

namespace lyo {

/// Everything one call on the CPU writes to, besides its outputs.
struct CpuLive {
    CpuWorkspace workspace;
    std::vector<std::int64_t> symbols;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<AlignedBuffer> packed;      // row-major copies of inputs that are not
    std::vector<std::size_t> packed_bytes;  // their capacities
};

/// The same for a call on a CUDA device.
struct CudaLive {
    CudaWorkspace workspace;
    std::vector<std::int64_t> symbols;
};

/// Workspaces, one a concurrent call, kept for the next.
template <class Live>
class Pool {
  public:
    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() { delete hot_.load(); }

    std::unique_ptr<Live> take() {
        if (Live* live = hot_.exchange(nullptr, std::memory_order_acq_rel)) return std::unique_ptr<Live>(live);
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                auto live = std::move(idle_.back());
                idle_.pop_back();
                return live;
            }
        }
        return std::make_unique<Live>();
    }
    void give_back(std::unique_ptr<Live> live) {
        Live* none = nullptr;
        if (hot_.compare_exchange_strong(none, live.get(), std::memory_order_acq_rel)) {
            live.release();
            return;
        }
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(live));
    }

  private:
    // The common case, one call at a time, is one exchange; others go through the list.
    std::atomic<Live*> hot_{nullptr};
    std::mutex mutex_;
    std::vector<std::unique_ptr<Live>> idle_;
};

/// A plan with its guards.
template <class Plan, class Live>
struct Specialisation {
    using LiveType = Live;
    Specialisation(Guards g, Plan p) : guards(std::move(g)), program(std::move(p)) {}

    Guards guards;
    Plan program;
    mutable Pool<Live> pool;
};
using CpuSpecialisation = Specialisation<CpuProgram, CpuLive>;
using CudaSpecialisation = Specialisation<CudaProgram, CudaLive>;

/// What is on a CUDA device: the artifact's target that runs there, and its plans.
struct CudaSide {
    std::string target;
    std::vector<std::unique_ptr<CudaSpecialisation>> specialisations;
};

struct Function::State {
    explicit State(const Artifact& a) : artifact(a) {}
    Artifact artifact;
    Device device;
    std::vector<std::unique_ptr<CpuSpecialisation>> cpu;
    CudaSide cuda;
    const FunctionSpec* spec = nullptr;  // of the first specialisation
};

}  // namespace lyo
