module lyo.cache;

import lyo.prelude;
import lyo.base;
import :local;
import :layered;
import :address;

namespace lyo {
namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

Result<std::string> default_cache_path() {
    if (const auto base = variable("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/lyo";
    if (const auto home = variable("HOME"); home.starts_with('/')) return home + "/.cache/lyo";
    return fail(ErrorCode::invalid_argument, "cache", "no folder: neither XDG_CACHE_HOME nor HOME names one");
}

Result<std::optional<CacheOptions>> parse_cache(std::string_view address) {
    const std::string from_environment = variable("LYO_CACHE");
    if (address.empty()) address = from_environment;
    if (address == "none" || (address.empty() && !default_cache_path())) return std::optional<CacheOptions>();
    CacheOptions out;
    for (std::string_view rest = address; !rest.empty();) {
        const std::string_view place = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), place.size() + 1));
        if (place.find("://") != std::string_view::npos)
            return mismatch(ErrorCode::invalid_argument, "cache", "address", "a folder or none", place);
        if (place.empty() || place == "none" || !out.local.path.empty())
            return mismatch(ErrorCode::invalid_argument, "cache", "address",
                            "none, or at most one folder and one server", address);
        out.local.path = place;
    }
    if (out.local.path.empty()) {
        auto path = default_cache_path();
        if (!path) return std::unexpected(path.error());
        out.local.path = std::move(*path);
    }
    if (const std::string limit = variable("LYO_CACHE_MAX_BYTES"); !limit.empty()) {
        const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), out.local.max_bytes);
        if (error != std::errc{} || end != limit.data() + limit.size())
            return mismatch(ErrorCode::invalid_argument, "LYO_CACHE_MAX_BYTES", "value", "a number of bytes", limit);
    }
    return out;
}

}  // namespace lyo
