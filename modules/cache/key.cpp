module lyo.cache;

import lyo.prelude;
import lyo.base;
import :key;
import :encoding;

namespace lyo {

Result<CacheKey> CacheKey::make(std::vector<KeyPart> parts) {
    if (parts.size() > max_parts)
        return mismatch(ErrorCode::invalid_argument, "cache key", "parts", cat("at most ", max_parts), parts.size());
    std::sort(parts.begin(), parts.end(), [](const KeyPart& a, const KeyPart& b) { return a.name < b.name; });
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const KeyPart& part = parts[i];
        if (part.name.empty()) return fail(ErrorCode::invalid_argument, "cache key", "a part without a name");
        if (part.name.size() > max_text || part.value.size() > max_text)
            return mismatch(ErrorCode::invalid_argument, cat("cache key, part ", part.name.substr(0, 64)), "bytes",
                            cat("at most ", max_text), std::max(part.name.size(), part.value.size()));
        if (i > 0 && parts[i - 1].name == part.name)
            return fail(ErrorCode::invalid_argument, cat("cache key, part ", part.name), "given twice");
    }
    CacheKey out;
    out.parts_ = std::move(parts);
    out.digest_ = sha256({std::as_bytes(std::span("lyo cache key 1\n", 16)), encode_parts(out.parts_)});
    return out;
}

std::vector<KeyDifference> differences(const CacheKey& wanted, const CacheKey& found) {
    std::map<std::string, KeyDifference> all;
    for (const KeyPart& part : wanted.parts()) {
        all[part.name].name = part.name;
        all[part.name].wanted = part.value;
    }
    for (const KeyPart& part : found.parts()) {
        all[part.name].name = part.name;
        all[part.name].found = part.value;
    }
    std::vector<KeyDifference> out;
    for (auto& [name, difference] : all)
        if (difference.wanted != difference.found) out.push_back(std::move(difference));
    return out;
}

Result<Digest> parse_digest(std::string_view hex) {
    Digest out;
    const auto bad = [&] {
        return mismatch(ErrorCode::invalid_argument, "key", "digest", "64 hexadecimal digits", hex.substr(0, 80));
    };
    if (hex.size() != 2 * out.bytes.size()) return bad();
    for (std::size_t i = 0; i < out.bytes.size(); ++i) {
        const auto digit = [](char c) {
            return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        };
        const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0) return bad();
        out.bytes[i] = static_cast<std::uint8_t>(16 * high + low);
    }
    return out;
}

}  // namespace lyo
