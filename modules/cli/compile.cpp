module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

CompileOptions options_of(const CompileArgs& args) {
    CompileOptions options;
    if (!args.targets.empty()) options.targets = args.targets;
    options.debug = !args.no_debug;
    return options;
}

int compile(const CompileArgs& args, const Console& console) {
    const auto cache = open_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto graph = import_pt2_file(args.model);
    if (!graph) return console.fail(graph.error());
    const auto built = build(*graph, options_of(args), *cache ? &**cache : nullptr);
    if (!built) return console.fail(Error(built.error()).in(args.model));
    const Artifact& artifact = built->artifact;
    if (const auto written = write_file(args.out, artifact.bytes()); !written) return console.fail(written.error());
    std::string targets;
    for (const std::string& target : artifact.manifest().targets) targets += cat(targets.empty() ? "" : ",", target);
    console.print(cat(artifact.id().hex(), " ", artifact.bytes().size(), " bytes ", targets, " cache: ",
                      !*cache                         ? "off"
                      : built->source == Source::made ? "miss"
                                                      : "hit"));
    return done;
}

}  // namespace lyo::cli
