module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

std::string expr_text(const FunctionSpec& function, std::uint32_t index) {
    // Small tables of small expressions: a recursion is bounded by what a reader wants to see.
    constexpr int max_depth = 12;
    const auto text = [&](const auto& self, std::uint32_t i, int depth) -> std::string {
        const Expr& e = function.exprs[i];
        if (e.op == ExprOp::constant) return std::to_string(e.value);
        if (e.op == ExprOp::symbol) return function.symbols[e.a].name;
        if (depth == max_depth) return "...";
        const std::string a = self(self, e.a, depth + 1), b = self(self, e.b, depth + 1);
        switch (e.op) {
            case ExprOp::add:
                return cat("(", a, " + ", b, ")");
            case ExprOp::mul:
                return cat(a, "*", b);
            case ExprOp::floor_div:
                return cat("(", a, " // ", b, ")");
            case ExprOp::mod:
                return cat("(", a, " % ", b, ")");
            default:
                return cat(expr_op_names[static_cast<std::size_t>(e.op)], "(", a, ", ", b, ")");
        }
    };
    return text(text, index, 0);
}

std::string type_text(const TensorSpec& spec, const FunctionSpec& function) {
    std::string out = cat(to_string(spec.dtype), "[");
    for (const std::uint32_t e : spec.shape) out += cat(out.ends_with('[') ? "" : ", ", expr_text(function, e));
    return out + "]";
}

namespace {

std::string summary(const Artifact& artifact) {
    std::string out = cat("id         ", artifact.id().hex(), "\nbytes      ", artifact.bytes().size(), "\nproducer   ",
                          artifact.manifest().producer, "\ntargets    ");
    for (const std::string& target : artifact.manifest().targets) out += cat(out.ends_with("    ") ? "" : ", ", target);
    out += "\n\nsections\n";
    for (const Section& s : artifact.sections())
        out += cat("  ", format::to_string(s.kind), " ", s.tag, ": ", s.length, " bytes at ", s.offset, "\n");
    for (std::size_t f = 0; f < artifact.functions().functions.size(); ++f) {
        const FunctionSpec& function = artifact.functions().functions[f];
        out += cat("\nfunction ", function.name, "\n");
        for (const Symbol& s : function.symbols)
            out += cat("  symbol ", s.name, " in [", s.min, ", ",
                       s.max == std::numeric_limits<std::int64_t>::max() ? std::string("inf") : std::to_string(s.max),
                       "]\n");
        for (const TensorSpec& t : function.inputs) out += cat("  input  ", t.name, ": ", type_text(t, function), "\n");
        for (const TensorSpec& t : function.outputs)
            out += cat("  output ", t.name, ": ", type_text(t, function), "\n");
        for (const Guard& g : function.guards)
            out += cat("  guard  ", expr_text(function, g.left),
                       g.kind == GuardKind::equal ? " == " : " <= ", expr_text(function, g.right), "\n");
        if (const Image* image = artifact.image("cpu")) {
            std::size_t loops = 0, gemms = 0;
            for (const Step& step : image->programs[f].steps) ++(step.index() == 0 ? loops : gemms);
            out += cat("  plan   cpu: ", loops, " loops, ", gemms, " matrix products, ",
                       image->programs[f].slots.size(), " workspace slots\n");
        }
        for (const std::string& target : artifact.manifest().targets)
            if (const DeviceImage* image = artifact.device_image(target))
                out += cat("  plan   ", target, ": ", image->programs[f].steps.size(), " launches, ",
                           artifact.device_code(target).size(), " bytes of code\n");
    }
    const auto& constants = artifact.functions().constants;
    if (!constants.empty()) out += "\nconstants\n";
    for (const Constant& c : constants) {
        out += cat("  ", c.name, ": ", to_string(c.dtype), "[");
        for (const std::uint64_t d : c.shape) out += cat(out.ends_with('[') ? "" : ", ", d);
        out += "]\n";
    }
    if (artifact.debug()) out += cat("\ngraph\n", artifact.debug()->graph);
    return out;
}

}  // namespace

int inspect(const InspectArgs& args, const Console& console) {
    const auto artifact = Artifact::read(args.artifact, {.verify = Verify::lazy});
    if (!artifact) return console.fail(artifact.error());
    if (!args.html.empty()) {
        const std::string page = to_html(*artifact, args.artifact);
        if (const auto ok = write_file(args.html, std::as_bytes(std::span(page))); !ok) return console.fail(ok.error());
        console.note(cat("written: ", args.html));
        return done;
    }
    console.print(console.json ? artifact->to_json() : summary(*artifact));
    return done;
}

}  // namespace lyo::cli
