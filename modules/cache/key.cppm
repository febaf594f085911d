// What an entry is found by.
export module lyo.cache:key;

import lyo.prelude;
import lyo.base;

namespace lyo {

/// One thing that the result depends on: a name, and its value or a digest of it.
export struct KeyPart {
    std::string name;
    std::string value;
    friend bool operator==(const KeyPart&, const KeyPart&) = default;
};

/// Everything that a compiled function depends on, in parts, so that a miss can be explained. Parts are sorted by name;
/// the same parts are the same key on every machine.
export class CacheKey {
  public:
    static constexpr std::size_t max_parts = 32;
    static constexpr std::size_t max_text = 1024;  ///< bytes of one name, and of one value

    CacheKey() = default;
    /// Errors: invalid_argument (too many or too long, a name that is empty or there twice).
    [[nodiscard]] static Result<CacheKey> make(std::vector<KeyPart> parts);

    std::span<const KeyPart> parts() const noexcept { return parts_; }
    /// SHA-256 over the encoded parts: the entry's name in every store.
    const Digest& digest() const noexcept { return digest_; }
    friend bool operator==(const CacheKey& a, const CacheKey& b) noexcept { return a.parts_ == b.parts_; }

  private:
    std::vector<KeyPart> parts_;
    Digest digest_;
};

/// A part in which two keys differ; empty where a key has no such part.
export struct KeyDifference {
    std::string name, wanted, found;
};
export std::vector<KeyDifference> differences(const CacheKey& wanted, const CacheKey& found);

/// 64 hexadecimal digits. Errors: invalid_argument.
export [[nodiscard]] Result<Digest> parse_digest(std::string_view hex);

}  // namespace lyo
