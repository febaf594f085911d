// Header and section table: cheap checks first, nothing allocated for a number that has not been checked.
module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :state;

namespace lyo {
namespace {

template <class T>
T little(std::span<const std::byte> data, std::size_t at) noexcept {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
        value |= static_cast<T>(static_cast<T>(std::to_integer<std::uint8_t>(data[at + i])) << (8 * i));
    return value;
}

Digest digest_at(std::span<const std::byte> data, std::size_t at) noexcept {
    Digest out;
    std::memcpy(out.bytes.data(), data.data() + at, out.bytes.size());
    return out;
}

bool is_known(format::SectionKind kind) noexcept {
    return kind >= format::SectionKind::manifest && kind <= format::SectionKind::code;
}

std::uint64_t alignment_of(format::SectionKind kind) noexcept {
    return kind == format::SectionKind::constants ? format::constants_alignment : format::section_alignment;
}

/// Kinds of which there may be several.
bool has_tags(format::SectionKind kind) noexcept {
    return kind == format::SectionKind::image || kind == format::SectionKind::launches ||
           kind == format::SectionKind::code;
}

std::string name_of(const Section& section) {
    const auto number = static_cast<std::uint32_t>(section.kind);
    if (!is_known(section.kind)) return cat("section of kind ", number);
    const std::string name = cat("section ", format::to_string(section.kind));
    return has_tags(section.kind) ? cat(name, " ", section.tag) : name;
}

}  // namespace

std::string_view format::to_string(SectionKind kind) noexcept {
    switch (kind) {
        case SectionKind::manifest:
            return "manifest";
        case SectionKind::functions:
            return "functions";
        case SectionKind::image:
            return "image";
        case SectionKind::constants:
            return "constants";
        case SectionKind::debug:
            return "debug";
        case SectionKind::launches:
            return "launches";
        case SectionKind::code:
            return "code";
    }
    return "unknown";
}

std::size_t first_nonzero(std::span<const std::byte> data) noexcept {
    // Most often there is none: one pass without branches, which the compiler makes wide.
    std::byte any{0};
    for (const std::byte b : data) any |= b;
    if (any == std::byte{0}) return data.size();
    return static_cast<std::size_t>(
        std::find_if(data.begin(), data.end(), [](std::byte b) { return b != std::byte{0}; }) - data.begin());
}

Result<std::vector<Section>> read_table(std::span<const std::byte> file, Digest& id) {
    constexpr std::string_view where = "header";
    if (file.size() < format::header_size)
        return mismatch(ErrorCode::truncated, where, "bytes", cat("at least ", format::header_size), file.size());
    if (std::memcmp(file.data(), format::magic.data(), format::magic.size()) != 0)
        return fail(ErrorCode::bad_magic, where, "not a lyo artifact: the first 8 bytes are not its magic");
    const auto version = little<std::uint32_t>(file, 8);
    if (version != format::version)
        return mismatch(ErrorCode::unsupported_version, where, "format version", format::version, version);
    const auto count = little<std::uint32_t>(file, 12);
    if (count > format::max_sections)
        return mismatch(ErrorCode::bad_header, where, "section count", cat("at most ", format::max_sections), count);
    const auto length = little<std::uint64_t>(file, 16);
    if (length != file.size())
        return mismatch(length > file.size() ? ErrorCode::truncated : ErrorCode::bad_header, where,
                        "length of the file", length, file.size());
    const std::size_t table_end = format::header_size + count * format::entry_size;
    if (table_end > file.size())
        return mismatch(ErrorCode::truncated, "section table", "bytes", table_end, file.size());

    id = digest_at(file, 24);
    const Digest zero;
    const Digest root = sha256({file.first(24), std::as_bytes(std::span(zero.bytes)),
                                file.subspan(format::header_size, table_end - format::header_size)});
    if (root != id) return mismatch(ErrorCode::bad_digest, where, "root digest", root.hex(), id.hex());

    std::vector<Section> sections;
    std::uint64_t end = table_end;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t at = format::header_size + i * format::entry_size;
        const Section section{static_cast<format::SectionKind>(little<std::uint32_t>(file, at)),
                              little<std::uint32_t>(file, at + 4), little<std::uint64_t>(file, at + 8),
                              little<std::uint64_t>(file, at + 16), digest_at(file, at + 24)};
        const auto name = [&] { return name_of(section); };
        if (!is_known(section.kind)) return fail(ErrorCode::bad_section, name(), "this version has no such section");
        if (!sections.empty()) {
            const Section& last = sections.back();
            if (std::pair(section.kind, section.tag) == std::pair(last.kind, last.tag))
                return fail(ErrorCode::bad_section, name(), "occurs twice");
            if (std::pair(section.kind, section.tag) < std::pair(last.kind, last.tag))
                return fail(ErrorCode::bad_section, name(), "out of order: it follows ", name_of(last));
        }
        // Which tags there must be, the manifest says; that is checked once it is read.
        if (!has_tags(section.kind) && section.tag != 0)
            return mismatch(ErrorCode::bad_section, name(), "tag", 0, section.tag);
        const auto start = checked_align(end, alignment_of(section.kind));
        if (!start || section.offset != *start)
            return mismatch(ErrorCode::bad_section, name(), "offset", start.value_or(0), section.offset);
        const auto stop = checked_add(section.offset, section.length);
        if (!stop || *stop > file.size())
            return mismatch(ErrorCode::bad_section, name(), "end", cat("at most ", file.size()),
                            stop ? std::to_string(*stop) : "beyond 64 bits");
        const auto padding = file.subspan(end, section.offset - end);
        if (const std::size_t p = first_nonzero(padding); p < padding.size())
            return fail(ErrorCode::bad_section, name(), "padding byte ", end + p, " is not zero");
        end = *stop;
        sections.push_back(section);
    }
    if (end != file.size())
        return fail(ErrorCode::bad_section, "section table", file.size() - end, " bytes follow the last section");
    return sections;
}

}  // namespace lyo
