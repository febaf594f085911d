module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;
import :emit;

namespace lyo {
namespace {

/// Every value of `from` is a value of `to`, both held by the same class of register.
bool fits_unchanged(DType from, DType to) noexcept {
    if (class_of(from) != class_of(to)) return false;
    if (from == to || is_float(from) || from == DType::boolean || to == DType::i32)
        return to != DType::boolean || from == to;
    return to == DType::i16 && (from == DType::u8 || from == DType::i8);
}

/// Which fields of an instruction are registers that it reads.
struct Reads {
    bool a, b, c;
};
Reads reads_of(const Instr& i) noexcept {
    switch (i.op) {
        case ScalarOp::store:
        case ScalarOp::load_at:
        case ScalarOp::check_index:
        case ScalarOp::cast:
            return {true, false, false};
        case ScalarOp::select:
            return {true, true, true};
        default:
            return {arity_of(i.op) >= 1, arity_of(i.op) == 2, false};
    }
}

}  // namespace

void LoopWriter::begin_phase(bool outer) {
    phases_.push_back({outer, {}});
    wide_.emplace_back();
    known_.clear();
}

std::uint16_t LoopWriter::operand(const Operand& wanted) {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
        const Operand& o = operands_[i];
        if (o.kind == wanted.kind && o.dtype == wanted.dtype && o.space == wanted.space && o.index == wanted.index &&
            o.offset == wanted.offset && o.strides == wanted.strides)
            return static_cast<std::uint16_t>(i);
    }
    operands_.push_back(wanted);
    return static_cast<std::uint16_t>(operands_.size() - 1);
}

/// `instr.a`, `b`, `c` are indices into tables; value numbers, which need more bits, go through `wide_`.
Scalar LoopWriter::write(Instr instr, DType dtype, bool pure) {
    Wide& wide = wide_.back().back();
    const auto key = std::tuple(static_cast<std::uint8_t>(instr.op), static_cast<std::uint8_t>(instr.cls),
                                static_cast<std::uint8_t>(instr.from), static_cast<std::uint8_t>(instr.to),
                                reads_of(instr).a ? wide.a : instr.a, reads_of(instr).b ? wide.b : instr.b,
                                reads_of(instr).c ? wide.c : instr.c);
    if (pure) {
        if (const auto at = known_.find(key); at != known_.end()) {
            // The same dtype is part of what was asked: f16 and f32 share a class and an instruction.
            if (values_[at->second.id].dtype == dtype) {
                wide_.back().pop_back();
                return at->second;
            }
        }
    }
    const Scalar out{static_cast<std::uint32_t>(values_.size())};
    values_.push_back({dtype, phases_.size() - 1});
    wide.dst = out.id;
    phases_.back().instrs.push_back(instr);
    if (pure) known_[key] = out;
    return out;
}

Scalar LoopWriter::load(std::uint16_t operand, DType dtype) {
    wide_.back().push_back({});
    Instr i{ScalarOp::load, class_of(dtype)};
    i.b = operand;
    return write(i, dtype);
}

Scalar LoopWriter::iota(std::uint16_t operand) {
    wide_.back().push_back({});
    Instr i{ScalarOp::iota, RegClass::i64};
    i.b = operand;
    return write(i, DType::i64);
}

Scalar LoopWriter::load_at(std::uint16_t operand, Scalar index, DType dtype) {
    wide_.back().push_back({0, index.id, 0, 0});
    Instr i{ScalarOp::load_at, class_of(dtype)};
    i.b = operand;
    return write(i, dtype);
}

Scalar LoopWriter::check_index(Scalar index, const Sym& size) {
    const std::uint32_t expr = exprs_(size);
    Instr i{ScalarOp::check_index, RegClass::i64};
    too_many_ = too_many_ || expr > std::numeric_limits<std::uint16_t>::max();
    i.b = static_cast<std::uint16_t>(expr);
    wide_.back().push_back({0, index.id, 0, 0});
    return write(i, DType::i64);
}

void LoopWriter::store(std::uint16_t operand, Scalar value) {
    wide_.back().push_back({0, value.id, 0, 0});
    Instr i{ScalarOp::store, class_of(operands_[operand].dtype)};
    i.b = operand;
    phases_.back().instrs.push_back(i);
}

Scalar LoopWriter::reduce(ScalarOp op, Scalar a, DType result) {
    wide_.back().push_back({0, a.id, 0, 0});
    return write(Instr{op, class_of(dtype(a))}, result);
}

Scalar LoopWriter::wrapped(Scalar a, DType dtype) {
    wide_.back().push_back({0, a.id, 0, 0});
    return write(Instr{ScalarOp::cast, class_of(dtype), class_of(dtype), dtype}, dtype);
}

Scalar LoopWriter::op(ScalarOp op, Scalar a) {
    const DType type = dtype(a);
    wide_.back().push_back({0, a.id, 0, 0});
    if (kind_of(op) == OpKind::test) return write(Instr{op, class_of(type)}, DType::boolean);
    const Scalar out = write(Instr{op, class_of(type)}, type);
    const bool narrow = type == DType::boolean || type == DType::u8 || type == DType::i8 || type == DType::i16;
    return narrow && op != ScalarOp::sign ? wrapped(out, type) : out;
}

Scalar LoopWriter::op(ScalarOp op, Scalar a, Scalar b) {
    const DType type = dtype(a);
    wide_.back().push_back({0, a.id, b.id, 0});
    if (kind_of(op) == OpKind::compare) return write(Instr{op, class_of(type)}, DType::boolean);
    const Scalar out = write(Instr{op, class_of(type)}, type);
    const bool narrow = type == DType::boolean || type == DType::u8 || type == DType::i8 || type == DType::i16;
    const bool within = op == ScalarOp::maximum || op == ScalarOp::minimum || op == ScalarOp::fmax ||
                        op == ScalarOp::fmin || op == ScalarOp::bit_and || op == ScalarOp::bit_or ||
                        op == ScalarOp::bit_xor;
    return narrow && !within ? wrapped(out, type) : out;
}

Scalar LoopWriter::select(Scalar condition, Scalar a, Scalar b) {
    wide_.back().push_back({0, condition.id, a.id, b.id});
    return write(Instr{ScalarOp::select, class_of(dtype(a))}, dtype(a));
}

std::uint16_t LoopWriter::constant_bits(std::uint64_t bits) {
    const auto at = std::find(constants_.begin(), constants_.end(), bits);
    if (at != constants_.end()) return static_cast<std::uint16_t>(at - constants_.begin());
    constants_.push_back(bits);
    return static_cast<std::uint16_t>(constants_.size() - 1);
}

Scalar LoopWriter::constant(double value, DType dtype) {
    if (!is_float(dtype))
        return constant(dtype == DType::boolean ? std::int64_t{value != 0} : double_to_int(value), dtype);
    Instr i{ScalarOp::constant, class_of(dtype)};
    i.b = constant_bits(std::bit_cast<std::uint64_t>(value));
    wide_.back().push_back({});
    return write(i, dtype);
}

Scalar LoopWriter::constant(std::int64_t value, DType dtype) {
    if (is_float(dtype)) return constant(static_cast<double>(value), dtype);
    std::int64_t stored = 0;
    store_int(&stored, dtype, value);
    Instr i{ScalarOp::constant, class_of(dtype)};
    i.b = constant_bits(static_cast<std::uint64_t>(load_int(&stored, dtype)));
    wide_.back().push_back({});
    return write(i, dtype);
}

Scalar LoopWriter::size(const Sym& value) {
    if (value.is_constant()) return constant(value.value(), DType::i64);
    const std::uint32_t expr = exprs_(value);
    Instr i{ScalarOp::symbol, RegClass::i64};
    too_many_ = too_many_ || expr > std::numeric_limits<std::uint16_t>::max();
    i.b = static_cast<std::uint16_t>(expr);
    wide_.back().push_back({});
    return write(i, DType::i64);
}

Scalar LoopWriter::cast(Scalar a, DType to) {
    const DType from = dtype(a);
    if (from == to) return a;
    if (fits_unchanged(from, to)) {
        // The register's content is the same; only the name of its type changes.
        const Scalar out{static_cast<std::uint32_t>(values_.size())};
        values_.push_back({to, values_[a.id].phase});
        aliases_[out.id] = a.id;
        return out;
    }
    wide_.back().push_back({0, a.id, 0, 0});
    // Half types are not rounded to on the way: their registers hold floats.
    const DType stored = to == DType::f16 || to == DType::bf16 ? DType::f32 : to;
    return write(Instr{ScalarOp::cast, class_of(to), class_of(from), stored}, to);
}

Scalar LoopWriter::round_to(Scalar a, DType to) {
    if (to != DType::f16 && to != DType::bf16) return cast(a, to);
    if (dtype(a) == to) return a;
    wide_.back().push_back({0, a.id, 0, 0});
    return write(Instr{ScalarOp::cast, RegClass::f32, class_of(dtype(a)), to}, to);
}

Result<> LoopWriter::finish(Loop& loop) {
    const auto resolved = [&](std::uint32_t value) {
        for (auto at = aliases_.find(value); at != aliases_.end(); at = aliases_.find(value)) value = at->second;
        return value;
    };
    // A value lives from where it is made to its last reader; one that a later phase reads, to the end of that phase,
    // since a phase runs again and again. A reduction holds its register from the beginning of its phase.
    struct Life {
        std::size_t from = 0, to = 0;
        bool made = false;
    };
    std::vector<Life> lives(values_.size());
    std::size_t position = 0;
    std::vector<std::size_t> phase_end;
    for (const Phase& phase : phases_)
        phase_end.push_back((phase_end.empty() ? 0 : phase_end.back()) + phase.instrs.size());
    for (std::size_t p = 0; p < phases_.size(); ++p) {
        const std::size_t phase_begin = p == 0 ? 0 : phase_end[p - 1];
        for (std::size_t i = 0; i < phases_[p].instrs.size(); ++i, ++position) {
            const Instr& instr = phases_[p].instrs[i];
            Wide& wide = wide_[p][i];
            const auto read = [&](std::uint32_t& value) {
                value = resolved(value);
                const bool elsewhere = values_[value].phase != p;
                lives[value].to = std::max(lives[value].to, elsewhere ? phase_end[p] : position);
            };
            const Reads reads = reads_of(instr);
            if (reads.a) read(wide.a);
            if (reads.b) read(wide.b);
            if (reads.c) read(wide.c);
            if (instr.op == ScalarOp::store) continue;
            const bool reduction = kind_of(instr.op) == OpKind::reduce;
            lives[wide.dst] = {reduction ? phase_begin : position, reduction ? phase_end[p] : position, true};
        }
    }
    std::vector<std::uint32_t> by_start;
    for (std::uint32_t v = 0; v < lives.size(); ++v)
        if (lives[v].made) by_start.push_back(v);
    std::stable_sort(by_start.begin(), by_start.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return lives[a].from < lives[b].from; });
    std::vector<std::size_t> busy_until;
    std::vector<std::uint16_t> registers(values_.size());
    for (const std::uint32_t v : by_start) {
        std::size_t r = 0;
        while (r < busy_until.size() && busy_until[r] >= lives[v].from) ++r;
        if (r == busy_until.size()) busy_until.push_back(0);
        // A value that nobody reads still takes its register for its own instruction.
        busy_until[r] = std::max(lives[v].to, lives[v].from);
        registers[v] = static_cast<std::uint16_t>(r);
    }
    if (too_many_) return fail(ErrorCode::limit_exceeded, "lower", "a kernel names too many sizes");
    if (busy_until.size() > format::max_registers || operands_.size() > format::max_operands)
        return fail(ErrorCode::limit_exceeded, "lower", "a kernel needs ", busy_until.size(), " registers and ",
                    operands_.size(), " operands");
    for (std::size_t p = 0; p < phases_.size(); ++p)
        for (std::size_t i = 0; i < phases_[p].instrs.size(); ++i) {
            Instr& instr = phases_[p].instrs[i];
            const Reads reads = reads_of(instr);
            if (reads.a) instr.a = registers[wide_[p][i].a];
            if (reads.b) instr.b = registers[wide_[p][i].b];
            if (reads.c) instr.c = registers[wide_[p][i].c];
            if (instr.op != ScalarOp::store) instr.dst = registers[wide_[p][i].dst];
        }
    loop.operands = std::move(operands_);
    loop.constants = std::move(constants_);
    loop.phases = std::move(phases_);
    return {};
}

}  // namespace lyo
