module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

int compile(const CompileArgs& args, const Console& console) {
    if (args.cache != "none") {
        console.fail(
            {ErrorCode::invalid_argument, cat("there is no cache yet: expected none, got ", args.cache), "--cache"});
        return usage;
    }
    const auto graph = import_pt2_file(args.model);
    if (!graph) return console.fail(graph.error());
    CompileOptions options;
    if (!args.targets.empty()) options.targets = args.targets;
    options.debug = !args.no_debug;
    const auto bytes = lyo::compile(*graph, options);
    if (!bytes) return console.fail(Error(bytes.error()).in(args.model));
    const auto artifact = Artifact::check(*bytes);
    if (!artifact) return console.fail(artifact.error());
    if (const auto written = write_file(args.out, *bytes); !written) return console.fail(written.error());
    std::string targets;
    for (const std::string& target : artifact->manifest().targets) targets += cat(targets.empty() ? "" : ",", target);
    console.print(cat(artifact->id().hex(), " ", bytes->size(), " bytes ", targets, " cache: off"));
    return done;
}

}  // namespace lyo::cli
