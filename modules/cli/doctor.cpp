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

}  // namespace

int doctor(const DoctorArgs& args, const Console& console) {
    if (args.ops) return list_ops(console);
    const std::vector<std::pair<std::string, std::string>> facts = {
        {"version", "0.1.0"}, {"cpu kernels", std::string(CpuProgram::instruction_set())}};
    std::string json = "{";
    for (const auto& [name, value] : facts) {
        if (console.json)
            json += cat(json.size() > 1 ? ", " : "", json_text(name), ": ", json_text(value));
        else
            console.print(cat(name, ": ", value));
    }
    int status = done;
    if (!args.artifact.empty()) {
        const auto artifact = Artifact::read(args.artifact, {.verify = Verify::lazy});
        if (!artifact) return console.fail(artifact.error());
        const auto function = hydrate(*artifact, Device::cpu());
        status = function ? done : status_of(function.error().code);
        const std::string verdict = function ? cat("runs here on cpu, with image cpu")
                                             : cat("does not run on cpu: ", function.error().to_string());
        if (console.json)
            json +=
                cat(", \"cpu\": {\"runs\": ", function ? "true" : "false", ", \"verdict\": ", json_text(verdict), "}");
        else
            console.print(verdict);
    }
    if (console.json) console.print(json + "}");
    return status;
}

}  // namespace lyo::cli
