// Arithmetic on sizes that says when it does not fit. Sums over numbers that came from a file go through these.
export module lyo.base:checked;

import lyo.prelude;

namespace lyo {

/// a + b, a * b, a - b, or nullopt when the exact value does not fit in I.
export template <std::integral I>
constexpr std::optional<I> checked_add(I a, I b) noexcept {
    I out{};
    if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
    return out;
}
export template <std::integral I>
constexpr std::optional<I> checked_mul(I a, I b) noexcept {
    I out{};
    if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
    return out;
}
export template <std::integral I>
constexpr std::optional<I> checked_sub(I a, I b) noexcept {
    I out{};
    if (__builtin_sub_overflow(a, b, &out)) return std::nullopt;
    return out;
}

/// Smallest multiple of `alignment` (a power of two) that is at least `value`; nullopt when it does not fit.
export constexpr std::optional<std::uint64_t> checked_align(std::uint64_t value, std::uint64_t alignment) noexcept {
    const auto up = checked_add(value, alignment - 1);
    if (!up) return std::nullopt;
    return *up & ~(alignment - 1);
}

/// Floor division and its remainder, as Python's // and %. `b` is not zero and a / b must not overflow.
export constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept {
    const std::int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
export constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) noexcept {
    // Not a - floor_div(a, b) * b: that product overflows for 1 and the smallest integer.
    const std::int64_t r = a % b;
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace lyo
