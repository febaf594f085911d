// `inspect --html`: one page that needs nothing else. Every text from the artifact is escaped.
module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

class Page {
  public:
    void heading(std::string_view text) { body_ += cat("<h2>", escaped(text), "</h2>\n"); }
    void text(std::string_view text) { body_ += cat("<pre>", escaped(text), "</pre>\n"); }
    void table(std::initializer_list<std::string_view> columns) {
        body_ += "<table><tr>";
        for (const std::string_view c : columns) body_ += cat("<th>", escaped(c), "</th>");
        body_ += "</tr>\n";
    }
    void row(std::initializer_list<std::string> cells) {
        body_ += "<tr>";
        for (const std::string& c : cells) body_ += cat("<td>", escaped(c), "</td>");
        body_ += "</tr>\n";
    }
    void end_table() { body_ += "</table>\n"; }
    std::string finish(std::string_view title) {
        return cat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", escaped(title),
                   "</title>\n<style>body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
                   "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.2em .6em;text-align:left}"
                   "td{font-family:monospace;word-break:break-all}pre{background:#f4f4f4;padding:1em;overflow:auto}</"
                   "style></head><body>\n<h1>",
                   escaped(title), "</h1>\n", body_, "</body></html>\n");
    }

  private:
    std::string body_;
};

std::string step_text(const Step& step) {
    if (const auto* gemm = std::get_if<Gemm>(&step))
        return cat("matrix product, epilogue of ", gemm->epilogue.phases.size(), " phases");
    const auto& loop = std::get<0>(step);
    std::size_t instructions = 0;
    for (const Phase& phase : loop.phases) instructions += phase.instrs.size();
    return cat("loop of ", loop.extents.size(), " dimensions, ", loop.operands.size(), " operands, ", instructions,
               " instructions in ", loop.phases.size(), " phases");
}

std::string step_text(const DeviceStep& step) {
    if (const auto* launch = std::get_if<Launch>(&step))
        return cat("kernel ", launch->kernel, ", blocks of ", launch->threads, " threads");
    return cat("matrix product of ", to_string(std::get<Product>(step).dtype), " by the device's library");
}

void add_function(Page& page, const Artifact& artifact, std::size_t index) {
    const FunctionSpec& f = artifact.functions().functions[index];
    page.heading(cat("function ", f.name));
    page.table({"role", "name", "type"});
    for (const TensorSpec& t : f.inputs) page.row({"input", t.name, type_text(t, f)});
    for (const TensorSpec& t : f.outputs) page.row({"output", t.name, type_text(t, f)});
    page.end_table();
    if (!f.symbols.empty()) {
        page.table({"symbol", "min", "max"});
        for (const Symbol& s : f.symbols) page.row({s.name, std::to_string(s.min), std::to_string(s.max)});
        page.end_table();
    }
    if (!f.guards.empty()) {
        page.table({"guard"});
        for (const Guard& g : f.guards)
            page.row({cat(expr_text(f, g.left), g.kind == GuardKind::equal ? " == " : " <= ", expr_text(f, g.right))});
        page.end_table();
    }
    if (const Image* image = artifact.image("cpu")) {
        page.table({"cpu step", "what"});
        const auto& steps = image->programs[index].steps;
        for (std::size_t i = 0; i < steps.size(); ++i) page.row({std::to_string(i), step_text(steps[i])});
        page.end_table();
    }
    for (const std::string& target : artifact.manifest().targets)
        if (const DeviceImage* image = artifact.device_image(target)) {
            page.table({cat(target, " step"), "what"});
            const auto& steps = image->programs[index].steps;
            for (std::size_t i = 0; i < steps.size(); ++i) page.row({std::to_string(i), step_text(steps[i])});
            page.end_table();
        }
}

}  // namespace

std::string to_html(const Artifact& artifact, std::string_view name) {
    Page page;
    page.table({"what", "value"});
    page.row({"id", artifact.id().hex()});
    page.row({"bytes", std::to_string(artifact.bytes().size())});
    page.row({"producer", artifact.manifest().producer});
    for (const std::string& target : artifact.manifest().targets) page.row({"target", target});
    page.end_table();
    page.heading("sections");
    page.table({"kind", "tag", "offset", "bytes", "digest"});
    for (const Section& s : artifact.sections())
        page.row({std::string(format::to_string(s.kind)), std::to_string(s.tag), std::to_string(s.offset),
                  std::to_string(s.length), s.digest.hex()});
    page.end_table();
    for (std::size_t i = 0; i < artifact.functions().functions.size(); ++i) add_function(page, artifact, i);
    page.heading("constants");
    page.table({"name", "dtype", "shape", "offset"});
    for (const Constant& c : artifact.functions().constants) {
        std::string shape;
        for (const std::uint64_t d : c.shape) shape += cat(shape.empty() ? "" : ", ", d);
        page.row({c.name, std::string(to_string(c.dtype)), cat("[", shape, "]"), std::to_string(c.offset)});
    }
    page.end_table();
    if (artifact.debug()) {
        page.heading("graph");
        page.text(artifact.debug()->graph);
    }
    return page.finish(name);
}

}  // namespace lyo::cli
