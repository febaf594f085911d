export module lyo.compiler:compile;

import lyo.prelude;
import lyo.base;
import lyo.graph;

namespace lyo {

export struct CompileOptions {
    /// "cpu", "cuda:sm_90" (any architecture that NVRTC knows), "cuda:ptx". Never empty; order and repetition do not
    /// matter.
    std::vector<std::string> targets = {"cpu"};
    /// Whether the artifact keeps the graph's text, for people.
    bool debug = true;
};

/// The artifact's bytes. The same graph and options give the same bytes on every machine.
/// Errors: bad_graph, unsupported_operator (something no kernel can be made for), invalid_argument (an unknown target),
/// no_image (a CUDA target without NVRTC), out_of_memory.
export Result<Bytes> compile(const Graph& graph, const CompileOptions& options = {});

/// Something that decides what `compile` makes of a graph, besides the graph: for the keys of caches.
export struct CompilerIdentity {
    std::string name;
    std::string value;
};
/// Version and sources of the compiler, the format's version, targets, options, and NVRTC's version where a target
/// needs it. Nothing else of the machine matters. Errors: no_image (a CUDA target without NVRTC).
export Result<std::vector<CompilerIdentity>> compiler_identity(const CompileOptions& options);

/// The graph with every operator that has a decomposition replaced by it, until only core operators, views and
/// pointwise ones are left; equal nodes merged, unused ones dropped. Errors: those of inference.
export Result<Graph> decompose(const Graph& graph);

namespace detail {
std::string_view compiler_fingerprint() noexcept;  // made from the sources by fingerprint.cmake
}  // namespace detail

}  // namespace lyo
