// Seeds for fuzz_importer, small enough that every change of them matters: models in torch.export's schema, archives of
// them, and the two tensor formats.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

import lyo.fuzz;

namespace {

using lyo::fuzz::Buffer;

void put(Buffer& out, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
void put(Buffer& out, std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

std::uint32_t crc32(std::string_view text) {
    std::uint32_t crc = 0xffffffff;
    for (const char c : text) {
        crc ^= static_cast<std::uint8_t>(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 != 0 ? 0xedb88320u : 0u);
    }
    return ~crc;
}

/// A zip of stored entries without times.
Buffer zip(const std::vector<std::pair<std::string, std::string>>& entries) {
    Buffer file, directory;
    for (const auto& [name, content] : entries) {
        const std::uint64_t offset = file.size();
        const auto common = [&](Buffer& out) {
            put(out, 0, 2);  // flags
            put(out, 0, 2);  // stored
            put(out, 0x00210000, 4);
            put(out, crc32(content), 4);
            put(out, content.size(), 4);
            put(out, content.size(), 4);
            put(out, name.size(), 2);
            put(out, 0, 2);  // extra field
        };
        put(file, 0x04034b50, 4);
        put(file, 20, 2);
        common(file);
        put(file, name);
        put(file, content);
        put(directory, 0x02014b50, 4);
        put(directory, 20, 2);
        put(directory, 20, 2);
        common(directory);
        put(directory, 0, 8);  // comment, disk, attributes
        put(directory, 0, 2);
        put(directory, offset, 4);
        put(directory, name);
    }
    const std::uint64_t start = file.size();
    file.insert(file.end(), directory.begin(), directory.end());
    put(file, 0x06054b50, 4);
    put(file, 0, 4);
    put(file, entries.size(), 2);
    put(file, entries.size(), 2);
    put(file, directory.size(), 4);
    put(file, start, 4);
    put(file, 0, 2);
    return file;
}

std::string value(std::string_view name, std::string_view sizes, std::string_view strides, int dtype = 7) {
    return "\"" + std::string(name) + "\": {\"dtype\": " + std::to_string(dtype) + ", \"sizes\": [" +
           std::string(sizes) +
           "], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", \"index\": null}, \"strides\": [" +
           std::string(strides) + R"(], "storage_offset": {"as_int": 0}, "layout": 7})";
}

constexpr std::string_view batch =
    R"json({"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 3}}})json";
constexpr std::string_view two = R"({"as_int": 2})", one = R"({"as_int": 1})";

std::string list(std::string_view a, std::string_view b) { return std::string(a) + ", " + std::string(b); }

/// relu(x @ weight.T + bias), then `node`, whose output may be the model's.
std::string model(std::string_view node, std::string_view output) {
    std::string out =
        R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "w"}}, {"as_tensor": {"name": "x"}}],
"outputs": [{"as_tensor": {"name": ")";
    out += output;
    out += R"("}}], "nodes": [
{"target": "torch.ops.aten.linear.default", "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
 {"name": "weight", "arg": {"as_tensor": {"name": "w"}}, "kind": 1}], "outputs": [{"as_tensor": {"name": "h"}}], "metadata": {},
 "is_hop_single_tensor_return": null, "name": "h"},
{"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "h"}}, "kind": 1}],
 "outputs": [{"as_tensor": {"name": "y"}}], "metadata": {}, "is_hop_single_tensor_return": null, "name": "y"})";
    out += node;
    out += "], \"tensor_values\": {";
    out += value("w", list(two, two), list(two, one)) + ", " + value("x", list(batch, two), list(two, one)) + ", " +
           value("h", list(batch, two), list(two, one)) + ", " + value("y", list(batch, two), list(two, one)) + ", " +
           value("z", list(batch, two), list(two, one));
    out += R"(}, "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": false, "custom_obj_values": {},
"sym_float_values": {}}, "signature": {"input_specs": [{"parameter": {"arg": {"name": "w"}, "parameter_name": "weight"}},
{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}], "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": ")";
    out += output;
    out +=
        R"("}}}}]}, "module_call_graph": [], "metadata": {}, "treespec_namedtuple_fields": {}}, "opset_version": {"aten": 10},
"range_constraints": {"s77": {"min_val": 1, "max_val": 64}}, "schema_version": {"major": 8, "minor": 17}, "verifiers": ["TRAINING"],
"torch_version": "2.11.0", "guards_code": []})";
    return out;
}

std::string node(std::string_view target, std::string_view more) {
    return R"(,
{"target": "torch.ops.aten.)" +
           std::string(target) + R"(", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "y"}}, "kind": 1})" +
           std::string(more) +
           R"(], "outputs": [{"as_tensor": {"name": "z"}}], "metadata": {}, "is_hop_single_tensor_return": null, "name": "z"})";
}
std::string argument(std::string_view name, std::string_view json) {
    return R"(, {"name": ")" + std::string(name) + R"(", "arg": )" + std::string(json) + R"(, "kind": 1})";
}

/// The models by what is special in them.
std::vector<std::pair<std::string, std::string>> models() {
    return {{"plain", model("", "y")},
            {"scalar", model(node("mul.Tensor", argument("other", R"({"as_float": 2.5})")), "z")},
            {"softmax", model(node("softmax.int", argument("dim", R"({"as_int": -1})")), "z")},
            {"sizes", model(node("view.default", argument("size", R"({"as_ints": [-1, 2]})")), "z")},
            {"in-place", model(node("add_.Tensor", argument("other", R"({"as_tensor": {"name": "h"}})")), "z")},
            {"unknown", model(node("no_such_operator.default", ""), "z")}};
}

std::string weights_table() {
    return R"({"config": {"weight": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": )" +
           value("", list(two, two), list(two, one)).substr(4) + "}}}";
}

std::vector<std::pair<std::string, std::string>> archive(const std::string& model_text) {
    return {{"model/data/weights/weight_0", std::string("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40", 16)},
            {"model/data/weights/model_weights_config.json", weights_table()},
            {"model/data/constants/model_constants_config.json", R"({"config": {}})"},
            {"model/models/model.json", model_text},
            {"model/archive_format", "pt2"},
            {"model/archive_version", "0"},
            {"model/byteorder", "little"}};
}

Buffer npy(std::string_view description, std::size_t bytes) {
    Buffer out;
    std::string header(description);
    header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    put(out, std::string_view("\x93NUMPY\x01\0", 8));
    put(out, header.size(), 2);
    put(out, header);
    for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(i));
    return out;
}

Buffer safetensors(std::string header, std::size_t bytes) {
    header.resize((header.size() + 7) / 8 * 8, ' ');
    Buffer out;
    put(out, header.size(), 8);
    put(out, header);
    for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(i));
    return out;
}

}  // namespace

namespace lyo::fuzz {

std::map<std::string, Buffer> importer_seeds() {
    std::map<std::string, Buffer> out;
    // The first byte picks the reader, as in importer.cpp.
    enum Reader : unsigned { pt2, model_json, npy_file, safetensors_file };
    const auto add = [&](Reader reader, const std::string& name, const Buffer& content) {
        Buffer& file = out["importer/seed-" + name];
        file.push_back(static_cast<std::byte>(reader));
        file.insert(file.end(), content.begin(), content.end());
    };
    for (const auto& [name, text] : models()) {
        Buffer json;
        put(json, text);
        add(model_json, "model-" + name, json);
        add(pt2, "pt2-" + name, zip(archive(text)));
    }
    auto entries = archive(models()[0].second);
    entries[0].second.resize(15);
    add(pt2, "pt2-short-weight", zip(entries));
    entries.erase(entries.begin() + 3);
    add(pt2, "pt2-no-model", zip(entries));
    add(npy_file, "npy-f32", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24));
    add(npy_file, "npy-fortran", npy("{'descr': '<i8', 'fortran_order': True, 'shape': (2, 2), }", 32));
    add(npy_file, "npy-scalar", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1));
    add(npy_file, "npy-huge", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8));
    add(safetensors_file, "safetensors-two",
        safetensors(
            R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})",
            16));
    add(safetensors_file, "safetensors-metadata",
        safetensors(R"({"__metadata__":{"k":"v"},"a":{"dtype":"BF16","shape":[0],"data_offsets":[0,0]}})", 0));
    add(safetensors_file, "safetensors-gap",
        safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2));
    return out;
}

}  // namespace lyo::fuzz
