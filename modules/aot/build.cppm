// From a model to an artifact, through the cache.
export module lyo.aot:build;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import lyo.compiler;
import lyo.cache;

namespace lyo {

/// What the artifact of this graph and these options depends on: the graph's code, constants and sizes, targets,
/// options, the compiler's sources, the format, NVRTC where a target needs it. No path, no time, no GPU. Errors: those
/// of compiler_identity.
export [[nodiscard]] Result<CacheKey> cache_key(const Graph& graph, const CompileOptions& options = {});

export struct Built {
    Artifact artifact;
    CacheKey key;
    Source source = Source::made;  ///< `made` without a cache, too
};
/// The artifact, from the cache where that has it; what it gives is validated as any file is, and must be for these
/// targets. Errors: those of cache_key and compile.
export [[nodiscard]] Result<Built> build(const Graph& graph, const CompileOptions& options = {},
                                         const Cache* cache = nullptr);

}  // namespace lyo
