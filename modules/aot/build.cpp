module lyo.aot;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import lyo.compiler;
import lyo.cache;
import :build;

namespace lyo {

Result<CacheKey> cache_key(const Graph& graph, const CompileOptions& options) try {
    auto identity = compiler_identity(options);
    if (!identity) return std::unexpected(identity.error());
    const GraphDigests graph_digests = digests(graph);
    std::vector<KeyPart> parts = {{"code", graph_digests.code.hex()},
                                  {"constants", graph_digests.constants.hex()},
                                  {"sizes", graph_digests.sizes.hex()}};
    for (CompilerIdentity& part : *identity) parts.push_back({std::move(part.name), std::move(part.value)});
    return CacheKey::make(std::move(parts));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache key", "no memory");
}

Result<Built> build(const Graph& graph, const CompileOptions& options, const Cache* cache) try {
    auto key = cache_key(graph, options);
    if (!key) return std::unexpected(key.error());
    if (cache == nullptr) {
        const auto bytes = compile(graph, options);
        if (!bytes) return std::unexpected(bytes.error());
        auto artifact = Artifact::check(*bytes);
        if (!artifact) return std::unexpected(artifact.error());
        return Built{std::move(*artifact), std::move(*key), Source::made};
    }
    std::optional<Artifact> artifact;
    const auto accept = [&](const Bytes& bytes) -> Result<> {
        // The entry's own digest has just been checked, so those of the constants need not be.
        auto checked = Artifact::check(bytes, {.verify = Verify::trusted});
        if (!checked) return std::unexpected(checked.error());
        artifact = std::move(*checked);
        return {};
    };
    const auto found = cache->get_or_make(*key, [&] { return compile(graph, options); }, accept);
    if (!found) return std::unexpected(found.error());
    if (found->source == Source::made)
        if (auto ok = accept(found->value); !ok) return std::unexpected(ok.error());
    return Built{std::move(*artifact), std::move(*key), found->source};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "build", "no memory");
}

}  // namespace lyo
