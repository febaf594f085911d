// The one file that knows the command-line library: what can be said, and who answers.
module;
#include <CLI/CLI.hpp>

module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

/// A subcommand with the options that all share.
CLI::App* command(CLI::App& app, Console& console, const std::string& name, const std::string& what, bool json,
                  const std::string& example) {
    CLI::App* c = app.add_subcommand(name, what);
    c->add_flag("-q,--quiet", console.quiet, "Say nothing but results and errors");
    if (json) c->add_flag("--json", console.json, "Results as JSON");
    c->footer("Example: " + example);
    return c;
}

void device_option(CLI::App* c, DeviceArgs& args) {
    c->add_option("--device", args.device, "cpu or cuda:N")->capture_default_str();
}

constexpr const char* cache_help =
    "none, or FOLDER[,redis://HOST:PORT] (default: $LYO_CACHE, else the user's cache folder)";

/// `lyo cache ...`. `args` and `go` outlive the parsing.
void cache_commands(CLI::App& app, Console& console, CacheArgs& args, std::function<int()>& go) {
    CLI::App* const cache = app.add_subcommand("cache", "Look after the cache of compiled artifacts");
    cache->require_subcommand(1);
    const auto sub = [&](const std::string& name, const std::string& what, bool json, const std::string& example,
                         CacheCommand run) {
        CLI::App* c = command(*cache, console, name, what, json, "lyo cache " + example);
        c->add_option("--cache", args.cache, cache_help);
        c->callback([&args, &console, &go, run] { go = [&args, &console, run] { return run(args, console); }; });
        return c;
    };
    const auto model = [&](CLI::App* c) {
        c->add_option("model", args.model, "What torch.export.save wrote")->required();
        c->add_flag("--no-debug", args.no_debug, "As compiled without the graph's text");
    };
    sub("path", "Print the folder", false, "path", cache_path);
    sub("ls", "List the entries", true, "ls", cache_ls);
    sub("stat", "Sizes and counters of all processes", true, "stat --json", cache_stat)
        ->add_option("--prometheus", args.prometheus, "Also write the counters as a Prometheus text file");
    sub("gc", "Remove the least recently used entries and what dead processes left", true, "gc --max-bytes 1000000",
        cache_gc)
        ->add_option("--max-bytes", args.max_bytes, "What may stay (default: the cache's limit)");
    CLI::App* c = sub("get", "Write an entry's artifact to a file", false, "get 3f99 -o model.lyo", cache_get);
    c->add_option("key", args.key, "A key, or how one begins")->required();
    c->add_option("-o,--out", args.file, "The artifact to write")->required();
    c = sub("put", "Keep an artifact as what this model compiles to", false, "put model.pt2 model.lyo", cache_put);
    model(c);
    c->add_option("artifact", args.file, "The artifact")->required();
    sub("rm", "Remove an entry", false, "rm 3f99", cache_rm)
        ->add_option("key", args.key, "A key, or how one begins")
        ->required();
    sub("push", "Copy all entries to a server that lacks them, or into an archive file", true, "push all.lyoa",
        cache_push)
        ->add_option("to", args.other, "redis://HOST:PORT or a file")
        ->required();
    sub("pull", "Copy all entries that are missing here from a server or an archive file", true, "pull all.lyoa",
        cache_pull)
        ->add_option("from", args.other, "redis://HOST:PORT or a file")
        ->required();
    c = sub("why", "Say whether compiling would hit, or what differs from the nearest entry", true, "why model.pt2",
            cache_why);
    model(c);
    c->add_option("--target", args.targets, "As in compile");
}

/// A number above 0, or 0 too unless `strict`; the library's own checks let NaN through.
CLI::Validator finite(bool strict) {
    const std::string wanted = strict ? "above 0" : "of at least 0";
    return {[=](std::string& text) -> std::string {
                double value = 0;
                const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
                const bool good = error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) &&
                                  (strict ? value > 0 : value >= 0);
                return good ? "" : cat("expected a number ", wanted, ", got ", text);
            },
            ""};
}

int run_command(int argc, char** argv) {
    CLI::App app("lyo: compiled tensor functions as artifacts", "lyo");
    app.set_version_flag("--version", cat("lyo ", version()));
    app.require_subcommand(0, 1);  // none is reported below: the library would blame it for a misspelt one, too
    app.failure_message([](const CLI::App*, const CLI::Error& e) {
        std::string what = e.what();
        std::ranges::replace(what, '\n', ' ');
        return cat("lyo: ", what, " (lyo --help says what there is)\n");
    });
    app.footer("Exit status: 0 done, 1 the answer is no, 2 wrong usage, 3 the machine could not.");
    Console console;
    std::function<int()> go;

    CompileArgs compile_args;
    auto* c = command(app, console, "compile", "Compile an exported PyTorch model (.pt2) into an artifact", false,
                      "lyo compile model.pt2 -o model.lyo --target cpu --target cuda:sm_90");
    c->add_option("model", compile_args.model, "What torch.export.save wrote")->required();
    c->add_option("-o,--out", compile_args.out, "The artifact to write")->required();
    c->add_option("--target", compile_args.targets, "cpu, cuda:sm_NN or cuda:ptx; may be repeated (default: cpu)");
    c->add_option("--cache", compile_args.cache, cache_help);
    c->add_flag("--no-debug", compile_args.no_debug, "Leave out the graph's text");
    c->callback([&] { go = [&] { return compile(compile_args, console); }; });

    CacheArgs cache_args;
    cache_commands(app, console, cache_args, go);

    CheckArgs check_args;
    c = command(app, console, "check", "Run recorded inputs and compare with recorded outputs", true,
                "lyo check model.lyo io.safetensors");
    c->add_option("artifact", check_args.artifact, "The artifact")->required();
    c->add_option("io", check_args.io, "A safetensors file with input.0, ... and output.0, ...")->required();
    device_option(c, check_args);
    c->add_option("--rtol", check_args.rtol, "Relative tolerance (default: by dtype)")->check(finite(false));
    c->add_option("--atol", check_args.atol, "Absolute tolerance (default: by dtype)")->check(finite(false));
    c->add_option("--strides", check_args.strides,
                  "INPUT=S0,S1,...: lay the input out with these strides first; may be repeated");
    c->callback([&] { go = [&] { return check(check_args, console); }; });

    RunArgs run_args;
    c = command(app, console, "run", "Run the function on tensors from files", false,
                "lyo run model.lyo --in x=x.npy --out y.npy");
    c->add_option("artifact", run_args.artifact, "The artifact")->required();
    c->add_option("--in", run_args.in, "FILE.safetensors, or NAME=FILE.npy; may be repeated");
    c->add_option("--out", run_args.out, "FILE.safetensors, or FILE.npy for a single output")->required();
    device_option(c, run_args);
    c->callback([&] { go = [&] { return run(run_args, console); }; });

    RoundtripArgs roundtrip_args;
    c = command(app, console, "roundtrip", "Load, hydrate, call, serialize; say whether the bytes are identical", true,
                "lyo roundtrip model.lyo -o copy.lyo && cmp model.lyo copy.lyo");
    c->add_option("artifact", roundtrip_args.artifact, "The artifact")->required();
    c->add_option("-o,--out", roundtrip_args.out, "Where to write what serialize() gives");
    device_option(c, roundtrip_args);
    c->callback([&] { go = [&] { return roundtrip(roundtrip_args, console); }; });

    VerifyArgs verify_args;
    c = command(app, console, "verify", "Validate everything, every digest included", true, "lyo verify model.lyo");
    c->add_option("artifact", verify_args.artifact, "The artifact")->required();
    c->add_option("--pubkey", verify_args.pubkey, "A minisign public key");
    c->callback([&] { go = [&] { return verify(verify_args, console); }; });

    InspectArgs inspect_args;
    c = command(app, console, "inspect", "Show what is in an artifact", true,
                "lyo inspect model.lyo --html model.html");
    c->add_option("artifact", inspect_args.artifact, "The artifact")->required();
    c->add_option("--html", inspect_args.html, "Write a page instead");
    c->callback([&] { go = [&] { return inspect(inspect_args, console); }; });

    DiffArgs diff_args;
    c = command(app, console, "diff", "Show how two artifacts differ", true, "lyo diff a.lyo b.lyo");
    c->add_option("a", diff_args.a, "One artifact")->required();
    c->add_option("b", diff_args.b, "Another")->required();
    c->callback([&] { go = [&] { return diff(diff_args, console); }; });

    BenchArgs bench_args;
    c = command(app, console, "bench", "Measure loading, calling, serializing", true, "lyo bench model.lyo --json");
    c->add_option("artifact", bench_args.artifact, "The artifact")->required();
    c->add_option("--seconds", bench_args.seconds, "How long to measure each")
        ->capture_default_str()
        ->check(finite(true));
    device_option(c, bench_args);
    c->callback([&] { go = [&] { return bench(bench_args, console); }; });

    DoctorArgs doctor_args;
    c = command(app, console, "doctor", "Say what this machine can run, and whether an artifact will run here", true,
                "lyo doctor model.lyo");
    c->add_option("artifact", doctor_args.artifact, "An artifact");
    c->add_flag("--ops", doctor_args.ops, "List the operators");
    c->add_flag("--no-jit", doctor_args.no_jit, "Count PTX as no image");
    c->callback([&] { go = [&] { return doctor(doctor_args, console); }; });

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? done : usage;
    }
    if (!go) return console.fail({ErrorCode::invalid_argument, "expected a command (lyo --help lists them)", {}});
    const int status = go();
    if (!flush_output()) return console.fail({ErrorCode::file, "cannot be written", "standard output"});
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run_command(argc, argv);
    } catch (const std::bad_alloc&) {
        return Console{}.fail({ErrorCode::out_of_memory, "no memory left", {}});
    } catch (const std::exception& e) {
        return Console{}.fail({ErrorCode::invalid_argument, e.what(), {}});
    }
}

}  // namespace lyo::cli
