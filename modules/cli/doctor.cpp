// Will it run here? And which operators are there at all.
module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

std::string_view kind_of(const OpDef& def) noexcept {
    if (def.emit != nullptr) return "fused loop";
    if (def.view != nullptr) return "view";
    if (def.decompose != nullptr) return "decomposed";
    switch (def.core) {
        case Core::reduction:
            return "reduction";
        case Core::matmul:
            return "matrix product";
        case Core::cat:
            return "copy";
        default:
            return "sequence";
    }
}

int list_ops(const Console& console) {
    std::string json = "[";
    if (!console.json) console.print("operator | kernel | cpu | cuda | reference | differentiable");
    for (const Op* op : all_ops()) {
        if (op->name.starts_with("lyo_")) continue;  // the compiler's own
        if (console.json)
            json += cat(json.size() > 1 ? ", " : "", "{\"name\": ", json_text(op->name),
                        ", \"kernel\": ", json_text(kind_of(op->def)),
                        ", \"cpu\": true, \"cuda\": true, \"reference\": ", op->def.eval != nullptr ? "true" : "false",
                        ", \"differentiable\": ", op->def.differentiable ? "true" : "false", "}");
        else
            console.print(cat(op->name, " | ", kind_of(op->def), " | yes | yes | ",
                              op->def.eval != nullptr ? "yes" : "no", " | ", op->def.differentiable ? "yes" : "no"));
    }
    if (console.json) console.print(json + "]");
    return done;
}

/// One device and what is said of it.
struct Verdict {
    std::string device, what;
    bool runs = false;
};

/// Where the artifact runs on this machine, by its head alone: nothing is loaded, no context is made.
std::vector<Verdict> preflight(const Artifact& artifact, const Result<std::vector<CudaDevice>>& devices,
                               bool allow_jit) {
    std::vector<Verdict> out;
    const auto& targets = artifact.manifest().targets;
    const bool cpu = artifact.image("cpu") != nullptr;
    out.push_back({"cpu", cpu ? "runs, with image cpu" : "has no image for it", cpu});
    if (!devices) {
        out.push_back({"cuda", devices.error().to_string(), false});
        return out;
    }
    for (const CudaDevice& device : *devices) {
        const auto target = choose_cuda_target(targets, device.major, device.minor, allow_jit);
        const std::string jit = target && *target == "cuda:ptx" ? ", which the driver compiles when it is loaded" : "";
        out.push_back({cat("cuda:", device.index),
                       target ? cat("runs, with image ", *target, jit) : target.error().what, target.has_value()});
    }
    return out;
}

}  // namespace

int doctor(const DoctorArgs& args, const Console& console) {
    if (args.ops) return list_ops(console);
    const auto devices = cuda_devices();
    std::vector<std::pair<std::string, std::string>> facts = {
        {"version", std::string(version())},
        {"cpu kernels", std::string(CpuProgram::instruction_set())},
        {"onednn", CpuProgram::has_onednn() ? "found" : "not found; lyo's own kernels do its work"}};
    if (!devices) facts.emplace_back("cuda", devices.error().to_string());
    for (std::size_t i = 0; devices && i < devices->size(); ++i) {
        const CudaDevice& d = (*devices)[i];
        facts.emplace_back(cat("cuda:", d.index), cat(d.name, ", sm_", d.major, d.minor, ", ", d.bytes >> 30, " GiB"));
    }
    std::string json = "{";
    for (const auto& [name, value] : facts) {
        if (console.json)
            json += cat(json.size() > 1 ? ", " : "", json_text(name), ": ", json_text(value));
        else
            console.print(cat(name, ": ", value));
    }
    bool runs = args.artifact.empty();
    if (!args.artifact.empty()) {
        const auto artifact = Artifact::read(args.artifact, {.verify = Verify::lazy});
        if (!artifact) return console.fail(artifact.error());
        json += ", \"artifact\": {";
        for (const Verdict& v : preflight(*artifact, devices, !args.no_jit)) {
            runs = runs || v.runs;
            if (console.json)
                json += cat(json.ends_with('{') ? "" : ", ", json_text(v.device),
                            ": {\"runs\": ", v.runs ? "true" : "false", ", \"verdict\": ", json_text(v.what), "}");
            else
                console.print(cat(args.artifact, " on ", v.device, ": ", v.what));
        }
        json += "}";
    }
    if (console.json) console.print(json + "}");
    return runs ? done : machine;
}

}  // namespace lyo::cli
