// Outside formats. The first byte says which: 0 an archive, 1 a model's JSON without its archive, 2 a .npy file,
// 3 a safetensors file. Each is refused with an error or read; tensors that were read, written and read again are the
// same, and written again give the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

import lyo.base;
import lyo.graph;
import lyo.importer;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

bool same(const lyo::Tensor& a, const lyo::Tensor& b) {
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
    const auto x = a.contiguous(), y = b.contiguous();
    if (!x || !y) return true;  // no memory: nothing is said
    const std::size_t bytes = static_cast<std::size_t>(a.numel()) * lyo::size_of(a.dtype());
    return bytes == 0 || std::memcmp(x->data(), y->data(), bytes) == 0;
}

void check_npy(const lyo::Bytes& file) {
    const auto tensor = lyo::read_npy(file);
    if (!tensor) return;
    const auto written = lyo::write_npy(*tensor);
    if (!written) return;
    const auto again = lyo::read_npy(*written);
    require(again.has_value() && same(*tensor, *again));
    const auto rewritten = lyo::write_npy(*again);
    require(rewritten.has_value() && *rewritten == *written);
}

void check_safetensors(const lyo::Bytes& file) {
    const auto tensors = lyo::read_safetensors(file);
    if (!tensors) return;
    const auto written = lyo::write_safetensors(*tensors);
    require(written.has_value());
    const auto again = lyo::read_safetensors(*written);
    require(again.has_value() && again->size() == tensors->size());
    for (const auto& t : *tensors)
        for (const auto& u : *again) require(t.name != u.name || same(t.tensor, u.tensor));
    const auto rewritten = lyo::write_safetensors(*again);
    require(rewritten.has_value() && *rewritten == *written);
}

lyo::ImportOptions bounded() {
    lyo::ImportOptions options;
    options.max_total_bytes = std::uint64_t{16} << 20;
    options.max_json_bytes = std::uint64_t{1} << 20;
    options.max_json_depth = 32;
    return options;
}

void check_graph(const lyo::Result<lyo::Graph>& graph) {
    if (graph) require(!graph->to_string().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const auto bytes = lyo::Bytes::borrow(std::as_bytes(std::span(data + 1, size - 1)));
    switch (data[0]) {
        case 0:
            check_graph(lyo::import_pt2(bytes, bounded()));
            break;
        case 1: {
            constexpr std::string_view none = R"({"config": {}})";
            const lyo::PayloadReader read = [](std::string_view path) -> lyo::Result<lyo::Bytes> {
                return std::unexpected(lyo::Error{lyo::ErrorCode::bad_archive, "there is no data", std::string(path)});
            };
            check_graph(lyo::import_exported_program(bytes.text(), none, none, read, bounded()));
            break;
        }
        case 2:
            check_npy(bytes);
            break;
        case 3:
            check_safetensors(bytes);
            break;
        default:
            break;
    }
    return 0;
}
