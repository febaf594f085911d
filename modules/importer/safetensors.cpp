// https://github.com/huggingface/safetensors: u64 length, JSON {name: {"dtype", "shape", "data_offsets"}}, data.
module lyo.importer;

import lyo.prelude;
import lyo.base;
import :json;
import :safetensors;
import :support;

namespace lyo {
namespace {

constexpr ErrorCode bad = ErrorCode::bad_archive;
constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header = 100'000'000;  // the reference implementation's limit

struct Type {
    std::string_view name;
    DType dtype;
};
constexpr Type types[] = {{"BOOL", DType::boolean}, {"U8", DType::u8},   {"I8", DType::i8},   {"I16", DType::i16},
                          {"I32", DType::i32},      {"I64", DType::i64}, {"F16", DType::f16}, {"BF16", DType::bf16},
                          {"F32", DType::f32},      {"F64", DType::f64}};

struct Entry {
    std::string name;
    DType dtype = DType::f32;
    Dims shape;
    std::uint64_t begin = 0, end = 0;
};

Result<Entry> read_entry(const JsonMember& item) {
    Entry out;
    out.name = item.key;
    const auto dtype = string_member(item.value, "dtype");
    if (!dtype) return std::unexpected(dtype.error());
    const auto type =
        std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.name == **dtype; });
    if (type == std::end(types))
        return fail(ErrorCode::unsupported_argument, "dtype", "lyo has no dtype for ", **dtype);
    out.dtype = type->dtype;
    const auto shape = array_member(item.value, "shape"), offsets = array_member(item.value, "data_offsets");
    if (!shape) return std::unexpected(shape.error());
    if (!offsets) return std::unexpected(offsets.error());
    if ((*shape)->size() > max_rank) return mismatch(bad, "shape", "rank", cat("at most ", max_rank), (*shape)->size());
    for (const Json& size : **shape) {
        if (size.integer() == nullptr || *size.integer() < 0)
            return fail(bad, "shape", "a size is no number from 0 up");
        out.shape.push_back(*size.integer());
    }
    if ((*offsets)->size() != 2) return mismatch(bad, "data_offsets", "count", 2, (*offsets)->size());
    for (const Json& offset : **offsets)
        if (offset.integer() == nullptr || *offset.integer() < 0)
            return fail(bad, "data_offsets", "an offset is no number from 0 up");
    out.begin = static_cast<std::uint64_t>(*(**offsets)[0].integer());
    out.end = static_cast<std::uint64_t>(*(**offsets)[1].integer());
    const auto size = byte_size(out.shape, out.dtype);
    if (!size || out.end < out.begin || out.end - out.begin != *size)
        return mismatch(bad, "data_offsets", cat("bytes of ", to_string(out.shape), " ", **dtype),
                        size ? std::to_string(*size) : std::string("beyond 64 bits"),
                        cat("[", out.begin, ", ", out.end, "]"));
    return out;
}

Result<> check_metadata(const Json& json) {
    const Json::Object* members = json.object();
    if (members == nullptr) return mismatch(bad, "__metadata__", "kind", "an object", json.kind());
    for (const JsonMember& item : *members)
        if (item.value.string() == nullptr)
            return mismatch(bad, cat("__metadata__.", item.key), "kind", "a string", item.value.kind());
    return {};
}

Result<std::vector<NamedTensor>> read_all(const Bytes& file) {
    if (file.size() < length_bytes)
        return mismatch(ErrorCode::truncated, "", "bytes", cat("at least ", length_bytes), file.size());
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::uint64_t>(file.span()[i]) << (8 * i);
    if (length > max_header || length > file.size() - length_bytes)
        return mismatch(bad, "header", "length",
                        cat("at most ", std::min<std::uint64_t>(max_header, file.size() - length_bytes)), length);
    constexpr std::size_t depth = 4;
    const auto json = parse_json(file.text().substr(length_bytes, length), max_header, depth);
    if (!json) {
        Error error = json.error();
        error.code = error.code == ErrorCode::bad_model ? bad : error.code;
        return std::unexpected(std::move(error).in("header"));
    }
    if (json->object() == nullptr) return mismatch(bad, "header", "kind", "an object", json->kind());
    std::vector<Entry> entries;
    for (const JsonMember& item : *json->object()) {
        if (item.key == "__metadata__") {
            if (auto ok = check_metadata(item.value); !ok) return std::unexpected(ok.error());
            continue;
        }
        auto entry = read_entry(item);
        if (!entry) {
            Error error = std::move(entry.error());
            error.code = error.code == ErrorCode::bad_model ? bad : error.code;
            return std::unexpected(std::move(error).in(item.key));
        }
        entries.push_back(std::move(*entry));
    }
    // JSON members come sorted by name; among equal places that order stays.
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const Bytes data = file.slice(length_bytes + length, file.size() - length_bytes - length);
    std::uint64_t at = 0;
    std::vector<NamedTensor> out;
    for (Entry& entry : entries) {
        if (entry.begin != at) return mismatch(bad, entry.name, "begin of its data", at, entry.begin);
        if (entry.end > data.size())
            return mismatch(ErrorCode::truncated, entry.name, "bytes of data", entry.end, data.size());
        at = entry.end;
        auto tensor = view_or_copy(data.slice(entry.begin, entry.end - entry.begin), entry.shape,
                                   contiguous_strides(entry.shape), entry.dtype);
        if (!tensor) return std::unexpected(std::move(tensor.error()).in(entry.name));
        out.push_back({std::move(entry.name), std::move(*tensor)});
    }
    if (at != data.size()) return mismatch(bad, "", "bytes of data", at, data.size());
    return out;
}

Result<Bytes> write_all(std::span<const NamedTensor> tensors) {
    std::vector<const NamedTensor*> order;
    for (const NamedTensor& t : tensors) order.push_back(&t);
    std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
        const std::size_t wide_a = size_of(a->tensor.dtype()), wide_b = size_of(b->tensor.dtype());
        if (wide_a != wide_b) return wide_a > wide_b;
        // The reference implementation sorts by its own order of dtypes, in which a later one comes first.
        const auto rank = [](DType d) {
            return std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.dtype == d; }) -
                   std::begin(types);
        };
        if (a->tensor.dtype() != b->tensor.dtype()) return rank(a->tensor.dtype()) > rank(b->tensor.dtype());
        return a->name < b->name;
    });
    std::string header = "{";
    std::uint64_t end = 0;
    std::set<std::string_view> names;
    for (const NamedTensor* t : order) {
        if (!names.insert(t->name).second || t->name == "__metadata__")
            return fail(ErrorCode::invalid_argument, t->name, "the name is taken");
        if (!parse_json(json_text(t->name), max_header, 1))
            return fail(ErrorCode::invalid_argument, t->name, "the name is not UTF-8");
        if (t->tensor.device() != Device::cpu())
            return mismatch(ErrorCode::wrong_device, t->name, "device", "cpu", t->tensor.device().to_string());
        const auto type = std::find_if(std::begin(types), std::end(types),
                                       [&](const Type& x) { return x.dtype == t->tensor.dtype(); });
        const std::uint64_t begin = end;
        end += static_cast<std::uint64_t>(t->tensor.numel()) * size_of(t->tensor.dtype());
        header += cat(header.size() > 1 ? "," : "", json_text(t->name), ":{\"dtype\":\"", type->name, "\",\"shape\":[");
        for (std::size_t d = 0; d < t->tensor.rank(); ++d) header += cat(d > 0 ? "," : "", t->tensor.shape()[d]);
        header += cat("],\"data_offsets\":[", begin, ",", end, "]}");
    }
    header += '}';
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return Bytes::make(length_bytes + header.size() + end, [&](std::span<std::byte> out) -> Result<> {
        for (std::size_t i = 0; i < length_bytes; ++i)
            out[i] = static_cast<std::byte>(std::uint64_t{header.size()} >> (8 * i));
        std::memcpy(out.data() + length_bytes, header.data(), header.size());
        std::size_t at = length_bytes + header.size();
        for (const NamedTensor* t : order) {
            const auto compact = t->tensor.contiguous();
            if (!compact) return std::unexpected(compact.error());
            const auto bytes = static_cast<std::size_t>(compact->numel()) * size_of(compact->dtype());
            if (bytes > 0) std::memcpy(out.data() + at, compact->data(), bytes);
            at += bytes;
        }
        return {};
    });
}

}  // namespace

Result<std::vector<NamedTensor>> read_safetensors(const Bytes& file) {
    return no_throw(bad, [&] { return read_all(file); });
}
Result<Bytes> write_safetensors(std::span<const NamedTensor> tensors) {
    return no_throw(ErrorCode::invalid_argument, [&] { return write_all(tensors); });
}

}  // namespace lyo
