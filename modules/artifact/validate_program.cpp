// A plan against its function: after this, running it can index no table out of bounds and reads no register that was
// not written, nor a slot that nothing was stored to. Whether views stay inside their memory depends on sizes; whoever
// prepares a call checks that.
module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :state;

namespace lyo {
namespace {

constexpr ErrorCode code = ErrorCode::bad_value;

struct Context {
    const Program& program;
    const FunctionSpec& function;
    const FunctionTable& table;
    /// Slots that some instruction walked so far stores to: others hold nothing that may be read.
    std::vector<bool>& stored;
};

Result<> validate_read(const Context& c, const Operand& o) {
    if (o.kind == OperandKind::tensor && o.space == Space::slot && !c.stored[o.index])
        return fail(code, "", "slot ", o.index, " is read before any step stores to it");
    return {};
}

Result<> validate_operand(const Context& c, const Operand& o, std::size_t rank) {
    const std::size_t exprs = c.program.exprs.size();
    if (o.kind == OperandKind::accumulator) {
        if (o.space != Space::input || o.index != 0 || o.offset != 0 || !o.strides.empty())
            return fail(code, "", "an accumulator has no place in memory");
        return {};
    }
    if (o.strides.size() != rank) return mismatch(code, "strides", "count", rank, o.strides.size());
    for (const std::uint32_t s : o.strides)
        if (s >= exprs) return mismatch(code, "strides", "expression", cat("below ", exprs), s);
    if (o.offset >= exprs) return mismatch(code, "offset", "expression", cat("below ", exprs), o.offset);
    if (o.kind == OperandKind::iota) {
        if (o.space != Space::input || o.index != 0 || o.dtype != DType::i64)
            return fail(code, "", "an iota has no place in memory and dtype i64");
        return {};
    }
    const auto check_index = [&](std::size_t count) -> Result<> {
        if (o.index >= count)
            return mismatch(code, "index", cat("below ", count), space_names[static_cast<std::size_t>(o.space)],
                            o.index);
        return {};
    };
    const auto check_dtype = [&](DType dtype) -> Result<> {
        if (o.dtype != dtype) return mismatch(code, "dtype", "dtype", to_string(dtype), to_string(o.dtype));
        return {};
    };
    switch (o.space) {
        case Space::input:
            if (auto ok = check_index(c.function.inputs.size()); !ok) return ok;
            return check_dtype(c.function.inputs[o.index].dtype);
        case Space::output:
            if (auto ok = check_index(c.function.outputs.size()); !ok) return ok;
            return check_dtype(c.function.outputs[o.index].dtype);
        case Space::constant:
            if (auto ok = check_index(c.table.constants.size()); !ok) return ok;
            return check_dtype(c.table.constants[o.index].dtype);
        case Space::slot:
            return check_index(c.program.slots.size());
    }
    return {};
}

/// What is in a register while the instructions are walked: which class, and from when it may be read.
struct Register {
    RegClass cls = RegClass::f32;
    bool readable = false;
    bool after_phase = false;  // a reduction's result: readable once its phase is over
};

class Registers {
  public:
    Result<> read(std::uint16_t r, RegClass cls) const {
        if (r >= format::max_registers) return mismatch(code, "register", cat("below ", format::max_registers), r);
        if (!registers_[r].readable) return fail(code, "", "register ", r, " is read before it is written");
        if (registers_[r].cls != cls)
            return mismatch(code, "class of register " + std::to_string(r), to_string(cls),
                            to_string(registers_[r].cls));
        return {};
    }
    Result<> write(std::uint16_t r, RegClass cls, bool reduction) {
        if (r >= format::max_registers) return mismatch(code, "register", cat("below ", format::max_registers), r);
        if (registers_[r].after_phase) return fail(code, "", "register ", r, " holds a reduction of this phase");
        registers_[r] = {cls, !reduction, reduction};
        return {};
    }
    /// Values made element by element in a full phase do not outlive it where there are reduced dimensions; reductions'
    /// results begin to.
    void end_phase(bool keep) {
        for (Register& r : registers_) {
            if (!keep && !r.after_phase && r.readable && !r_outer(r)) r.readable = false;
            if (r.after_phase) {
                r.readable = true;
                r.after_phase = false;
                outer_[static_cast<std::size_t>(&r - registers_.data())] = true;
            }
        }
    }
    void mark(std::uint16_t r, bool outer) { outer_[r] = outer; }

  private:
    template <class R>
    static Result<> mismatch(ErrorCode c, std::string_view what, const R& expected, const auto& got) {
        return lyo::mismatch(c, "", what, expected, got);
    }
    bool r_outer(const Register& r) const { return outer_[static_cast<std::size_t>(&r - registers_.data())]; }
    std::array<Register, format::max_registers> registers_{};
    std::array<bool, format::max_registers> outer_{};
};

Result<> unused_are_zero(const Instr& i, bool from, bool to, bool dst, bool a, bool b, bool c) {
    if ((!from && i.from != RegClass::f32) || (!to && i.to != DType::boolean) || (!dst && i.dst != 0) ||
        (!a && i.a != 0) || (!b && i.b != 0) || (!c && i.c != 0))
        return fail(code, "", to_string(i.op), ": a field that it does not use is not zero");
    return {};
}

Result<> validate_instr(const Context& c, const Loop& loop, const Instr& i, const Phase& phase, bool reduces,
                        Registers& registers) {
    const std::size_t exprs = c.program.exprs.size();
    const OpKind kind = kind_of(i.op);
    const bool real = i.cls == RegClass::f32 || i.cls == RegClass::f64;
    const auto operand = [&](std::uint16_t n) -> Result<const Operand*> {
        if (n >= loop.operands.size()) return mismatch(code, "", "operand", cat("below ", loop.operands.size()), n);
        return &loop.operands[n];
    };
    const auto write = [&](RegClass cls) -> Result<> {
        if (auto ok = registers.write(i.dst, cls, kind == OpKind::reduce); !ok) return ok;
        registers.mark(i.dst, phase.outer);
        return {};
    };
    using Source = std::pair<std::uint16_t, RegClass>;
    const auto reads = [&](std::initializer_list<Source> sources) -> Result<> {
        for (const Source& source : sources)
            if (auto ok = registers.read(source.first, source.second); !ok) return ok;
        return {};
    };

    switch (i.op) {
        case ScalarOp::load:
        case ScalarOp::store: {
            const bool load = i.op == ScalarOp::load;
            if (auto ok = unused_are_zero(i, false, false, load, !load, true, false); !ok) return ok;
            const auto o = operand(i.b);
            if (!o) return std::unexpected(o.error());
            if ((*o)->kind == OperandKind::iota) return fail(code, "", to_string(i.op), " of an iota");
            if (class_of((*o)->dtype) != i.cls)
                return mismatch(code, "", "class", to_string(class_of((*o)->dtype)), to_string(i.cls));
            if (load) {
                if (auto ok = validate_read(c, **o); !ok) return ok;
                return write(i.cls);
            }
            if ((*o)->kind != OperandKind::tensor || (*o)->space == Space::input || (*o)->space == Space::constant)
                return fail(code, "", "store to memory that a plan must not change");
            if (auto ok = reads({Source{i.a, i.cls}}); !ok) return ok;
            if ((*o)->space == Space::slot) c.stored[(*o)->index] = true;
            return {};
        }
        case ScalarOp::iota: {
            if (auto ok = unused_are_zero(i, false, false, true, false, true, false); !ok) return ok;
            const auto o = operand(i.b);
            if (!o) return std::unexpected(o.error());
            if ((*o)->kind != OperandKind::iota) return fail(code, "", "iota of an operand that is none");
            return write(i.cls);
        }
        case ScalarOp::constant:
            if (auto ok = unused_are_zero(i, false, false, true, false, true, false); !ok) return ok;
            if (i.b >= loop.constants.size())
                return mismatch(code, "", "constant", cat("below ", loop.constants.size()), i.b);
            return write(i.cls);
        case ScalarOp::symbol:
            if (auto ok = unused_are_zero(i, false, false, true, false, true, false); !ok) return ok;
            if (i.b >= exprs) return mismatch(code, "", "expression", cat("below ", exprs), i.b);
            if (i.cls != RegClass::i64) return mismatch(code, "", "class", "i64", to_string(i.cls));
            return write(i.cls);
        case ScalarOp::load_at: {
            if (auto ok = unused_are_zero(i, false, false, true, true, true, false); !ok) return ok;
            const auto o = operand(i.b);
            if (!o) return std::unexpected(o.error());
            if ((*o)->kind != OperandKind::tensor || class_of((*o)->dtype) != i.cls)
                return fail(code, "", "load_at of an operand of another kind or class");
            if (auto ok = validate_read(c, **o); !ok) return ok;
            if (auto ok = reads({Source{i.a, RegClass::i64}}); !ok) return ok;
            return write(i.cls);
        }
        case ScalarOp::check_index:
            if (auto ok = unused_are_zero(i, false, false, true, true, true, false); !ok) return ok;
            if (i.b >= exprs) return mismatch(code, "", "expression", cat("below ", exprs), i.b);
            if (i.cls != RegClass::i64) return mismatch(code, "", "class", "i64", to_string(i.cls));
            if (auto ok = reads({Source{i.a, RegClass::i64}}); !ok) return ok;
            return write(i.cls);
        case ScalarOp::cast:
            if (auto ok = unused_are_zero(i, true, true, true, true, false, false); !ok) return ok;
            if (class_of(i.to) != i.cls)
                return mismatch(code, "", "class", to_string(class_of(i.to)), to_string(i.cls));
            if (auto ok = reads({Source{i.a, i.from}}); !ok) return ok;
            return write(i.cls);
        case ScalarOp::select:
            if (auto ok = unused_are_zero(i, false, false, true, true, true, true); !ok) return ok;
            if (auto ok = reads({Source{i.a, RegClass::i32}, Source{i.b, i.cls}, Source{i.c, i.cls}}); !ok) return ok;
            return write(i.cls);
        default:
            break;
    }
    if ((kind == OpKind::real || kind == OpKind::test) && !real)
        return fail(code, "", to_string(i.op), " of class ", to_string(i.cls));
    if (kind == OpKind::integer && real) return fail(code, "", to_string(i.op), " of class ", to_string(i.cls));
    const bool binary = arity_of(i.op) == 2;
    if (auto ok = unused_are_zero(i, false, false, true, true, binary, false); !ok) return ok;
    if (auto ok = reads({Source{i.a, i.cls}}); !ok) return ok;
    if (binary)
        if (auto ok = reads({Source{i.b, i.cls}}); !ok) return ok;
    if (kind == OpKind::reduce) {
        if (!reduces || phase.outer) return fail(code, "", to_string(i.op), " where nothing is reduced");
        const bool arg = i.op == ScalarOp::reduce_argmax || i.op == ScalarOp::reduce_argmin;
        return write(arg ? RegClass::i64 : i.cls);
    }
    return write(kind == OpKind::compare || kind == OpKind::test ? RegClass::i32 : i.cls);
}

Result<> validate_loop(const Context& c, const Loop& loop, bool epilogue) {
    const std::size_t rank = loop.extents.size();
    if (rank > max_rank || loop.outer_rank > rank)
        return mismatch(code, "extents", "rank", cat("at most ", max_rank),
                        std::max<std::size_t>(rank, loop.outer_rank));
    for (const std::uint32_t e : loop.extents)
        if (e >= c.program.exprs.size()) return fail(code, "extents", "an expression beyond the table");
    if (loop.operands.size() > format::max_operands)
        return mismatch(code, "operands", "count", cat("at most ", format::max_operands), loop.operands.size());
    for (std::size_t i = 0; i < loop.operands.size(); ++i) {
        const bool accumulator = loop.operands[i].kind == OperandKind::accumulator;
        if (accumulator != (epilogue && i == 0))
            return fail(code, cat("operands[", i, "]"), "the accumulator is operand 0 of an epilogue, and only there");
        if (auto ok = validate_operand(c, loop.operands[i], rank); !ok)
            return std::unexpected(std::move(ok.error()).in(cat("operands[", i, "]")));
    }
    if (epilogue && loop.operands.empty()) return fail(code, "operands", "an epilogue has an accumulator");
    const bool reduces = loop.outer_rank < rank;
    if (epilogue && reduces) return fail(code, "outer_rank", "an epilogue reduces nothing");
    Registers registers;
    for (std::size_t p = 0; p < loop.phases.size(); ++p) {
        const Phase& phase = loop.phases[p];
        if (phase.outer && !reduces) return fail(code, cat("phases[", p, "]"), "outer, where nothing is reduced");
        for (std::size_t i = 0; i < phase.instrs.size(); ++i)
            if (auto ok = validate_instr(c, loop, phase.instrs[i], phase, reduces, registers); !ok)
                return std::unexpected(std::move(ok.error()).in(cat("phases[", p, "].instrs[", i, "]")));
        registers.end_phase(phase.outer);
    }
    return {};
}

Result<> validate_gemm(const Context& c, const Gemm& gemm) {
    const std::size_t rank = gemm.batch.size() + 2;
    if (rank > max_rank) return mismatch(code, "batch", "rank", cat("at most ", max_rank - 2), gemm.batch.size());
    for (const std::uint32_t e : gemm.batch)
        if (e >= c.program.exprs.size()) return fail(code, "batch", "an expression beyond the table");
    for (const std::uint32_t e : {gemm.m, gemm.n, gemm.k})
        if (e >= c.program.exprs.size()) return fail(code, "m, n, k", "an expression beyond the table");
    for (const Operand* o : {&gemm.a, &gemm.b}) {
        const std::string_view name = o == &gemm.a ? "a" : "b";
        if (o->kind != OperandKind::tensor) return fail(code, name, "a factor is a tensor");
        if (auto ok = validate_operand(c, *o, rank); !ok) return std::unexpected(std::move(ok.error()).in(name));
        if (auto ok = validate_read(c, *o); !ok) return std::unexpected(std::move(ok.error()).in(name));
    }
    if (gemm.a.dtype != gemm.b.dtype)
        return mismatch(code, "b", "dtype", to_string(gemm.a.dtype), to_string(gemm.b.dtype));
    const Loop& epilogue = gemm.epilogue;
    std::vector<std::uint32_t> extents = gemm.batch;
    extents.push_back(gemm.m);
    extents.push_back(gemm.n);
    if (epilogue.extents != extents || epilogue.outer_rank != rank)
        return fail(code, "epilogue.extents", "they are not batch, m, n");
    if (auto ok = validate_loop(c, epilogue, true); !ok) return std::unexpected(std::move(ok.error()).in("epilogue"));
    const RegClass sums = class_of(gemm.a.dtype) == RegClass::i32 ? RegClass::i64 : class_of(gemm.a.dtype);
    if (class_of(epilogue.operands[0].dtype) != sums)
        return mismatch(code, "epilogue.operands[0]", "class", to_string(sums),
                        to_string(class_of(epilogue.operands[0].dtype)));
    return {};
}

}  // namespace

Result<> validate_program(const Program& program, const FunctionSpec& function, const FunctionTable& table) {
    if (auto ok = validate_exprs(program.exprs, function.symbols.size()); !ok) return ok;
    for (std::size_t i = 0; i < program.slots.size(); ++i)
        if (program.slots[i] >= program.exprs.size())
            return mismatch(code, cat("slots[", i, "]"), "expression", cat("below ", program.exprs.size()),
                            program.slots[i]);
    std::vector<bool> stored(program.slots.size());
    const Context context{program, function, table, stored};
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const Step& step = program.steps[i];
        const auto ok = std::holds_alternative<Loop>(step) ? validate_loop(context, *std::get_if<Loop>(&step), false)
                                                           : validate_gemm(context, *std::get_if<Gemm>(&step));
        if (!ok) {
            Error error = ok.error();
            return std::unexpected(std::move(error).in(cat("steps[", i, "]")));
        }
    }
    return {};
}

}  // namespace lyo
