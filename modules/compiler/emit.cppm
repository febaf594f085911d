// Writing loop programs: instructions with as many registers as they like, then few.
module lyo.compiler:emit;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;

namespace lyo {

/// The scalar program of one loop, phase by phase. Equal instructions of a phase are written once.
class LoopWriter final : public ScalarEmitter {
  public:
    explicit LoopWriter(ExprPool& exprs) : exprs_(exprs) {}

    void begin_phase(bool outer);
    /// Index of an operand of the loop, added if it is new.
    std::uint16_t operand(const Operand& operand);

    Scalar load(std::uint16_t operand, DType dtype);
    Scalar iota(std::uint16_t operand);
    void store(std::uint16_t operand, Scalar value);
    Scalar reduce(ScalarOp op, Scalar a, DType result);

    Scalar op(ScalarOp op, Scalar a) override;
    Scalar op(ScalarOp op, Scalar a, Scalar b) override;
    Scalar select(Scalar condition, Scalar a, Scalar b) override;
    Scalar constant(double value, DType dtype) override;
    Scalar constant(std::int64_t value, DType dtype) override;
    Scalar size(const Sym& value) override;
    Scalar cast(Scalar a, DType dtype) override;
    Scalar round_to(Scalar a, DType dtype) override;
    Scalar check_index(Scalar index, const Sym& size) override;
    /// The element of an operand that lies `index` (i64) elements behind its own place.
    Scalar load_at(std::uint16_t operand, Scalar index, DType dtype);
    DType dtype(Scalar a) const noexcept override { return values_[a.id].dtype; }

    /// Operands, constants, phases of the loop, with registers assigned. Errors: limit_exceeded.
    Result<> finish(Loop& loop);

  private:
    /// A value: its dtype and the phase that makes it.
    struct Made {
        DType dtype;
        std::size_t phase;
    };
    Scalar write(Instr instr, DType dtype, bool pure = true);
    Scalar wrapped(Scalar a, DType dtype);
    std::uint16_t constant_bits(std::uint64_t bits);

    ExprPool& exprs_;
    bool too_many_ = false;
    std::vector<Operand> operands_;
    std::vector<std::uint64_t> constants_;
    std::vector<Phase> phases_;  // registers are value numbers until `finish`
    std::vector<Made> values_;
    std::map<std::uint32_t, std::uint32_t> aliases_;  // values that are another's register under another dtype
    std::map<
        std::tuple<std::uint8_t, std::uint8_t, std::uint8_t, std::uint8_t, std::uint32_t, std::uint32_t, std::uint32_t>,
        Scalar>
        known_;
    struct Wide {
        std::uint32_t dst, a, b, c;
    };
    std::vector<std::vector<Wide>> wide_;  // the value numbers of each instruction
};

}  // namespace lyo
