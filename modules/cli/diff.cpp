// Two artifacts, section by section and field by field: both as the JSON that `inspect --json` prints.
module;
#include <nlohmann/json.hpp>

module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

constexpr std::size_t max_lines = 200;

struct Difference {
    std::string field, a, b;
};

std::string shortened(const nlohmann::json& value) {
    constexpr std::size_t longest = 120;
    if (value.is_string()) {
        const std::string text = value.get<std::string>();
        return json_text(text.size() > longest ? cat(text.substr(0, longest), "...") : text);
    }
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
    if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
    return cat(value.is_array() ? "a list of " : "an object of ", value.size());
}

void compare(const nlohmann::json& a, const nlohmann::json& b, const std::string& field, std::vector<Difference>& out) {
    if (a == b) return;
    if (a.is_object() && b.is_object()) {
        for (const auto& [key, value] : a.items()) {
            if (b.contains(key))
                compare(value, b.at(key), field.empty() ? key : cat(field, ".", key), out);
            else
                out.push_back({cat(field, ".", key), shortened(value), "nothing"});
        }
        for (const auto& [key, value] : b.items())
            if (!a.contains(key)) out.push_back({cat(field, ".", key), "nothing", shortened(value)});
    } else if (a.is_array() && b.is_array()) {
        if (a.size() != b.size())
            out.push_back({cat(field, ".length"), std::to_string(a.size()), std::to_string(b.size())});
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
            compare(a[i], b[i], cat(field, "[", i, "]"), out);
    } else {
        out.push_back({field, shortened(a), shortened(b)});
    }
}

/// Constants of one name, dtype and shape whose elements differ: the metadata does not show that.
void compare_constants(const Artifact& a, const Artifact& b, std::vector<Difference>& out) {
    const auto &left = a.functions().constants, &right = b.functions().constants;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
        if (left[i].dtype == right[i].dtype && left[i].shape == right[i].shape && !(a.constant(i) == b.constant(i)))
            out.push_back({cat("constants[", i, "] ", left[i].name), "elements", "other elements"});
}

}  // namespace

int diff(const DiffArgs& args, const Console& console) {
    const auto a = Artifact::read(args.a), b = Artifact::read(args.b);
    if (!a) return console.fail(a.error());
    if (!b) return console.fail(b.error());
    if (a->bytes() == b->bytes()) {
        console.print(console.json ? "{\"identical\": true, \"differences\": []}" : "identical");
        return done;
    }
    std::vector<Difference> differences;
    const auto left = nlohmann::json::parse(a->to_json(), nullptr, false),
               right = nlohmann::json::parse(b->to_json(), nullptr, false);
    compare(left, right, "", differences);
    compare_constants(*a, *b, differences);
    std::string json = "{\"identical\": false, \"differences\": [";
    for (std::size_t i = 0; i < differences.size(); ++i) {
        const Difference& d = differences[i];
        if (console.json)
            json += cat(i > 0 ? ", " : "", "{\"field\": ", json_text(d.field), ", \"a\": ", json_text(d.a),
                        ", \"b\": ", json_text(d.b), "}");
        else if (i < max_lines)
            console.print(cat(d.field, ": ", d.a, " -> ", d.b));
    }
    if (console.json) console.print(json + "]}");
    if (!console.json && differences.size() > max_lines)
        console.print(cat("and ", differences.size() - max_lines, " more"));
    return no;
}

}  // namespace lyo::cli
