module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {
namespace {

class Cases {
  public:
    void operator()(std::string name, std::string expected, const std::function<void(Parts&)>& change,
                    ErrorCode code = ErrorCode::bad_value) {
        Parts parts = small_parts();
        change(parts);
        out.push_back({std::move(name), seal(parts), code, std::move(expected)});
    }
    std::vector<Hostile> out;
};

FunctionSpec& function(Parts& p) { return p.functions.functions[0]; }
Program& program(Parts& p) { return p.images[0].programs[0]; }
Gemm& gemm(Parts& p) { return *std::get_if<Gemm>(&program(p).steps[0]); }
Loop& loop(Parts& p) { return *std::get_if<Loop>(&program(p).steps[1]); }
Instr& instr(Parts& p, std::size_t phase, std::size_t i) { return loop(p).phases[phase].instrs[i]; }

}  // namespace

std::vector<Hostile> hostile_values() {
    Cases c;
    c(
        "manifest-abi", "manifest.abi: version: expected 1, got 2", [](Parts& p) { p.manifest.abi = 2; },
        ErrorCode::unsupported_version);
    c(
        "manifest-targets-missing", "manifest.targets: tags of image sections: expected [], got [0]",
        [](Parts& p) { p.manifest.targets.clear(); }, ErrorCode::bad_section);
    c("manifest-targets-twice", "manifest.targets[1]: targets are not sorted and distinct",
      [](Parts& p) { p.manifest.targets = {"cpu", "cpu"}; });
    c("manifest-targets-misordered", "manifest.targets[1]: targets are not sorted and distinct",
      [](Parts& p) { p.manifest.targets = {"cuda:ptx", "cpu"}; });
    c(
        "manifest-target-without-code", "manifest.targets: tags of launches sections: expected [1], got []",
        [](Parts& p) { p.manifest.targets = {"cpu", "cuda:sm_90"}; }, ErrorCode::bad_section);
    c("constant-rank", "functions.constants[0]: rank: expected at most 8, got 9",
      [](Parts& p) { p.functions.constants[0].shape.assign(9, 1); });
    c("constant-size-overflows", "functions.constants[0]: its size does not fit in 64 bits",
      [](Parts& p) { p.functions.constants[0].shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40}; });
    c("constant-size-overflows-beside-zero", "functions.constants[0]: its size does not fit in 64 bits",
      [](Parts& p) { p.functions.constants[0].shape = {0, ~std::uint64_t{0}, 2}; });
    c("constant-beyond-section", "functions.constants[1]: end: expected at most 80",
      [](Parts& p) { p.functions.constants[1].shape = {2, 3}; });
    c("constant-one-too-many", "functions.constants[2]: end: expected at most 80",
      [](Parts& p) { p.functions.constants.push_back({"c", DType::u8, {1}, 128}); });
    c("constant-offset", "functions.constants[1]: offset: expected 64, got 0", [](Parts& p) {
        // Both in one buffer, so that the second keeps the offset it has.
        p.functions.constants[1].offset = 0;
        p.constants = {Buffer(80)};
    });
    c("constants-left-over", "constants: length: expected 80, got 144",
      [](Parts& p) { p.constants.push_back(Buffer(16)); });

    c("symbol-range", "functions[0]: symbols[0]: range: expected 0 <= min <= max, got [8, 0]",
      [](Parts& p) { function(p).symbols[0] = {"s0", 8, 0}; });
    c("symbol-negative", "functions[0]: symbols[0]: range", [](Parts& p) { function(p).symbols[0].min = -1; });
    c("expr-symbol", "functions[0]: exprs[0]: symbol: expected below 1, got 1",
      [](Parts& p) { function(p).exprs[0].a = 1; });
    c("expr-symbol-with-value", "functions[0]: exprs[0]: a symbol has one field",
      [](Parts& p) { function(p).exprs[0].value = 1; });
    c("expr-constant-with-operand", "functions[0]: exprs[1]: a constant has no operands",
      [](Parts& p) { function(p).exprs[1].b = 1; });
    c("expr-forward", "image: programs[0]: exprs[5]: operands: expected below 5, got 5",
      [](Parts& p) { program(p).exprs[5].b = 5; });
    c("expr-operation-with-value", "programs[0]: exprs[5]: an operation has no value",
      [](Parts& p) { program(p).exprs[5].value = 1; });
    c("input-rank", "functions[0]: inputs[0]: rank: expected at most 8, got 9",
      [](Parts& p) { function(p).inputs[0].shape.assign(9, 1); });
    c("input-expression", "functions[0]: inputs[0]: expression: expected below 3, got 3",
      [](Parts& p) { function(p).inputs[0].shape[1] = 3; });
    c("output-expression", "functions[0]: outputs[1]: expression: expected below 3, got 4294967295",
      [](Parts& p) { function(p).outputs[1].shape[0] = 0xffffffff; });
    c("guard-expression", "functions[0]: guards[0]: an expression beyond the table",
      [](Parts& p) { function(p).guards[0].right = 3; });
    c("image-programs", "image: programs: expected 1, got 2",
      [](Parts& p) { p.images[0].programs.push_back(program(p)); });
    return c.out;
}

std::vector<Hostile> hostile_plans() {
    using enum ScalarOp;
    Cases c;
    c("slot-expression", "slots[0]: expression: expected below 6, got 6", [](Parts& p) { program(p).slots[0] = 6; });
    c("slot-unwritten", "steps[0]: phases[0].instrs[0]: slot 0 is read before any step stores to it",
      [](Parts& p) { program(p).steps.erase(program(p).steps.begin()); });
    c("slot-unwritten-factor", "steps[0]: a: slot 0 is read before any step stores to it",
      [](Parts& p) { gemm(p).a.space = Space::slot; });

    c("loop-rank", "steps[1]: extents: rank: expected at most 8, got 9",
      [](Parts& p) { loop(p).extents.assign(9, 1); });
    c("loop-outer-rank", "steps[1]: extents: rank", [](Parts& p) { loop(p).outer_rank = 300; });
    c("loop-extent", "steps[1]: extents: an expression beyond the table", [](Parts& p) { loop(p).extents[0] = 6; });
    c("loop-operands", "steps[1]: operands: count: expected at most 256, got 257",
      [](Parts& p) { loop(p).operands.assign(257, loop(p).operands[0]); });
    c("operand-accumulator-in-loop", "operands[1]: the accumulator is operand 0 of an epilogue, and only there",
      [](Parts& p) { loop(p).operands[1] = gemm(p).epilogue.operands[0]; });
    c("operand-accumulator-index", "epilogue: operands[0]: an accumulator has no place in memory",
      [](Parts& p) { gemm(p).epilogue.operands[0].index = 1; });
    c("operand-strides-count", "operands[0]: strides: count: expected 2, got 1",
      [](Parts& p) { loop(p).operands[0].strides.pop_back(); });
    c("operand-stride", "operands[0]: strides: expression: expected below 6, got 6",
      [](Parts& p) { loop(p).operands[0].strides[0] = 6; });
    c("operand-offset", "operands[0]: offset: expression: expected below 6, got 6",
      [](Parts& p) { loop(p).operands[0].offset = 6; });
    c("operand-iota", "operands[1]: an iota has no place in memory and dtype i64",
      [](Parts& p) { loop(p).operands[1].kind = OperandKind::iota; });
    c("operand-input", "a: index: below 1: expected input, got 1", [](Parts& p) { gemm(p).a.index = 1; });
    c("operand-constant", "operands[1]: index: below 2: expected constant, got 2",
      [](Parts& p) { loop(p).operands[1].index = 2; });
    c("operand-slot", "operands[0]: index: below 1: expected slot, got 1",
      [](Parts& p) { loop(p).operands[0].index = 1; });
    c("operand-output", "operands[3]: index: below 2: expected output, got 2",
      [](Parts& p) { loop(p).operands[3].index = 2; });
    c("operand-dtype", "operands[1]: dtype: dtype: expected f32, got f64",
      [](Parts& p) { loop(p).operands[1].dtype = DType::f64; });
    c("operand-output-dtype", "operands[2]: dtype: dtype: expected f32, got i32",
      [](Parts& p) { loop(p).operands[2].dtype = DType::i32; });
    c("operand-input-dtype", "a: dtype: dtype: expected f32, got f16", [](Parts& p) { gemm(p).a.dtype = DType::f16; });

    c("phase-outer", "phases[0]: outer, where nothing is reduced",
      [](Parts& p) { gemm(p).epilogue.phases[0].outer = true; });
    c("register-unwritten", "phases[0].instrs[2]: register 7 is read before it is written",
      [](Parts& p) { instr(p, 0, 2).a = 7; });
    c("register-beyond-read", "phases[0].instrs[2]: register: expected below 128, got 128",
      [](Parts& p) { instr(p, 0, 2).a = 128; });
    c("register-beyond-written", "phases[0].instrs[2]: register: expected below 128, got 65535",
      [](Parts& p) { instr(p, 0, 2).dst = 0xffff; });
    c("register-class", "class of register 0: expected f64, got f32",
      [](Parts& p) { instr(p, 0, 2).cls = RegClass::f64; });
    c("register-dead-after-phase", "phases[1].instrs[2]: register 2 is read before it is written",
      [](Parts& p) { instr(p, 1, 2).a = 2; });
    c("register-reduction-read-early", "phases[0].instrs[5]: register 3 is read before it is written", [](Parts& p) {
        loop(p).phases[0].instrs.push_back({neg, RegClass::f32, RegClass::f32, DType::boolean, 6, 3, 0, 0});
    });
    c("register-reduction-overwritten", "phases[0].instrs[5]: register 3 holds a reduction of this phase",
      [](Parts& p) {
          loop(p).phases[0].instrs.push_back(instr(p, 0, 0));
          instr(p, 0, 5).dst = 3;
      });

    c("instr-unused-field", "phases[0].instrs[2]: add: a field that it does not use is not zero",
      [](Parts& p) { instr(p, 0, 2).c = 1; });
    c("instr-operand", "phases[0].instrs[0]: operand: expected below 4, got 4", [](Parts& p) { instr(p, 0, 0).b = 4; });
    c("instr-load-class", "phases[0].instrs[0]: class: expected f32, got i32",
      [](Parts& p) { instr(p, 0, 0).cls = RegClass::i32; });
    c("instr-load-iota", "phases[0].instrs[1]: load of an iota",
      [](Parts& p) { loop(p).operands[1] = {OperandKind::iota, DType::i64, Space::input, 0, 0, {0, 1}}; });
    c("instr-store-constant", "phases[0].instrs[3]: store to memory that a plan must not change",
      [](Parts& p) { instr(p, 0, 3).b = 1; });
    c("instr-store-accumulator", "epilogue: phases[0].instrs[1]: store to memory that a plan must not change",
      [](Parts& p) { gemm(p).epilogue.phases[0].instrs[1].b = 0; });
    c("instr-iota-of-tensor", "phases[0].instrs[0]: iota of an operand that is none",
      [](Parts& p) { instr(p, 0, 0).op = iota; });
    c("instr-constant", "phases[1].instrs[0]: constant: expected below 1, got 1",
      [](Parts& p) { instr(p, 1, 0).b = 1; });
    c("instr-symbol", "phases[1].instrs[0]: expression: expected below 6, got 6",
      [](Parts& p) { instr(p, 1, 0) = {symbol, RegClass::i64, RegClass::f32, DType::boolean, 4, 0, 6, 0}; });
    c("instr-symbol-class", "phases[1].instrs[0]: class: expected i64, got f32",
      [](Parts& p) { instr(p, 1, 0).op = symbol; });
    c("instr-load-at", "phases[0].instrs[2]: load_at of an operand of another kind or class",
      [](Parts& p) { instr(p, 0, 2) = {load_at, RegClass::f64, RegClass::f32, DType::boolean, 2, 0, 0, 0}; });
    c("instr-load-at-class", "class of register 0: expected i64, got f32",
      [](Parts& p) { instr(p, 0, 2) = {load_at, RegClass::f32, RegClass::f32, DType::boolean, 2, 0, 0, 0}; });
    c("instr-check-index", "phases[0].instrs[2]: expression: expected below 6, got 99",
      [](Parts& p) { instr(p, 0, 2) = {check_index, RegClass::i64, RegClass::f32, DType::boolean, 2, 0, 99, 0}; });
    c("instr-check-index-class", "phases[0].instrs[2]: class: expected i64, got i32",
      [](Parts& p) { instr(p, 0, 2) = {check_index, RegClass::i32, RegClass::f32, DType::boolean, 2, 0, 0, 0}; });
    c("instr-cast-class", "phases[0].instrs[2]: class: expected f64, got f32",
      [](Parts& p) { instr(p, 0, 2) = {cast, RegClass::f32, RegClass::f32, DType::f64, 2, 0, 0, 0}; });
    c("instr-cast-from", "class of register 0: expected i32, got f32",
      [](Parts& p) { instr(p, 0, 2) = {cast, RegClass::f64, RegClass::i32, DType::f64, 2, 0, 0, 0}; });
    c("instr-select-condition", "class of register 0: expected i32, got f32",
      [](Parts& p) { instr(p, 0, 2) = {select, RegClass::f32, RegClass::f32, DType::boolean, 2, 0, 1, 1}; });
    c("instr-real-of-integer", "phases[1].instrs[1]: sqrt of class i32",
      [](Parts& p) { instr(p, 1, 1) = {sqrt, RegClass::i32, RegClass::f32, DType::boolean, 5, 3, 0, 0}; });
    c("instr-integer-of-real", "phases[1].instrs[1]: bit_and of class f32",
      [](Parts& p) { instr(p, 1, 1).op = bit_and; });
    c("instr-reduce-in-outer", "phases[1].instrs[1]: reduce_sum where nothing is reduced",
      [](Parts& p) { instr(p, 1, 1) = {reduce_sum, RegClass::f32, RegClass::f32, DType::boolean, 5, 3, 0, 0}; });

    c("gemm-batch-rank", "steps[0]: batch: rank: expected at most 6, got 7",
      [](Parts& p) { gemm(p).batch.assign(7, 1); });
    c("gemm-batch", "steps[0]: batch: an expression beyond the table", [](Parts& p) { gemm(p).batch = {6}; });
    c("gemm-size", "steps[0]: m, n, k: an expression beyond the table", [](Parts& p) { gemm(p).k = 6; });
    c("gemm-factor", "steps[0]: b: a factor is a tensor", [](Parts& p) { gemm(p).b.kind = OperandKind::iota; });
    c("gemm-factor-dtypes", "steps[0]: b: dtype: expected f64, got f32",
      [](Parts& p) { function(p).inputs[0].dtype = gemm(p).a.dtype = DType::f64; });
    c("gemm-epilogue-extents", "steps[0]: epilogue.extents: they are not batch, m, n",
      [](Parts& p) { gemm(p).epilogue.extents[0] = 2; });
    c("gemm-epilogue-reduces", "steps[0]: epilogue.extents", [](Parts& p) { gemm(p).epilogue.outer_rank = 1; });
    c("gemm-epilogue-empty", "steps[0]: epilogue: operands: an epilogue has an accumulator",
      [](Parts& p) { gemm(p).epilogue.operands.clear(); });
    c("gemm-epilogue-no-accumulator", "epilogue: operands[0]: the accumulator is operand 0",
      [](Parts& p) { gemm(p).epilogue.operands[0] = gemm(p).epilogue.operands[1]; });
    c("gemm-accumulator-class", "epilogue.operands[0]: class: expected f32, got f64", [](Parts& p) {
        gemm(p).epilogue.operands[0].dtype = DType::f64;
        gemm(p).epilogue.phases[0].instrs.clear();
    });
    return c.out;
}

}  // namespace lyo::fuzz
