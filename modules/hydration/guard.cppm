// Guards: what a call's inputs must satisfy, prepared so that checking them costs a few nanoseconds an input.
module lyo.hydration:guard;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo {

/// The guards of one specialisation.
class Guards {
  public:
    /// Errors: bad_value (a symbol that no input determines; constant sizes without a value).
    static Result<Guards> make(const FunctionSpec& spec, Device device);
    /// Checks the inputs and gives the symbols' values. Errors: guard_failed, wrong_device.
    Result<> check(std::span<const Tensor> inputs, std::vector<std::int64_t>& symbols) const;

  private:
    /// How one dimension of one input is checked before the expressions are known.
    struct Dimension {
        enum class Kind : std::uint8_t { constant, solve, expression } kind = Kind::constant;
        std::int64_t value = 0;    // constant
        std::uint32_t symbol = 0;  // solve: size == coefficient * symbol + rest
        std::int64_t coefficient = 1, rest = 0;
    };
    struct Input {
        DType dtype = DType::f32;
        std::vector<Dimension> dimensions;
    };
    Result<> check_symbols(std::span<const Tensor> inputs, std::span<const std::int64_t> symbols) const;
    std::unexpected<Error> refuse(std::size_t input, std::string_view property, std::string_view expected,
                                  std::string_view got) const;

    const FunctionSpec* spec_ = nullptr;
    Device device_;
    std::vector<Input> inputs_;
};

}  // namespace lyo
