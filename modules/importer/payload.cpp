module lyo.importer;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import :json;
import :payload;
import :support;

namespace lyo {

Result<DType> dtype_of_number(std::int64_t number) {
    switch (number) {  // torch/_export/serde/schema.py, ScalarType
        case 1:
            return DType::u8;
        case 2:
            return DType::i8;
        case 3:
            return DType::i16;
        case 4:
            return DType::i32;
        case 5:
            return DType::i64;
        case 6:
            return DType::f16;
        case 7:
            return DType::f32;
        case 8:
            return DType::f64;
        case 12:
            return DType::boolean;
        case 13:
            return DType::bf16;
        default:
            return fail(ErrorCode::unsupported_argument, "", "lyo has no dtype for torch's number ", number);
    }
}

Result<std::int64_t> constant_size(const Json& json) { return integer_member(json, "as_int"); }

namespace {

Result<Dims> dims_member(const Json& json, std::string_view key) {
    const auto list = array_member(json, key);
    if (!list) return std::unexpected(list.error());
    if ((*list)->size() > max_rank)
        return mismatch(ErrorCode::bad_model, key, "rank", cat("at most ", max_rank), (*list)->size());
    Dims out;
    for (const Json& item : **list) {
        const auto size = constant_size(item);
        if (!size) return std::unexpected(Error(size.error()).in(key));
        if (*size < 0) return mismatch(ErrorCode::bad_model, key, "a size or stride", "at least 0", *size);
        out.push_back(*size);
    }
    return out;
}

}  // namespace

Result<PayloadTable::Entry> PayloadTable::entry(const Json& json, std::string_view folder) {
    Entry out;
    const auto path = string_member(json, "path_name");
    if (!path) return std::unexpected(path.error());
    out.path = cat(folder, **path);
    if (const Json* pickled = json.find("use_pickle"); pickled != nullptr && pickled->boolean() != nullptr)
        out.pickled = *pickled->boolean();
    const auto meta = member(json, "tensor_meta");
    if (!meta) return std::unexpected(meta.error());
    if ((*meta)->is_null()) {
        out.pickled = true;  // an object of another kind: a script object, say
        return out;
    }
    const auto number = integer_member(**meta, "dtype");
    if (!number) return std::unexpected(number.error());
    const auto dtype = dtype_of_number(*number);
    if (!dtype) return std::unexpected(dtype.error());
    out.dtype = *dtype;
    const auto shape = dims_member(**meta, "sizes"), strides = dims_member(**meta, "strides");
    if (!shape) return std::unexpected(shape.error());
    if (!strides) return std::unexpected(strides.error());
    if (shape->size() != strides->size())
        return mismatch(ErrorCode::bad_model, "strides", "count", shape->size(), strides->size());
    out.shape = *shape;
    out.strides = *strides;
    if (const Json* offset = (*meta)->find("storage_offset"); offset != nullptr) {
        const auto value = constant_size(*offset);
        if (!value) return std::unexpected(Error(value.error()).in("storage_offset"));
        if (*value < 0) return mismatch(ErrorCode::bad_model, "storage_offset", "value", "at least 0", *value);
        out.offset = *value;
    }
    return out;
}

Result<PayloadTable> PayloadTable::parse(std::string_view text, std::string_view folder, const ImportOptions& options) {
    const auto json = parse_json(text, options.max_json_bytes, options.max_json_depth);
    if (!json) return std::unexpected(json.error());
    const auto config = object_member(*json, "config");
    if (!config) return std::unexpected(config.error());
    PayloadTable out;
    for (const JsonMember& item : **config) {
        auto parsed = entry(item.value, folder);
        if (!parsed) return std::unexpected(std::move(parsed.error()).in(item.key));
        out.entries_.emplace(item.key, std::move(*parsed));
    }
    return out;
}

Result<Tensor> PayloadTable::load(std::string_view name, const PayloadReader& read, Budget& budget) const {
    const auto at = entries_.find(name);
    if (at == entries_.end()) return fail(ErrorCode::bad_model, name, "the archive has no data for it");
    const Entry& e = at->second;
    if (e.pickled) return fail(ErrorCode::unsupported_argument, name, "is a pickle, which lyo never opens");
    auto file = read(e.path);
    if (!file) return std::unexpected(std::move(file.error()).in(name));

    // One past the last element that the view touches.
    std::optional<std::int64_t> end = e.offset;
    const auto count = element_count(std::span<const std::int64_t>(e.shape));
    if (!count) return fail(ErrorCode::bad_model, name, "shape ", to_string(e.shape), " has no size");
    for (std::size_t d = 0; end && *count > 0 && d < e.shape.size(); ++d) {
        const auto reach = checked_mul(e.shape[d] - 1, e.strides[d]);
        end = reach ? checked_add(*end, *reach) : std::nullopt;
    }
    if (end && *count > 0) end = checked_add(*end, std::int64_t{1});
    const auto bytes = end ? checked_mul(*end, static_cast<std::int64_t>(size_of(e.dtype))) : std::nullopt;
    if (!bytes || static_cast<std::uint64_t>(*bytes) > file->size())
        return mismatch(ErrorCode::bad_model, name, cat("bytes of ", e.path),
                        bytes ? std::to_string(*bytes) : std::string("beyond 64 bits"), file->size());
    const auto offset = static_cast<std::size_t>(e.offset) * size_of(e.dtype);
    auto tensor = view_or_copy(file->slice(offset, file->size() - offset), e.shape, e.strides, e.dtype);
    if (!tensor || tensor->is_contiguous()) return tensor;
    // Strides may repeat elements: what a row-major copy takes is not bounded by the file.
    const auto size = byte_size(e.shape, e.dtype);
    if (!size) return fail(ErrorCode::bad_model, name, "shape ", to_string(e.shape), " has no size");
    if (auto taken = budget.take(*size, name); !taken) return std::unexpected(taken.error());
    return tensor->contiguous();
}

}  // namespace lyo
