// JSON documents as a tree of plain values. The parser behind it is in json.cpp alone.
module lyo.importer:json;

import lyo.prelude;
import lyo.base;

namespace lyo {

struct JsonMember;

struct Json {
    using Array = std::vector<Json>;
    using Object = std::vector<JsonMember>;
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value;

    bool is_null() const noexcept { return value.index() == 0; }
    const bool* boolean() const noexcept { return std::get_if<bool>(&value); }
    const std::int64_t* integer() const noexcept { return std::get_if<std::int64_t>(&value); }
    const std::string* string() const noexcept { return std::get_if<std::string>(&value); }
    const Array* array() const noexcept { return std::get_if<Array>(&value); }
    const Object* object() const noexcept { return std::get_if<Object>(&value); }
    /// The member of that name; null when this is no object or has none.
    const Json* find(std::string_view key) const noexcept;
    /// "an integer", "an object", ...
    std::string_view kind() const noexcept;
};

/// Members are sorted by key, and no key comes twice.
struct JsonMember {
    std::string key;
    Json value;
};

/// Reads a document. Python's NaN, Infinity and -Infinity are read as strings. Errors: bad_model.
Result<Json> parse_json(std::string_view text, std::uint64_t max_bytes, std::size_t max_depth);

// A member that must be there, of a kind. Errors: bad_model, which names the key, what is needed and what there is.
Result<const Json*> member(const Json& object, std::string_view key);
Result<const std::string*> string_member(const Json& object, std::string_view key);
Result<std::int64_t> integer_member(const Json& object, std::string_view key);
Result<const Json::Array*> array_member(const Json& object, std::string_view key);
Result<const Json::Object*> object_member(const Json& object, std::string_view key);

/// A tagged union of torch's schema: an object with exactly one member.
struct Tagged {
    std::string_view tag;
    const Json* value = nullptr;
};
Result<Tagged> tagged(const Json& json);

/// A number, or one of the words that stand for the numbers JSON lacks.
std::optional<double> real(const Json& json) noexcept;

}  // namespace lyo
