// Little-endian integers and the parts of a key, in memory.
module lyo.cache:encoding;

import lyo.prelude;
import lyo.base;
import :key;

namespace lyo {

static_assert(std::endian::native == std::endian::little);

template <class T>
void append(std::vector<std::byte>& out, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* const from = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), from, from + sizeof(T));
}

/// Takes values from the front of a region; what is not there leaves `good` false and gives zeros.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}
    std::span<const std::byte> take(std::size_t size) noexcept {
        if (size > rest_.size()) {
            good_ = false;
            return {};
        }
        const auto out = rest_.first(size);
        rest_ = rest_.subspan(size);
        return out;
    }
    template <class T>
    T read() noexcept {
        T out{};
        const auto from = take(sizeof(T));
        if (good_) std::memcpy(&out, from.data(), sizeof(T));
        return out;
    }
    bool good() const noexcept { return good_; }
    bool at_end() const noexcept { return rest_.empty(); }

  private:
    std::span<const std::byte> rest_;
    bool good_ = true;
};

std::vector<std::byte> encode_parts(std::span<const KeyPart> parts);
/// Exactly what encode_parts gives for sorted, distinct parts. Errors: bad_encoding.
Result<CacheKey> decode_parts(std::span<const std::byte> bytes, std::uint32_t count);

}  // namespace lyo
