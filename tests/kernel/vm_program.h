// Builds loop programs for the tests, runs them on the kernels, and runs them plainly for comparison.
#pragma once

#include "vm_reference.h"

namespace lyo::cpu::test {

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

/// Elements at an odd address, up to the end of the allocation.
class Storage {
  public:
    Storage(DType type, std::int64_t count)
        : type_(type), bytes_(static_cast<std::size_t>(count) * bytes_of(type) + 1, std::byte{0}) {}

    std::byte* data() { return bytes_.data() + 1; }
    std::int64_t size() const { return static_cast<std::int64_t>((bytes_.size() - 1) / bytes_of(type_)); }
    DType type() const { return type_; }
    Value at(std::int64_t i) { return load_element(data() + offset(i), type_); }
    void set(std::int64_t i, Value v) { store_element(data() + offset(i), type_, v); }
    bool operator==(const Storage& other) const { return bytes_ == other.bytes_; }

  private:
    std::ptrdiff_t offset(std::int64_t i) const { return i * static_cast<std::int64_t>(bytes_of(type_)); }
    DType type_;
    std::vector<std::byte> bytes_;
};

struct Program {
    std::vector<std::int64_t> outer, reduced;
    std::vector<Instr> instrs;
    std::vector<Phase> phases;
    std::vector<std::uint64_t> constants;
    std::vector<std::int64_t> symbols;
    std::vector<Operand> operands;
    std::int64_t fault = 0;

    void phase(bool is_outer) { phases.push_back({static_cast<std::uint32_t>(instrs.size()), 0, is_outer}); }

    void add(Instr in) {
        instrs.push_back(in);
        ++phases.back().count;
    }
    void op(ScalarOp o, RegClass cls, int dst, int a = 0, int b = 0, int c = 0) {
        add({o, cls, cls, DType::f32, u(dst), u(a), u(b), u(c)});
    }
    void load(int dst, int operand) { op(ScalarOp::load, class_of(operands[at(operand)].dtype), dst, 0, operand); }
    void store(int operand, int a) { op(ScalarOp::store, class_of(operands[at(operand)].dtype), 0, a, operand); }
    void cast(int dst, int a, RegClass from, DType to) {
        add({ScalarOp::cast, class_of(to), from, to, u(dst), u(a), 0, 0});
    }
    void constant(int dst, RegClass cls, double value) {
        constants.push_back(is_real(cls) ? std::bit_cast<std::uint64_t>(value)
                                         : static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
        op(ScalarOp::constant, cls, dst, 0, static_cast<int>(constants.size() - 1));
    }

    /// An operand with any strides; element 0 of the space is element `start` of the storage.
    int operand(Storage& s, std::int64_t start, const std::vector<std::int64_t>& outer_strides,
                const std::vector<std::int64_t>& reduced_strides) {
        Operand o{};
        o.base = s.data();
        o.start = start;
        o.lo = 0;
        o.hi = s.size();
        o.dtype = s.type();
        for (std::size_t i = 0; i < outer_strides.size(); ++i) o.outer[i] = outer_strides[i];
        for (std::size_t i = 0; i < reduced_strides.size(); ++i) o.reduced[i] = reduced_strides[i];
        operands.push_back(o);
        return static_cast<int>(operands.size() - 1);
    }
    /// Row-major over outer then reduced dims.
    int contiguous(Storage& s) {
        std::vector<std::int64_t> outer_strides(outer.size()), reduced_strides(reduced.size());
        std::int64_t stride = 1;
        for (std::size_t i = reduced.size(); i-- > 0; stride *= reduced[i]) reduced_strides[i] = stride;
        for (std::size_t i = outer.size(); i-- > 0; stride *= outer[i]) outer_strides[i] = stride;
        return operand(s, 0, outer_strides, reduced_strides);
    }
    /// Row-major over the outer dims; the same along the reduced ones.
    int per_row(Storage& s) {
        std::vector<std::int64_t> strides(outer.size());
        std::int64_t stride = 1;
        for (std::size_t i = outer.size(); i-- > 0; stride *= outer[i]) strides[i] = stride;
        return operand(s, 0, strides, std::vector<std::int64_t>(reduced.size(), 0));
    }

    std::int64_t outer_count() const { return product(outer); }
    std::int64_t reduced_count() const { return product(reduced); }
    static std::int64_t product(const std::vector<std::int64_t>& extents) {
        std::int64_t n = 1;
        for (auto e : extents) n *= e;
        return n;
    }

    Status run(const Kernels& kernels, std::int64_t begin, std::int64_t end) {
        int registers = scratch_registers + 1;
        for (const auto& in : instrs) registers = std::max(registers, scratch_registers + 1 + in.dst);
        auto bytes = static_cast<std::size_t>(registers) * register_bytes;
        std::unique_ptr<std::byte, decltype(&std::free)> memory(static_cast<std::byte*>(std::aligned_alloc(64, bytes)),
                                                                &std::free);
        std::memset(memory.get(), 0xd5, bytes);
        LoopCall call{};
        call.outer_rank = static_cast<int>(outer.size());
        call.reduced_rank = static_cast<int>(reduced.size());
        for (std::size_t i = 0; i < outer.size(); ++i) call.outer_extent[i] = outer[i];
        for (std::size_t i = 0; i < reduced.size(); ++i) call.reduced_extent[i] = reduced[i];
        call.instrs = instrs.data();
        call.phases = phases.data();
        call.phase_count = static_cast<std::uint32_t>(phases.size());
        call.constants = constants.data();
        call.symbols = symbols.data();
        call.operands = operands.data();
        call.registers = memory.get();
        Status status = kernels.run(call, begin, end);
        fault = call.fault;
        return status;
    }
    Status run(const Kernels& kernels) { return run(kernels, 0, outer_count()); }

    Status run_plainly(std::int64_t begin, std::int64_t end) {
        std::vector<Value> reg(256);
        std::vector<Sum> sums(256);
        for (std::int64_t o = begin; o < end; ++o) {
            auto outer_at = coordinates(o, outer);
            for (const auto& p : phases) {
                std::int64_t count = p.outer ? 1 : reduced_count();
                for (std::uint32_t i = p.first; i < p.first + p.count; ++i) {
                    if (is_reduction(instrs[i].op)) sums[instrs[i].dst] = Sum{};
                }
                for (std::int64_t r = 0; r < count; ++r) {
                    // An outer phase runs once even where a reduced dimension is empty and has no coordinates.
                    auto reduced_at = p.outer ? std::vector<std::int64_t>(reduced.size()) : coordinates(r, reduced);
                    for (std::uint32_t i = p.first; i < p.first + p.count; ++i) {
                        if (!step(instrs[i], reg, sums, outer_at, reduced_at, r)) return Status::index_out_of_range;
                    }
                }
                for (std::uint32_t i = p.first; i < p.first + p.count; ++i) {
                    if (is_reduction(instrs[i].op)) reg[instrs[i].dst] = sums[instrs[i].dst].result(instrs[i]);
                }
            }
        }
        return Status::ok;
    }

  private:
    static std::uint16_t u(int x) { return static_cast<std::uint16_t>(x); }
    static std::size_t at(int x) { return static_cast<std::size_t>(x); }

    static std::vector<std::int64_t> coordinates(std::int64_t linear, const std::vector<std::int64_t>& extents) {
        std::vector<std::int64_t> c(extents.size());
        for (std::size_t i = extents.size(); i-- > 0; linear /= extents[i]) c[i] = linear % extents[i];
        return c;
    }

    struct Sum {
        long double sum = 0, product = 1;
        std::uint64_t integer_sum = 0, integer_product = 1;
        Value best{};
        std::int64_t best_at = 0;
        bool any = false;

        void enter(const Instr& in, Value v, std::int64_t r) {
            sum += v.real;
            product *= v.real;
            integer_sum += static_cast<std::uint64_t>(v.integer);
            integer_product *= static_cast<std::uint64_t>(v.integer);
            bool largest = in.op == ScalarOp::reduce_max || in.op == ScalarOp::reduce_argmax;
            bool beats = is_real(in.cls) ? (std::isnan(v.real) && !std::isnan(best.real)) ||
                                               (largest ? v.real > best.real : v.real < best.real)
                                         : (largest ? v.integer > best.integer : v.integer < best.integer);
            if (!any || beats) best = v, best_at = r;
            any = true;
        }
        Value result(const Instr& in) const {
            switch (in.op) {
                case ScalarOp::reduce_sum:
                    return is_real(in.cls) ? as_real(static_cast<double>(sum), in.cls)
                                           : as_integer(static_cast<std::int64_t>(integer_sum), in.cls);
                case ScalarOp::reduce_prod:
                    return is_real(in.cls) ? as_real(static_cast<double>(product), in.cls)
                                           : as_integer(static_cast<std::int64_t>(integer_product), in.cls);
                case ScalarOp::reduce_argmax:
                case ScalarOp::reduce_argmin:
                    return {.integer = best_at};
                default:
                    break;
            }
            if (any) return best;
            bool largest = in.op == ScalarOp::reduce_max;
            std::int64_t low = in.cls == RegClass::i32 ? INT32_MIN : INT64_MIN;
            std::int64_t high = in.cls == RegClass::i32 ? INT32_MAX : INT64_MAX;
            return {.real = largest ? -INFINITY : INFINITY, .integer = largest ? low : high};
        }
    };

    bool step(const Instr& in, std::vector<Value>& reg, std::vector<Sum>& sums,
              const std::vector<std::int64_t>& outer_at, const std::vector<std::int64_t>& reduced_at, std::int64_t r) {
        auto offset = [&] {
            const Operand& o = operands[in.b];
            std::int64_t sum = o.start;
            for (std::size_t i = 0; i < outer_at.size(); ++i) sum += outer_at[i] * o.outer[i];
            for (std::size_t i = 0; i < reduced_at.size(); ++i) sum += reduced_at[i] * o.reduced[i];
            return sum;
        };
        auto address = [&](std::int64_t element) {
            const Operand& o = operands[in.b];
            return o.base + element * static_cast<std::int64_t>(bytes_of(o.dtype));
        };
        Value& dst = reg[in.dst];
        switch (in.op) {
            case ScalarOp::load:
                dst = load_element(address(offset()), operands[in.b].dtype);
                return true;
            case ScalarOp::store:
                store_element(address(offset()), operands[in.b].dtype, reg[in.a]);
                return true;
            case ScalarOp::iota:
                dst = is_real(in.cls) ? as_real(static_cast<double>(offset()), in.cls) : as_integer(offset(), in.cls);
                return true;
            case ScalarOp::constant:
                dst = is_real(in.cls) ? as_real(std::bit_cast<double>(constants[in.b]), in.cls)
                                      : as_integer(static_cast<std::int64_t>(constants[in.b]), in.cls);
                return true;
            case ScalarOp::symbol:
                dst = {.integer = symbols[in.b]};
                return true;
            case ScalarOp::load_at: {
                std::int64_t element = offset() + reg[in.a].integer;
                const Operand& o = operands[in.b];
                if (element < o.lo || element >= o.hi) return fault = element, false;
                dst = load_element(address(element), o.dtype);
                return true;
            }
            case ScalarOp::check_index:
                if (reg[in.a].integer < 0 || reg[in.a].integer >= symbols[in.b])
                    return fault = reg[in.a].integer, false;
                dst = reg[in.a];
                return true;
            case ScalarOp::cast:
                dst = cast_value(reg[in.a], in.from, in.to);
                return true;
            case ScalarOp::select:
                dst = reg[in.a].integer != 0 ? reg[in.b] : reg[in.c];
                return true;
            default:
                break;
        }
        if (is_reduction(in.op)) {
            sums[in.dst].enter(in, reg[in.a], r);
        } else {
            dst = evaluate(in.op, in.cls, reg[in.a], reg[in.b]);
        }
        return true;
    }
};

}  // namespace lyo::cpu::test
