module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {

namespace {

constexpr std::size_t max_outputs = 3, max_loop_registers = 48;

/// A size that the program works with: its entry in the function's table and in the plan's, its value if constant.
struct Dim {
    std::uint32_t in_function = 0, in_plan = 0;
    std::optional<std::uint64_t> value;
};

/// Row-major memory over some of the dims.
struct Memory {
    Space space = Space::input;
    std::uint32_t index = 0;
    DType dtype = DType::f32;
    std::vector<std::size_t> dims;
};

struct Value {
    std::uint16_t reg = 0;
    RegClass cls = RegClass::f32;
    bool outer = false;  // lives on after a full phase
};

/// An instruction without a cast's fields.
Instr plain(ScalarOp op, RegClass cls, std::uint16_t dst, std::uint16_t a, std::uint16_t b, std::uint16_t c) {
    return {op, cls, RegClass::f32, DType::boolean, dst, a, b, c};
}

class Generator {
  public:
    explicit Generator(Random& random) : r_(random) {}

    Parts program(std::size_t steps) {
        make_dims();
        for (std::size_t i = 0; i < steps; ++i) r_.one_in(4) ? gemm() : loop();
        if (function_.outputs.empty()) store_something();
        function_.name = "main";
        function_.exprs = of_function_.entries;
        program_.exprs = of_plan_.entries;
        if (r_.one_in(4)) add_guard();
        parts_.manifest = {"lyo.fuzz", format::abi_version, {"cpu"}, {}};
        parts_.functions.functions.push_back(std::move(function_));
        parts_.images.push_back({{std::move(program_)}});
        if (r_.one_in(4)) parts_.debug = Debug{"graph of numbers\n"};
        return std::move(parts_);
    }

  private:
    // --- sizes and memory ---

    void make_dims() {
        static constexpr std::int64_t sizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 513};
        const std::size_t count = 2 + r_.below(3);
        for (std::size_t i = 0; i < count; ++i) {
            Dim d;
            if (r_.one_in(3)) {
                const auto index = static_cast<std::uint32_t>(function_.symbols.size());
                function_.symbols.push_back({cat("s", index), r_.between(0, 2), r_.between(2, 20)});
                d.in_function = of_function_.symbol(index);
                d.in_plan = of_plan_.symbol(index);
                dims_.push_back(d);
                // An input whose size is the symbol itself: what determines it.
                new_input({dims_.size() - 1});
                if (r_.one_in(3)) {
                    for (auto [table, at] : {std::pair(&of_function_, &d.in_function), {&of_plan_, &d.in_plan}})
                        *at =
                            table->of(ExprOp::add, table->of(ExprOp::mul, *at, table->constant(2)), table->constant(1));
                    dims_.push_back(d);
                }
                continue;
            }
            const std::int64_t size = r_.pick(sizes);
            d.value = static_cast<std::uint64_t>(size);
            d.in_function = of_function_.constant(size);
            d.in_plan = of_plan_.constant(size);
            dims_.push_back(d);
        }
    }

    DType any_dtype() { return static_cast<DType>(r_.below(dtype_count)); }

    std::vector<std::uint32_t> shape(const std::vector<std::size_t>& dims) const {
        std::vector<std::uint32_t> out;
        for (const std::size_t d : dims) out.push_back(dims_[d].in_function);
        return out;
    }
    const Memory& keep(Memory memory) {
        memories_.push_back(std::move(memory));
        return memories_.back();
    }
    const Memory& new_input(std::vector<std::size_t> dims, std::optional<DType> dtype = {}) {
        const auto index = static_cast<std::uint32_t>(function_.inputs.size());
        const DType type = dtype.value_or(any_dtype());
        function_.inputs.push_back({cat("x", index), type, shape(dims)});
        return keep({Space::input, index, type, std::move(dims)});
    }
    const Memory& new_output(std::vector<std::size_t> dims, DType dtype) {
        const auto index = static_cast<std::uint32_t>(function_.outputs.size());
        function_.outputs.push_back({cat("y", index), dtype, shape(dims)});
        return keep({Space::output, index, dtype, std::move(dims)});
    }
    const Memory& new_slot(std::vector<std::size_t> dims, DType dtype) {
        std::uint32_t size = of_plan_.constant(static_cast<std::int64_t>(size_of(dtype)));
        for (const std::size_t d : dims) size = of_plan_.of(ExprOp::mul, size, dims_[d].in_plan);
        program_.slots.push_back(size);
        return keep({Space::slot, static_cast<std::uint32_t>(program_.slots.size() - 1), dtype, std::move(dims)});
    }
    const Memory* new_constant(std::vector<std::size_t> dims, std::optional<DType> dtype = {}) {
        Constant c{cat("c", parts_.constants.size()), dtype.value_or(any_dtype()), {}, 0};
        for (const std::size_t d : dims) {
            if (!dims_[d].value) return nullptr;
            c.shape.push_back(*dims_[d].value);
        }
        const auto size = byte_size(c);
        if (!size || *size > 2048) return nullptr;
        Buffer data(*size);
        for (std::byte& b : data) b = static_cast<std::byte>(r_.next());
        const auto index = static_cast<std::uint32_t>(parts_.constants.size());
        const DType type = c.dtype;
        parts_.functions.constants.push_back(std::move(c));
        parts_.constants.push_back(std::move(data));
        return &keep({Space::constant, index, type, std::move(dims)});
    }

    /// Some of the loop's dims, in any order.
    std::vector<std::size_t> some_of(std::vector<std::size_t> dims, bool all) {
        for (std::size_t i = dims.size(); i > 1; --i)
            if (r_.one_in(3)) std::swap(dims[i - 1], dims[r_.below(i)]);
        if (!all)
            while (!dims.empty() && r_.one_in(4)) dims.pop_back();
        return dims;
    }
    const Memory& source(const std::vector<std::size_t>& space, std::optional<DType> dtype = {}) {
        for (int attempt = 0; attempt < 3 && !memories_.empty(); ++attempt) {
            const Memory& m = r_.pick(memories_);
            const bool fits = std::all_of(m.dims.begin(), m.dims.end(), [&](std::size_t d) {
                return std::find(space.begin(), space.end(), d) != space.end();
            });
            if (fits && (!dtype || *dtype == m.dtype)) return m;
        }
        const auto dims = some_of(space, false);
        if (r_.one_in(3))
            if (const Memory* constant = new_constant(dims, dtype)) return *constant;
        return new_input(dims, dtype);
    }

    /// A view of the whole of `memory` over the loop's dims; dimensions that it lacks are broadcast, some are walked
    /// backwards.
    Operand view(const Memory& memory, const std::vector<std::size_t>& space, bool may_reverse) {
        const std::uint32_t zero = of_plan_.constant(0);
        Operand o{OperandKind::tensor, memory.dtype, memory.space, memory.index, zero, {}};
        o.strides.assign(space.size(), zero);
        std::uint32_t step = of_plan_.constant(1);
        for (std::size_t k = memory.dims.size(); k-- > 0;) {
            const std::uint32_t size = dims_[memory.dims[k]].in_plan;
            const std::uint32_t minus = of_plan_.constant(-1);
            const auto found = std::find(space.begin(), space.end(), memory.dims[k]);
            std::uint32_t& stride = o.strides[static_cast<std::size_t>(found - space.begin())];
            std::uint32_t walked = step;
            if (may_reverse && r_.one_in(6)) {
                walked = of_plan_.of(ExprOp::mul, step, minus);
                o.offset = of_plan_.of(ExprOp::add, o.offset,
                                       of_plan_.of(ExprOp::mul, step, of_plan_.of(ExprOp::add, size, minus)));
            }
            stride = of_plan_.of(ExprOp::add, stride, walked);
            step = of_plan_.of(ExprOp::mul, step, size);
        }
        return o;
    }

    // --- instructions ---

    std::uint16_t fresh() { return next_register_++; }
    void emit(Phase& phase, Instr i, RegClass result) {
        phase.instrs.push_back(i);
        values_.push_back({i.dst, result, phase.outer});
    }
    void load(Phase& phase, Loop& loop, const Operand& operand) {
        const auto at = static_cast<std::uint16_t>(loop.operands.size());
        loop.operands.push_back(operand);
        const RegClass cls = class_of(operand.dtype);
        const ScalarOp op = operand.kind == OperandKind::iota ? ScalarOp::iota : ScalarOp::load;
        emit(phase, plain(op, cls, fresh(), 0, at, 0), cls);
    }
    std::uint16_t as(Phase& phase, const Value& v, DType to) {
        if (class_of(to) == v.cls && !r_.one_in(4)) return v.reg;
        const std::uint16_t dst = fresh();
        emit(phase, {ScalarOp::cast, class_of(to), v.cls, to, dst, v.reg, 0, 0}, class_of(to));
        return dst;
    }
    void store(Phase& phase, Loop& loop, const Memory& memory, const std::vector<std::size_t>& space) {
        const Value v = r_.pick(values_);
        const std::uint16_t reg = as(phase, v, memory.dtype);
        const auto at = static_cast<std::uint16_t>(loop.operands.size());
        loop.operands.push_back(view(memory, space, true));
        phase.instrs.push_back(plain(ScalarOp::store, class_of(memory.dtype), 0, reg, at, 0));
    }
    /// One operation on what registers hold.
    void compute(Phase& phase, Loop& loop) {
        if (values_.empty() || r_.one_in(8)) {
            const auto cls = static_cast<RegClass>(r_.below(reg_class_count));
            const bool real = cls == RegClass::f32 || cls == RegClass::f64;
            const std::int64_t number = r_.between(-3, 9);
            loop.constants.push_back(real ? std::bit_cast<std::uint64_t>(static_cast<double>(number) / 2)
                                          : static_cast<std::uint64_t>(number));
            const auto at = static_cast<std::uint16_t>(loop.constants.size() - 1);
            return emit(phase, plain(ScalarOp::constant, cls, fresh(), 0, at, 0), cls);
        }
        const Value a = r_.pick(values_);
        if (r_.one_in(8)) return static_cast<void>(as(phase, a, any_dtype()));
        if (r_.one_in(12)) {
            const auto at = static_cast<std::uint16_t>(r_.pick(dims_).in_plan);
            return emit(phase, plain(ScalarOp::symbol, RegClass::i64, fresh(), 0, at, 0), RegClass::i64);
        }
        std::vector<Value> same;
        for (const Value& v : values_)
            if (v.cls == a.cls) same.push_back(v);
        const Value b = r_.pick(same);
        const bool real = a.cls == RegClass::f32 || a.cls == RegClass::f64;
        if (a.cls == RegClass::i32 && r_.one_in(4)) {
            const Value then = r_.pick(values_);
            return emit(phase, plain(ScalarOp::select, then.cls, fresh(), a.reg, then.reg, then.reg), then.cls);
        }
        for (;;) {
            const auto op = static_cast<ScalarOp>(r_.below(scalar_op_count));
            const OpKind kind = kind_of(op);
            const bool fits = kind == OpKind::arith || kind == OpKind::compare ||
                              (real ? kind == OpKind::real || kind == OpKind::test : kind == OpKind::integer);
            if (!fits) continue;
            const RegClass result = kind == OpKind::compare || kind == OpKind::test ? RegClass::i32 : a.cls;
            const std::uint16_t second = arity_of(op) == 2 ? b.reg : std::uint16_t{0};
            return emit(phase, plain(op, a.cls, fresh(), a.reg, second, 0), result);
        }
    }
    void compute_some(Phase& phase, Loop& loop) {
        for (std::size_t n = r_.below(6); n > 0 && next_register_ < max_loop_registers; --n) compute(phase, loop);
    }
    /// An element picked by a computed index.
    void gather(Phase& phase, Loop& loop, const std::vector<std::size_t>& space) {
        const auto index =
            std::find_if(values_.begin(), values_.end(), [](const Value& v) { return v.cls == RegClass::i64; });
        if (index == values_.end()) return;
        const std::uint16_t from = index->reg, checked = fresh();
        const auto bound = static_cast<std::uint16_t>(of_plan_.constant(r_.between(1, 64)));
        emit(phase, plain(ScalarOp::check_index, RegClass::i64, checked, from, bound, 0), RegClass::i64);
        Operand o = view(source(space), space, false);
        const auto at = static_cast<std::uint16_t>(loop.operands.size());
        const RegClass cls = class_of(o.dtype);
        o.strides.assign(space.size(), of_plan_.constant(0));
        loop.operands.push_back(std::move(o));
        emit(phase, plain(ScalarOp::load_at, cls, fresh(), checked, at, 0), cls);
    }

    // --- steps ---

    const Memory& target(const std::vector<std::size_t>& dims) {
        const DType dtype = any_dtype();
        if (function_.outputs.size() < max_outputs && !r_.one_in(3)) return new_output(some_of(dims, true), dtype);
        return new_slot(some_of(dims, true), dtype);
    }
    void read_some(Phase& phase, Loop& loop, const std::vector<std::size_t>& space) {
        for (std::size_t n = 1 + r_.below(3); n > 0; --n) load(phase, loop, view(source(space), space, true));
        if (r_.one_in(6)) {
            Operand iota{OperandKind::iota, DType::i64, Space::input, 0, of_plan_.constant(r_.between(-2, 5)), {}};
            for (std::size_t d = 0; d < space.size(); ++d) iota.strides.push_back(of_plan_.constant(r_.between(-1, 3)));
            load(phase, loop, iota);
        }
        if (r_.one_in(5)) gather(phase, loop, space);
    }
    void end_full_phase() {
        std::erase_if(values_, [](const Value& v) { return !v.outer; });
    }

    void loop() {
        std::vector<std::size_t> space;
        for (std::size_t n = r_.below(4); n > 0; --n) {
            const std::size_t d = r_.below(dims_.size());
            if (std::find(space.begin(), space.end(), d) == space.end()) space.push_back(d);
        }
        Loop loop;
        for (const std::size_t d : space) loop.extents.push_back(dims_[d].in_plan);
        const bool reduces = !space.empty() && r_.one_in(2);
        loop.outer_rank = static_cast<std::uint32_t>(reduces ? r_.below(space.size()) : space.size());
        const std::vector<std::size_t> outer(space.begin(), space.begin() + loop.outer_rank);
        next_register_ = 0;
        values_.clear();
        Phase full;
        read_some(full, loop, space);
        compute_some(full, loop);
        if (!reduces) {
            store(full, loop, target(space), space);
            loop.phases.push_back(std::move(full));
            program_.steps.emplace_back(std::move(loop));
            return;
        }
        std::vector<Value> results;
        for (std::size_t n = 1 + r_.below(2); n > 0; --n) {
            const Value v = r_.pick(values_);
            const auto op = static_cast<ScalarOp>(
                r_.between(static_cast<int>(ScalarOp::reduce_sum), static_cast<int>(ScalarOp::reduce_argmin)));
            const bool arg = op == ScalarOp::reduce_argmax || op == ScalarOp::reduce_argmin;
            const std::uint16_t dst = fresh();
            full.instrs.push_back(plain(op, v.cls, dst, v.reg, 0, 0));
            results.push_back({dst, arg ? RegClass::i64 : v.cls, true});
        }
        loop.phases.push_back(std::move(full));
        end_full_phase();
        values_.insert(values_.end(), results.begin(), results.end());
        Phase after{true, {}};
        compute_some(after, loop);
        store(after, loop, target(outer), space);
        loop.phases.push_back(std::move(after));
        if (r_.one_in(2)) {
            Phase again;
            read_some(again, loop, space);
            compute_some(again, loop);
            store(again, loop, target(space), space);
            loop.phases.push_back(std::move(again));
        }
        program_.steps.emplace_back(std::move(loop));
    }

    void gemm() {
        const auto dim = [&] { return r_.below(dims_.size()); };
        const std::size_t m = dim(), n = dim(), k = dim();
        std::vector<std::size_t> batch;
        if (r_.one_in(3)) batch.push_back(dim());
        const auto with = [&](std::initializer_list<std::size_t> more) {
            std::vector<std::size_t> out = batch;
            out.insert(out.end(), more);
            return out;
        };
        const auto distinct = [](std::vector<std::size_t> dims) {
            std::sort(dims.begin(), dims.end());
            return std::adjacent_find(dims.begin(), dims.end()) == dims.end();
        };
        const auto a_space = with({m, k}), b_space = with({k, n}), c_space = with({m, n});
        if (!distinct(a_space) || !distinct(b_space) || !distinct(c_space)) return loop();
        Gemm gemm;
        const Memory a = source(a_space);
        gemm.a = view(a, a_space, true);
        gemm.b = view(source(b_space, a.dtype), b_space, true);
        for (const std::size_t d : batch) gemm.batch.push_back(dims_[d].in_plan);
        gemm.m = dims_[m].in_plan;
        gemm.n = dims_[n].in_plan;
        gemm.k = dims_[k].in_plan;
        Loop& e = gemm.epilogue;
        for (const std::size_t d : c_space) e.extents.push_back(dims_[d].in_plan);
        e.outer_rank = static_cast<std::uint32_t>(c_space.size());
        next_register_ = 0;
        values_.clear();
        Phase phase;
        const RegClass cls = class_of(a.dtype);
        const DType sums = cls == RegClass::f32 ? DType::f32 : cls == RegClass::f64 ? DType::f64 : DType::i64;
        load(phase, e, {OperandKind::accumulator, sums, Space::input, 0, 0, {}});
        if (r_.one_in(2)) {
            read_some(phase, e, c_space);
            compute_some(phase, e);
        }
        store(phase, e, target(c_space), c_space);
        e.phases.push_back(std::move(phase));
        program_.steps.emplace_back(std::move(gemm));
    }

    void store_something() {
        Loop loop;
        loop.outer_rank = 0;
        next_register_ = 0;
        values_.clear();
        Phase full;
        compute(full, loop);
        store(full, loop, new_output({}, any_dtype()), {});
        loop.phases.push_back(std::move(full));
        program_.steps.emplace_back(std::move(loop));
    }

    void add_guard() {
        const auto e = static_cast<std::uint32_t>(r_.below(function_.exprs.size()));
        function_.guards.push_back({r_.one_in(2) ? GuardKind::equal : GuardKind::at_most, e, e});
    }

    Random& r_;
    Parts parts_;
    FunctionSpec function_;
    Program program_;
    Exprs of_function_, of_plan_;
    std::vector<Dim> dims_;
    std::deque<Memory> memories_;
    std::vector<Value> values_;
    std::uint16_t next_register_ = 0;
};

}  // namespace

Parts generate(Random& random) { return Generator(random).program(1 + random.below(3)); }

}  // namespace lyo::fuzz
