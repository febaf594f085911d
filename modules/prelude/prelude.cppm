// lyo.prelude: the standard names and operators that lyo's modules use, from the one place that includes the standard
// headers. Including them in every module costs six to ten times the build time. libstdc++ 12 has no `import std`.
module;
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <compare>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <expected>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

export module lyo.prelude;

export namespace std {
// clang-format off
using std::size_t; using std::ptrdiff_t; using std::nullptr_t; using std::byte; using std::to_integer;
using std::int8_t; using std::int16_t; using std::int32_t; using std::int64_t;
using std::uint8_t; using std::uint16_t; using std::uint32_t; using std::uint64_t; using std::uintptr_t;
using std::string; using std::string_view; using std::to_string; using std::basic_string;
using std::vector; using std::array; using std::deque; using std::map; using std::set; using std::unordered_map;
using std::span; using std::dynamic_extent; using std::as_bytes; using std::as_writable_bytes;
using std::pair; using std::make_pair; using std::tuple; using std::tie; using std::get; using std::get_if;
using std::variant; using std::visit; using std::holds_alternative; using std::monostate; using std::variant_size_v;
using std::variant_alternative_t; using std::in_place_type; using std::in_place_index; using std::in_place_index_t;
using std::optional; using std::nullopt; using std::expected; using std::unexpected; using std::initializer_list;
using std::unique_ptr; using std::shared_ptr; using std::weak_ptr; using std::make_unique; using std::make_shared;
using std::enable_shared_from_this; using std::default_delete; using std::nothrow; using std::nothrow_t;
using std::align_val_t; using std::bad_alloc; using std::exception;
using std::function; using std::move_only_function; using std::hash; using std::less; using std::greater; using std::ref;
using std::move; using std::forward; using std::swap; using std::exchange; using std::as_const; using std::declval;
using std::index_sequence; using std::make_index_sequence; using std::integer_sequence; using std::index_sequence_for;
using std::is_same_v; using std::is_enum_v; using std::is_integral_v; using std::is_signed_v; using std::is_unsigned_v;
using std::is_floating_point_v; using std::is_arithmetic_v; using std::is_aggregate_v; using std::is_void_v;
using std::is_trivially_copyable_v; using std::is_const_v; using std::is_class_v; using std::is_convertible_v;
using std::underlying_type_t; using std::remove_cvref_t; using std::remove_const_t; using std::decay_t;
using std::conditional_t; using std::make_unsigned_t; using std::make_signed_t; using std::to_underlying;
using std::integral_constant; using std::true_type; using std::false_type; using std::invoke_result_t; using std::invoke;
using std::same_as; using std::integral; using std::floating_point; using std::unsigned_integral; using std::invocable;
using std::numeric_limits; using std::min; using std::max; using std::clamp; using std::abs;
using std::fill; using std::fill_n; using std::copy; using std::copy_n; using std::equal; using std::find; using std::find_if;
using std::sort; using std::stable_sort; using std::unique; using std::reverse; using std::rotate; using std::any_of;
using std::all_of; using std::none_of; using std::count; using std::count_if; using std::lower_bound; using std::upper_bound;
using std::max_element; using std::min_element; using std::iota; using std::accumulate; using std::transform;
using std::is_sorted; using std::adjacent_find; using std::remove_if; using std::binary_search; using std::partial_sort;
using std::nth_element; using std::mismatch; using std::search; using std::for_each; using std::erase_if; using std::next;
using std::prev; using std::distance; using std::back_inserter; using std::begin; using std::end; using std::size; using std::data;
using std::bit_cast; using std::popcount; using std::countl_zero; using std::countr_zero; using std::bit_width;
using std::bit_ceil; using std::has_single_bit; using std::endian;
using std::memcpy; using std::memmove; using std::memset; using std::memcmp; using std::strlen; using std::strcmp;
using std::malloc; using std::free; using std::aligned_alloc; using std::getenv; using std::abort; using std::strtod;
using std::from_chars; using std::to_chars; using std::from_chars_result; using std::errc; using std::chars_format;
using std::snprintf; using std::printf; using std::fprintf; using std::fputs; using std::fwrite; using std::fflush; using std::FILE;
using std::atomic; using std::atomic_flag; using std::memory_order; using std::memory_order_relaxed;
using std::memory_order_acquire; using std::memory_order_release; using std::memory_order_acq_rel;
using std::mutex; using std::lock_guard; using std::unique_lock; using std::once_flag; using std::call_once;
using std::condition_variable; using std::thread; using std::jthread;
using std::isnan; using std::isinf; using std::isfinite; using std::signbit; using std::floor; using std::ceil; using std::trunc;
using std::nearbyint; using std::sqrt; using std::exp; using std::exp2; using std::expm1; using std::log; using std::log2;
using std::log10; using std::log1p; using std::sin; using std::cos; using std::tan; using std::asin; using std::acos; using std::atan;
using std::atan2; using std::sinh; using std::cosh; using std::tanh; using std::asinh; using std::acosh; using std::atanh;
using std::erf; using std::erfc; using std::pow; using std::fmod; using std::fmax; using std::fmin; using std::hypot;
using std::copysign; using std::fabs; using std::ldexp; using std::frexp; using std::lgamma; using std::round;
namespace chrono {
using std::chrono::steady_clock; using std::chrono::system_clock; using std::chrono::duration; using std::chrono::duration_cast;
using std::chrono::nanoseconds; using std::chrono::microseconds; using std::chrono::milliseconds; using std::chrono::seconds; using std::chrono::minutes;
using std::chrono::time_point; using std::chrono::operator-; using std::chrono::operator+; using std::chrono::operator<=>;
using std::chrono::operator<; using std::chrono::operator>; using std::chrono::operator==; using std::chrono::operator/; using std::chrono::operator*;
}
using std::operator==; using std::operator<=>; using std::operator!=; using std::operator<; using std::operator>;
using std::operator<=; using std::operator>=; using std::operator+; using std::operator-; using std::operator|;
using std::operator&; using std::operator^; using std::operator<<; using std::operator>>; using std::operator|=;
using std::operator&=; using std::operator^=;
inline namespace literals { inline namespace string_view_literals { using std::literals::string_view_literals::operator""sv; } }
// clang-format on
}  // namespace std

export namespace std::this_thread {
using std::this_thread::sleep_for;
}  // namespace std::this_thread

export namespace __gnu_cxx {
using __gnu_cxx::operator==;
using __gnu_cxx::operator<=>;
using __gnu_cxx::operator-;
using __gnu_cxx::operator+;
}  // namespace __gnu_cxx

// Plain and non-throwing allocation.
export {
    using ::operator new;
    using ::operator delete;
}

// The C names of the fixed-width integers, as the global headers give them.
export {
    using ::int16_t;
    using ::int32_t;
    using ::int64_t;
    using ::int8_t;
    using ::size_t;
    using ::uint16_t;
    using ::uint32_t;
    using ::uint64_t;
    using ::uint8_t;
    using ::uintptr_t;
}
