module lyo.base;

import lyo.prelude;

namespace lyo {

std::string_view version() noexcept { return LYO_VERSION; }

std::string_view to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::invalid_argument:
            return "invalid_argument";
        case ErrorCode::guard_failed:
            return "guard_failed";
        case ErrorCode::wrong_device:
            return "wrong_device";
        case ErrorCode::limit_exceeded:
            return "limit_exceeded";
        case ErrorCode::index_out_of_range:
            return "index_out_of_range";
        case ErrorCode::bad_magic:
            return "bad_magic";
        case ErrorCode::unsupported_version:
            return "unsupported_version";
        case ErrorCode::truncated:
            return "truncated";
        case ErrorCode::bad_header:
            return "bad_header";
        case ErrorCode::bad_section:
            return "bad_section";
        case ErrorCode::bad_digest:
            return "bad_digest";
        case ErrorCode::bad_encoding:
            return "bad_encoding";
        case ErrorCode::bad_value:
            return "bad_value";
        case ErrorCode::bad_signature:
            return "bad_signature";
        case ErrorCode::bad_archive:
            return "bad_archive";
        case ErrorCode::bad_model:
            return "bad_model";
        case ErrorCode::unsupported_operator:
            return "unsupported_operator";
        case ErrorCode::unsupported_argument:
            return "unsupported_argument";
        case ErrorCode::bad_graph:
            return "bad_graph";
        case ErrorCode::file:
            return "file";
        case ErrorCode::out_of_memory:
            return "out_of_memory";
        case ErrorCode::no_image:
            return "no_image";
        case ErrorCode::no_device:
            return "no_device";
        case ErrorCode::device:
            return "device";
        case ErrorCode::remote:
            return "remote";
    }
    return "unknown";
}

std::string Error::to_string() const { return where.empty() ? what : cat(where, ": ", what); }

Error&& Error::in(std::string_view outer) && {
    where = where.empty() ? std::string(outer) : cat(outer, ": ", where);
    return std::move(*this);
}

void detail::append(std::string& out, double value) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    out.append(text, end);
}

std::string json_text(std::string_view text) {
    static constexpr std::pair<char, char> short_forms[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                                            {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
    std::string out = "\"";
    for (const char c : text) {
        const auto* form =
            std::find_if(std::begin(short_forms), std::end(short_forms), [&](const auto& f) { return f.first == c; });
        if (form != std::end(short_forms)) {
            out += '\\';
            out += form->second;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            constexpr char digits[] = "0123456789abcdef";
            out += cat("\\u00", digits[(c >> 4) & 15], digits[c & 15]);
        } else {
            out += c;
        }
    }
    return out + '"';
}

}  // namespace lyo
