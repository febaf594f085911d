// The rules that span sections: names, constants, and that every index stays within its table.
module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :state;

namespace lyo {
namespace {

constexpr ErrorCode code = ErrorCode::bad_value;

Result<> validate_constants(const FunctionTable& table, std::span<const std::byte> section) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < table.constants.size(); ++i) {
        const Constant& c = table.constants[i];
        const auto where = [&] { return cat("functions.constants[", i, "]"); };
        if (c.shape.size() > max_rank)
            return mismatch(code, where(), "rank", cat("at most ", max_rank), c.shape.size());
        const auto size = byte_size(c);
        const auto start = checked_align(end, format::constant_alignment);
        if (!size || !start) return fail(code, where(), "its size does not fit in 64 bits");
        if (c.offset != *start) return mismatch(code, where(), "offset", *start, c.offset);
        const auto stop = checked_add(*start, *size);
        if (!stop || *stop > section.size())
            return mismatch(code, where(), "end", cat("at most ", section.size()), stop.value_or(0));
        const auto padding = section.subspan(end, *start - end);
        if (first_nonzero(padding) < padding.size()) return fail(code, where(), "padding before it is not zero");
        end = *stop;
    }
    if (end != section.size()) return mismatch(code, "constants", "length", end, section.size());
    return {};
}

Result<> validate_specs(std::span<const TensorSpec> specs, std::string_view list, std::size_t exprs) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const auto where = [&] { return cat(list, "[", i, "]"); };
        if (specs[i].shape.size() > max_rank)
            return mismatch(code, where(), "rank", cat("at most ", max_rank), specs[i].shape.size());
        for (const std::uint32_t e : specs[i].shape)
            if (e >= exprs) return mismatch(code, where(), "expression", cat("below ", exprs), e);
    }
    return {};
}

Result<> validate_function(const FunctionSpec& f) {
    for (std::size_t i = 0; i < f.symbols.size(); ++i)
        if (f.symbols[i].min > f.symbols[i].max || f.symbols[i].min < 0)
            return mismatch(code, cat("symbols[", i, "]"), "range", "0 <= min <= max",
                            cat("[", f.symbols[i].min, ", ", f.symbols[i].max, "]"));
    if (auto ok = validate_exprs(f.exprs, f.symbols.size()); !ok) return ok;
    if (auto ok = validate_specs(f.inputs, "inputs", f.exprs.size()); !ok) return ok;
    if (auto ok = validate_specs(f.outputs, "outputs", f.exprs.size()); !ok) return ok;
    for (std::size_t i = 0; i < f.guards.size(); ++i)
        if (f.guards[i].left >= f.exprs.size() || f.guards[i].right >= f.exprs.size())
            return fail(code, cat("guards[", i, "]"), "an expression beyond the table");
    return {};
}

/// The one target whose code is text.
constexpr std::string_view ptx_target = "cuda:ptx";

template <class P>
Result<> validate_programs(const std::vector<P>& programs, const FunctionTable& table, std::string_view where,
                           Result<> (*validate_one)(const P&, const FunctionSpec&, const FunctionTable&)) {
    if (programs.size() != table.functions.size())
        return mismatch(code, where, "programs", table.functions.size(), programs.size());
    for (std::size_t p = 0; p < programs.size(); ++p)
        if (auto ok = validate_one(programs[p], table.functions[p], table); !ok)
            return std::unexpected(std::move(ok.error()).in(cat(where, ": programs[", p, "]")));
    return {};
}

}  // namespace

Result<> validate(const Manifest& manifest, const FunctionTable& table, std::span<const Image> images,
                  std::span<const DeviceImage> device_images, std::span<const Bytes> device_code,
                  std::span<const std::byte> constants) {
    if (manifest.abi != format::abi_version)
        return mismatch(ErrorCode::unsupported_version, "manifest.abi", "version", format::abi_version, manifest.abi);
    const std::uint64_t chunks = constants.size() / digest_chunk + (constants.size() % digest_chunk != 0 ? 1 : 0);
    if (manifest.constant_leaves.size() != chunks)
        return mismatch(code, "manifest.constant_leaves", "count", chunks, manifest.constant_leaves.size());
    if (auto ok = validate_constants(table, constants); !ok) return ok;
    for (std::size_t i = 0; i < table.functions.size(); ++i)
        if (auto ok = validate_function(table.functions[i]); !ok)
            return std::unexpected(std::move(ok.error()).in(cat("functions[", i, "]")));
    for (const Image& image : images)
        if (auto ok = validate_programs(image.programs, table, "image", validate_program); !ok) return ok;
    for (std::size_t i = 0; i < device_images.size(); ++i)
        if (auto ok = validate_programs(device_images[i].programs, table, cat("launches of image ", i),
                                        validate_device_program);
            !ok)
            return ok;
    std::size_t device = 0;
    for (const std::string& target : manifest.targets) {
        if (target == "cpu") continue;
        const Bytes& bytes = device_code[device++];
        if (bytes.empty()) return fail(code, cat("code for ", target), "is empty");
        if (target == ptx_target &&
            (bytes.span().back() != std::byte{0} || bytes.text().find('\0') != bytes.size() - 1))
            return fail(code, cat("code for ", target), "is no text that ends in its only NUL");
    }
    return {};
}

}  // namespace lyo
