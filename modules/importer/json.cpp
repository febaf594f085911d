// The one file that knows the JSON library.
module;
#include <nlohmann/json.hpp>

module lyo.importer;

import lyo.prelude;
import lyo.base;
import :json;

namespace lyo {
namespace {

/// The word of Python's that stands at the start of `text`, or nothing.
std::string_view bare_word(std::string_view text) noexcept {
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (text.starts_with(word)) return word;
    return {};
}

/// The document with Python's bare words in quotes, checked for depth. Nothing else is judged here.
Result<std::string> prepare(std::string_view text, std::size_t max_depth) {
    std::string out;
    out.reserve(text.size());
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') quoted = !quoted;
        if (quoted) {
            if (c == '\\' && i + 1 < text.size()) out += text[i++];
        } else if (c == '[' || c == '{') {
            if (++depth > max_depth)
                return mismatch(ErrorCode::bad_model, "", "JSON nesting", cat("at most ", max_depth), "more");
        } else if (c == ']' || c == '}') {
            depth -= depth > 0 ? 1 : 0;
        } else if (c == 'N' || c == 'I' || c == '-') {
            if (const std::string_view word = bare_word(text.substr(i)); !word.empty()) {
                out += cat('"', word, '"');
                i += word.size() - 1;
                continue;
            }
        }
        out += text[i];
    }
    return out;
}

/// Builds the tree. A container under construction is the last child of the one around it, so the pointers in `open_`
/// stay good: no vector grows while one of its elements is open.
class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
  public:
    bool null() override { return put({}); }
    bool boolean(bool v) override { return put({v}); }
    bool number_integer(number_integer_t v) override { return put({std::int64_t{v}}); }
    bool number_unsigned(number_unsigned_t v) override {
        if (v > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
            return put({static_cast<double>(v)});
        return put({static_cast<std::int64_t>(v)});
    }
    bool number_float(number_float_t v, const string_t&) override { return put({v}); }
    bool string(string_t& v) override { return put({std::move(v)}); }
    bool binary(binary_t&) override { return refuse("binary data"); }
    bool start_object(std::size_t) override { return open({Json::Object{}}); }
    bool start_array(std::size_t) override { return open({Json::Array{}}); }
    bool key(string_t& v) override {
        key_ = std::move(v);
        return true;
    }
    bool end_array() override {
        open_.pop_back();
        return true;
    }
    bool end_object() override {
        auto& members = *std::get_if<Json::Object>(&open_.back()->value);
        std::sort(members.begin(), members.end(),
                  [](const JsonMember& a, const JsonMember& b) { return a.key < b.key; });
        const auto twice = std::adjacent_find(members.begin(), members.end(),
                                              [](const JsonMember& a, const JsonMember& b) { return a.key == b.key; });
        if (twice != members.end()) return refuse(cat("\"", twice->key, "\" comes twice in one object"));
        open_.pop_back();
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
        return refuse(cat("not JSON at byte ", position));
    }

    Json root;
    std::string problem;

  private:
    bool refuse(std::string what) {
        problem = std::move(what);
        return false;
    }
    Json* place(Json value) {
        if (open_.empty()) {
            root = std::move(value);
            return &root;
        }
        if (auto* array = std::get_if<Json::Array>(&open_.back()->value)) return &array->emplace_back(std::move(value));
        auto& object = *std::get_if<Json::Object>(&open_.back()->value);
        return &object.emplace_back(std::move(key_), std::move(value)).value;
    }
    bool put(Json value) {
        place(std::move(value));
        return true;
    }
    bool open(Json value) {
        open_.push_back(place(std::move(value)));
        return true;
    }

    std::vector<Json*> open_;
    std::string key_;
};

Result<const Json*> typed(const Json& object, std::string_view key, std::string_view kind) {
    auto found = member(object, key);
    if (found && (*found)->kind() != kind)
        return mismatch(ErrorCode::bad_model, "", cat("\"", key, "\""), kind, (*found)->kind());
    return found;
}

}  // namespace

const Json* Json::find(std::string_view key) const noexcept {
    const Object* members = object();
    if (members == nullptr) return nullptr;
    const auto at = std::lower_bound(members->begin(), members->end(), key,
                                     [](const JsonMember& m, std::string_view k) { return m.key < k; });
    return at != members->end() && at->key == key ? &at->value : nullptr;
}

std::string_view Json::kind() const noexcept {
    static constexpr std::string_view names[] = {"null",     "a boolean", "an integer", "a real number",
                                                 "a string", "an array",  "an object"};
    return names[value.index()];
}

Result<Json> parse_json(std::string_view text, std::uint64_t max_bytes, std::size_t max_depth) {
    if (text.size() > max_bytes)
        return mismatch(ErrorCode::bad_model, "", "JSON bytes", cat("at most ", max_bytes), text.size());
    auto prepared = prepare(text, max_depth);
    if (!prepared) return std::unexpected(prepared.error());
    TreeBuilder builder;
    if (!nlohmann::json::sax_parse(prepared->begin(), prepared->end(), &builder))
        return fail(ErrorCode::bad_model, "", builder.problem);
    return std::move(builder.root);
}

Result<const Json*> member(const Json& object, std::string_view key) {
    if (object.object() == nullptr)
        return mismatch(ErrorCode::bad_model, "", cat("what should hold \"", key, "\""), "an object", object.kind());
    const Json* found = object.find(key);
    if (found == nullptr) return fail(ErrorCode::bad_model, "", "\"", key, "\" is missing");
    return found;
}

Result<const std::string*> string_member(const Json& object, std::string_view key) {
    const auto found = typed(object, key, "a string");
    if (!found) return std::unexpected(found.error());
    return (*found)->string();
}
Result<std::int64_t> integer_member(const Json& object, std::string_view key) {
    const auto found = typed(object, key, "an integer");
    if (!found) return std::unexpected(found.error());
    return *(*found)->integer();
}
Result<const Json::Array*> array_member(const Json& object, std::string_view key) {
    const auto found = typed(object, key, "an array");
    if (!found) return std::unexpected(found.error());
    return (*found)->array();
}
Result<const Json::Object*> object_member(const Json& object, std::string_view key) {
    const auto found = typed(object, key, "an object");
    if (!found) return std::unexpected(found.error());
    return (*found)->object();
}

Result<Tagged> tagged(const Json& json) {
    const Json::Object* members = json.object();
    if (members == nullptr || members->size() != 1)
        return mismatch(ErrorCode::bad_model, "", "a union", "an object with one member",
                        members == nullptr ? std::string(json.kind()) : cat("one with ", members->size()));
    return Tagged{members->front().key, &members->front().value};
}

std::optional<double> real(const Json& json) noexcept {
    if (const auto* d = std::get_if<double>(&json.value)) return *d;
    if (const auto* i = json.integer()) return static_cast<double>(*i);
    const std::string* word = json.string();
    if (word == nullptr) return std::nullopt;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (*word == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (*word == "Infinity") return infinity;
    if (*word == "-Infinity") return -infinity;
    return std::nullopt;
}

}  // namespace lyo
