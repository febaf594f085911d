// Errors as values. Library code throws nothing across its API: every failure a user can meet is an Error that says
// what is wrong, where (file, section, input name), what was expected and what was given.
export module lyo.base:result;

import lyo.prelude;

namespace lyo {

/// The version of lyo, "0.1.0".
export std::string_view version() noexcept;

/// One code for each way to be wrong, grouped by who can mend it.
export enum class ErrorCode : std::uint16_t {
    // The caller's request.
    invalid_argument = 100,
    guard_failed,
    wrong_device,
    limit_exceeded,
    index_out_of_range,
    // Artifact bytes.
    bad_magic = 200,
    unsupported_version,
    truncated,
    bad_header,
    bad_section,
    bad_digest,
    bad_encoding,
    bad_value,
    bad_signature,
    // Models to import.
    bad_archive = 300,
    bad_model,
    unsupported_operator,
    unsupported_argument,
    bad_graph,
    // This machine.
    file = 400,
    out_of_memory,
    no_image,
    no_device,
    device,
    remote,
};

/// Stable name of a code, for programs that read `--json`.
export std::string_view to_string(ErrorCode code) noexcept;

/// A failure. `where` names the place from outside in: file, section, field or input.
export struct Error {
    ErrorCode code = ErrorCode::invalid_argument;
    std::string what;
    std::string where;

    /// "where: what", in one line.
    std::string to_string() const;
    /// The same error seen from one level further out.
    Error&& in(std::string_view outer) &&;
};

export template <class T = void>
using Result = std::expected<T, Error>;

/// Builds a string from strings, characters and integers.
export template <class... Parts>
std::string cat(const Parts&... parts);

/// A JSON string, quotes included, for text that is UTF-8: control characters as \b, \f, \n, \r, \t or \u00xx.
export std::string json_text(std::string_view text);

/// `return fail(code, where, what...)` from a function that returns Result.
export template <class... Parts>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, std::string_view where, const Parts&... what) {
    return std::unexpected<Error>(Error{code, cat(what...), std::string(where)});
}

/// The common form: "WHAT: expected EXPECTED, got GOT".
export template <class Expected, class Got>
[[nodiscard]] std::unexpected<Error> mismatch(ErrorCode code, std::string_view where, std::string_view what,
                                              const Expected& expected, const Got& got) {
    return std::unexpected<Error>(Error{code, cat(what, ": expected ", expected, ", got ", got), std::string(where)});
}

namespace detail {
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
template <std::integral I>
void append(std::string& out, I value) {
    out += std::to_string(value);
}
void append(std::string& out, double value);
}  // namespace detail

template <class... Parts>
std::string cat(const Parts&... parts) {
    std::string out;
    (detail::append(out, parts), ...);
    return out;
}

}  // namespace lyo
