// Sizes as expressions over symbols: "s0", "2*s0 + 1", "s0 // 2". Immutable and in a normal form, so that sizes which
// are the same polynomial compare equal.
export module lyo.graph:sym;

import lyo.prelude;
import lyo.base;

namespace lyo {

/// An integer expression over named symbols. Arithmetic on constants wraps at 64 bits; values that matter are
/// evaluated with checks when a function is called.
export class Sym {
  public:
    enum class Kind : std::uint8_t { constant, symbol, sum, product, floor_div, mod, max, min };

    Sym() = default;
    Sym(std::int64_t value) noexcept : value_(value) {}
    static Sym symbol(std::string_view name);

    Kind kind() const noexcept;
    bool is_constant() const noexcept { return node_ == nullptr; }
    /// The value of a constant; 0 otherwise.
    std::int64_t value() const noexcept { return value_; }
    /// The name of a symbol.
    const std::string& name() const noexcept;
    /// Operands of a sum, product, floor_div, mod, max or min. A product's constant factor comes first, a sum's
    /// constant term last.
    std::span<const Sym> operands() const noexcept;
    /// "2*s0 + 1"; the same text means the same expression.
    std::string to_string() const;

    friend Sym operator+(const Sym& a, const Sym& b);
    friend Sym operator-(const Sym& a, const Sym& b);
    friend Sym operator*(const Sym& a, const Sym& b);
    /// Floor division and modulo as in Python. A constant zero divisor gives 0.
    friend Sym floor_div(const Sym& a, const Sym& b);
    friend Sym mod(const Sym& a, const Sym& b);
    friend Sym max(const Sym& a, const Sym& b);
    friend Sym min(const Sym& a, const Sym& b);
    friend bool operator==(const Sym& a, const Sym& b) noexcept;

    /// Value under an assignment of the symbols. Errors: invalid_argument (a symbol without value, a division by
    /// zero, a result beyond 64 bits).
    Result<std::int64_t> evaluate(const std::map<std::string, std::int64_t>& symbols) const;
    /// Adds the names of the symbols in it.
    void collect(std::set<std::string>& names) const;

  private:
    struct Node;
    std::int64_t value_ = 0;
    std::shared_ptr<const Node> node_;

    static Sym make(Kind kind, std::vector<Sym> operands, std::string name = {});
    friend struct SymAlgebra;
};

export using Shape = std::vector<Sym>;

/// "[s0, 4]".
export std::string to_string(const Shape& shape);
/// A shape of constants. Sizes that are not constant become -1.
export Dims constant_dims(const Shape& shape);
export bool is_constant(const Shape& shape) noexcept;
export Shape to_shape(std::span<const std::int64_t> dims);
/// Product of the sizes.
export Sym element_count(const Shape& shape);

/// A symbol and the values it may take, both ends included.
export struct SymbolRange {
    std::string name;
    std::int64_t min = 0;
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

}  // namespace lyo
