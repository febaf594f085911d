// The one codec. It walks the schema's aggregates with Boost.PFR to write, read and print them.
//
//   bool                 one byte, 0 or 1
//   enumeration          one byte, below the number of its values
//   unsigned integer     LEB128, shortest form, within the type
//   signed integer       zigzag, then as unsigned
//   string               length, then valid UTF-8
//   vector               count, then the elements
//   variant              one byte with the alternative's index, then the alternative
//   Digest               its 32 bytes
//   aggregate            its fields in order
//
// Every value has one encoding and the decoder accepts no other.
module lyo.artifact:codec;

import lyo.prelude;
import lyo.base;
import lyo.inner;
import :schema;

namespace lyo::codec {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;

/// How many values an enumeration has, and their names.
template <class E>
constexpr std::size_t enum_count() {
    if constexpr (std::is_same_v<E, DType>) return dtype_count;
    if constexpr (std::is_same_v<E, ScalarOp>) return scalar_op_count;
    if constexpr (std::is_same_v<E, RegClass>) return reg_class_count;
    if constexpr (std::is_same_v<E, ExprOp>) return expr_op_names.size();
    if constexpr (std::is_same_v<E, GuardKind>) return guard_kind_names.size();
    if constexpr (std::is_same_v<E, Space>) return space_names.size();
    if constexpr (std::is_same_v<E, OperandKind>) return operand_kind_names.size();
}
template <class E>
std::string_view enum_name(E value) {
    const auto i = static_cast<std::size_t>(value);
    if constexpr (std::is_same_v<E, ExprOp>)
        return expr_op_names[i];
    else if constexpr (std::is_same_v<E, GuardKind>)
        return guard_kind_names[i];
    else if constexpr (std::is_same_v<E, Space>)
        return space_names[i];
    else if constexpr (std::is_same_v<E, OperandKind>)
        return operand_kind_names[i];
    else
        return to_string(value);
}

/// The name of field `i` in "a b c".
constexpr std::string_view field_name(std::string_view fields, std::size_t i) {
    for (; i > 0; --i) fields.remove_prefix(fields.find(' ') + 1);
    return fields.substr(0, fields.find(' '));
}
template <class T>
constexpr bool fields_are_named() {
    return static_cast<std::size_t>(std::count(T::fields.begin(), T::fields.end(), ' ')) + 1 ==
           boost::pfr::tuple_size_v<T>;
}

/// The fewest bytes a value can take: what bounds an allocation made for a count from a file.
template <class T>
constexpr std::size_t min_size() {
    if constexpr (std::is_same_v<T, Digest>) {
        return 32;
    } else if constexpr (std::is_class_v<T> && !is_vector<T> && !is_variant<T> && !std::is_same_v<T, std::string>) {
        return []<std::size_t... I>(std::index_sequence<I...>) {
            return (min_size<boost::pfr::tuple_element_t<I, T>>() + ... + 0);
        }(std::make_index_sequence<boost::pfr::tuple_size_v<T>>());
    } else if constexpr (is_variant<T>) {
        return []<std::size_t... I>(std::index_sequence<I...>) {
            return 1 + std::min({min_size<std::variant_alternative_t<I, T>>()...});
        }(std::make_index_sequence<std::variant_size_v<T>>());
    } else {
        return 1;
    }
}

// --- writing ---------------------------------------------------------------------------------------------------------

using Out = std::vector<std::byte>;

inline void write_unsigned(Out& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
    out.push_back(static_cast<std::byte>(value));
}

template <class T>
void write(Out& out, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        out.push_back(static_cast<std::byte>(value));
    } else if constexpr (std::is_enum_v<T>) {
        out.push_back(static_cast<std::byte>(value));
    } else if constexpr (std::is_unsigned_v<T>) {
        write_unsigned(out, value);
    } else if constexpr (std::is_signed_v<T>) {
        const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
        write_unsigned(out, value < 0 ? ~(bits << 1) : bits << 1);
    } else if constexpr (std::is_same_v<T, std::string>) {
        write_unsigned(out, value.size());
        const auto bytes = std::as_bytes(std::span(value));
        out.insert(out.end(), bytes.begin(), bytes.end());
    } else if constexpr (is_vector<T>) {
        write_unsigned(out, value.size());
        for (const auto& item : value) write(out, item);
    } else if constexpr (is_variant<T>) {
        out.push_back(static_cast<std::byte>(value.index()));
        std::visit([&](const auto& item) { write(out, item); }, value);
    } else if constexpr (std::is_same_v<T, Digest>) {
        const auto bytes = std::as_bytes(std::span(value.bytes));
        out.insert(out.end(), bytes.begin(), bytes.end());
    } else {
        static_assert(fields_are_named<T>(), "name every field of the aggregate in `fields`");
        boost::pfr::for_each_field(value, [&](const auto& field) { write(out, field); });
    }
}

// --- reading ---------------------------------------------------------------------------------------------------------

/// A position in bytes. The first failure is kept; its place is completed while the walk unwinds.
class In {
  public:
    explicit In(std::span<const std::byte> data) noexcept : data_(data) {}
    std::size_t left() const noexcept { return data_.size() - at_; }
    std::size_t at() const noexcept { return at_; }
    const Error& error() const noexcept { return error_; }

    bool refuse(ErrorCode code, std::string what) {
        error_ = Error{code, cat(what, " (at byte ", at_, ")"), {}};
        return false;
    }
    bool in(std::string_view outer) {
        error_.where = error_.where.empty()          ? std::string(outer)
                       : error_.where.front() == '[' ? cat(outer, error_.where)
                                                     : cat(outer, ".", error_.where);
        return false;
    }
    bool take(std::size_t count, std::span<const std::byte>& out) {
        if (count > left())
            return refuse(ErrorCode::truncated, cat("needs ", count, " more bytes, ", left(), " are left"));
        out = data_.subspan(at_, count);
        at_ += count;
        return true;
    }
    bool byte(std::uint8_t& out) {
        if (at_ == data_.size()) return refuse(ErrorCode::truncated, "the section ends here");
        out = static_cast<std::uint8_t>(data_[at_++]);
        return true;
    }
    bool unsigned_integer(std::uint64_t& out, std::uint64_t max) {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            std::uint8_t b = 0;
            if (!byte(b)) return false;
            if (shift == 63 && b > 1) return refuse(ErrorCode::bad_encoding, "integer beyond 64 bits");
            value |= std::uint64_t{b & 0x7fu} << shift;
            if ((b & 0x80u) == 0) {
                if (b == 0 && shift > 0) return refuse(ErrorCode::bad_encoding, "integer not in its shortest form");
                break;
            }
        }
        if (value > max)
            return refuse(ErrorCode::bad_encoding, cat("integer: expected at most ", max, ", got ", value));
        out = value;
        return true;
    }

  private:
    std::span<const std::byte> data_;
    std::size_t at_ = 0;
    Error error_;
};

/// RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

template <class T>
bool read(In& in, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        std::uint8_t b = 0;
        if (!in.byte(b)) return false;
        if (b > 1) return in.refuse(ErrorCode::bad_encoding, cat("boolean: expected 0 or 1, got ", b));
        value = b != 0;
    } else if constexpr (std::is_enum_v<T>) {
        std::uint8_t b = 0;
        if (!in.byte(b)) return false;
        if (b >= enum_count<T>())
            return in.refuse(ErrorCode::bad_encoding,
                             cat("enumeration: expected below ", enum_count<T>(), ", got ", b));
        value = static_cast<T>(b);
    } else if constexpr (std::is_unsigned_v<T>) {
        std::uint64_t wide = 0;
        if (!in.unsigned_integer(wide, std::numeric_limits<T>::max())) return false;
        value = static_cast<T>(wide);
    } else if constexpr (std::is_signed_v<T>) {
        std::uint64_t bits = 0;
        if (!in.unsigned_integer(bits, std::numeric_limits<std::uint64_t>::max())) return false;
        value = static_cast<T>((bits & 1) != 0 ? ~(bits >> 1) : bits >> 1);
    } else if constexpr (std::is_same_v<T, std::string>) {
        std::uint64_t size = 0;
        std::span<const std::byte> bytes;
        if (!in.unsigned_integer(size, in.left()) || !in.take(size, bytes)) return false;
        value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (!is_utf8(value)) return in.refuse(ErrorCode::bad_encoding, "text is not UTF-8");
    } else if constexpr (is_vector<T>) {
        using Item = typename T::value_type;
        std::uint64_t count = 0;
        if (!in.unsigned_integer(count, in.left() / min_size<Item>())) return false;
        value.reserve(count);
        for (std::uint64_t i = 0; i < count; ++i)
            if (!read(in, value.emplace_back())) return in.in(cat("[", i, "]"));
    } else if constexpr (is_variant<T>) {
        std::uint8_t index = 0;
        if (!in.byte(index)) return false;
        if (index >= std::variant_size_v<T>)
            return in.refuse(ErrorCode::bad_encoding,
                             cat("alternative: expected below ", std::variant_size_v<T>, ", got ", index));
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return ((index == I && read(in, value.template emplace<I>())) || ...);
        }(std::make_index_sequence<std::variant_size_v<T>>());
    } else if constexpr (std::is_same_v<T, Digest>) {
        std::span<const std::byte> bytes;
        if (!in.take(value.bytes.size(), bytes)) return false;
        std::memcpy(value.bytes.data(), bytes.data(), bytes.size());
    } else {
        static_assert(fields_are_named<T>(), "name every field of the aggregate in `fields`");
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return ((read(in, boost::pfr::get<I>(value)) || in.in(field_name(T::fields, I))) && ...);
        }(std::make_index_sequence<boost::pfr::tuple_size_v<T>>());
    }
    return true;
}

// --- printing --------------------------------------------------------------------------------------------------------

template <class T>
inline constexpr bool is_scalar =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Digest>;

template <class T>
void print(std::string& out, const T& value, int depth) {
    const auto line = [&](int d) { out += cat("\n", std::string(static_cast<std::size_t>(d) * 2, ' ')); };
    if constexpr (std::is_same_v<T, bool>) {
        out += value ? "true" : "false";
    } else if constexpr (std::is_enum_v<T>) {
        out += json_text(enum_name(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        out += std::to_string(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        out += json_text(value);
    } else if constexpr (std::is_same_v<T, Digest>) {
        out += json_text(value.hex());
    } else if constexpr (is_vector<T>) {
        out += '[';
        for (const auto& item : value) {
            if (&item != value.data()) out += is_scalar<typename T::value_type> ? ", " : ",";
            if constexpr (!is_scalar<typename T::value_type>) line(depth + 1);
            print(out, item, depth + 1);
        }
        if constexpr (!is_scalar<typename T::value_type>)
            if (!value.empty()) line(depth);
        out += ']';
    } else if constexpr (is_variant<T>) {
        constexpr auto& names = [] -> auto& {
            if constexpr (std::is_same_v<T, Step>)
                return step_names;
            else
                return device_step_names;
        }();
        out += cat("{", json_text(names[value.index()]), ": ");
        std::visit([&](const auto& item) { print(out, item, depth + 1); }, value);
        out += '}';
    } else {
        out += '{';
        std::size_t i = 0;
        boost::pfr::for_each_field(value, [&](const auto& field) {
            out += cat(i > 0 ? ", " : "", json_text(field_name(T::fields, i)), ": ");
            print(out, field, depth + 1);
            ++i;
        });
        out += '}';
    }
}

// --- whole sections --------------------------------------------------------------------------------------------------

template <class T>
std::vector<std::byte> encode(const T& value) {
    std::vector<std::byte> out;
    out.reserve(std::size_t{1} << 10);  // most sections are smaller
    write(out, value);
    return out;
}

/// Decodes a whole section. Errors: truncated, bad_encoding; `where` is the field.
template <class T>
Result<T> decode(std::span<const std::byte> data) {
    In in(data);
    T value;
    if (!read(in, value)) return std::unexpected(in.error());
    if (in.left() != 0) return fail(ErrorCode::bad_encoding, "", in.left(), " bytes are left over at byte ", in.at());
    return value;
}

}  // namespace lyo::codec
