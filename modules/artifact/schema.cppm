// The decoded form of an artifact's metadata: plain aggregates. The codec walks them with Boost.PFR, so this file is
// the encoding: the order of the fields here is the order of the bytes. `fields` names them, for JSON and for errors;
// the codec refuses to compile when the count is wrong.
export module lyo.artifact:schema;

import lyo.prelude;
import lyo.base;

namespace lyo {

/// What an entry of an expression table computes. Division and modulo round towards minus infinity.
export enum class ExprOp : std::uint8_t { constant, symbol, add, mul, floor_div, mod, max, min };
export inline constexpr std::array<std::string_view, 8> expr_op_names = {"constant",  "symbol", "add", "mul",
                                                                         "floor_div", "mod",    "max", "min"};

/// One entry: a constant (value), a symbol (index a), or an operation on two earlier entries (a, b). Fields that an
/// operation does not use are zero.
export struct Expr {
    ExprOp op = ExprOp::constant;
    std::int64_t value = 0;
    std::uint32_t a = 0, b = 0;
    static constexpr std::string_view fields = "op value a b";
    friend bool operator==(const Expr&, const Expr&) = default;
};

/// A size that is known only when the function is called; it lies in [min, max].
export struct Symbol {
    std::string name;
    std::int64_t min = 0, max = 0;
    static constexpr std::string_view fields = "name min max";
};

/// An input or output: sizes are entries of the function's expression table.
export struct TensorSpec {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::uint32_t> shape;
    static constexpr std::string_view fields = "name dtype shape";
};

export enum class GuardKind : std::uint8_t { equal, at_most };
export inline constexpr std::array<std::string_view, 2> guard_kind_names = {"equal", "at_most"};

/// A relation between two expressions that every call must satisfy, besides what the inputs' specs say.
export struct Guard {
    GuardKind kind = GuardKind::equal;
    std::uint32_t left = 0, right = 0;
    static constexpr std::string_view fields = "kind left right";
};

/// A tensor embedded in the constants section, row-major.
export struct Constant {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::uint64_t> shape;
    std::uint64_t offset = 0;
    static constexpr std::string_view fields = "name dtype shape offset";
};

/// What a caller must know of one function: readable without any kernel.
export struct FunctionSpec {
    std::string name;
    std::vector<Symbol> symbols;
    std::vector<Expr> exprs;
    std::vector<TensorSpec> inputs, outputs;
    std::vector<Guard> guards;
    static constexpr std::string_view fields = "name symbols exprs inputs outputs guards";
};

/// The functions section. Functions of one name are specialisations, tried in order.
export struct FunctionTable {
    std::vector<FunctionSpec> functions;
    std::vector<Constant> constants;
    static constexpr std::string_view fields = "functions constants";
};

/// The manifest section: who wrote the file, for what, and the leaves of the constants' tree digest.
export struct Manifest {
    std::string producer;
    std::uint32_t abi = 0;
    std::vector<std::string> targets;  ///< of the image sections, by tag: "cpu"
    std::vector<Digest> constant_leaves;
    static constexpr std::string_view fields = "producer abi targets constant_leaves";
};

/// The debug section: for people; a function runs the same without it.
export struct Debug {
    std::string graph;  ///< the functions' graphs as text
    static constexpr std::string_view fields = "graph";
};

// --- plans -----------------------------------------------------------------------------------------------------------

/// Which memory an operand is in. `slot` is workspace of one call.
export enum class Space : std::uint8_t { input, constant, slot, output };
export inline constexpr std::array<std::string_view, 4> space_names = {"input", "constant", "slot", "output"};

/// What an operand is: a strided view of memory; the numbers offset + sum(coordinate * stride) themselves; or the
/// result of the matrix product that a loop is the epilogue of.
export enum class OperandKind : std::uint8_t { tensor, iota, accumulator };
export inline constexpr std::array<std::string_view, 3> operand_kind_names = {"tensor", "iota", "accumulator"};

/// A view over a loop's iteration space: one stride (an expression, in elements) a dimension. An iota has space input
/// and index 0; an accumulator also offset 0 and no strides.
export struct Operand {
    OperandKind kind = OperandKind::tensor;
    DType dtype = DType::f32;
    Space space = Space::input;
    std::uint32_t index = 0;
    std::uint32_t offset = 0;
    std::vector<std::uint32_t> strides;
    static constexpr std::string_view fields = "kind dtype space index offset strides";
};

/// One instruction of a loop program; kernel/cpu/vm.h says what each does. Fields that an operation does not use are
/// zero.
export struct Instr {
    ScalarOp op = ScalarOp::load;
    RegClass cls = RegClass::f32, from = RegClass::f32;
    DType to = DType::boolean;
    std::uint16_t dst = 0, a = 0, b = 0, c = 0;
    static constexpr std::string_view fields = "op cls from to dst a b c";
    friend bool operator==(const Instr&, const Instr&) = default;
};

/// A straight run of instructions, executed for every element (full), or once per outer element (outer).
export struct Phase {
    bool outer = false;
    std::vector<Instr> instrs;
    static constexpr std::string_view fields = "outer instrs";
};

/// A fused loop nest: the outer dimensions, then the reduced ones.
export struct Loop {
    std::vector<std::uint32_t> extents;
    std::uint32_t outer_rank = 0;
    std::vector<Operand> operands;
    std::vector<std::uint64_t> constants;  ///< bit patterns of doubles or int64s
    std::vector<Phase> phases;
    static constexpr std::string_view fields = "extents outer_rank operands constants phases";
};

/// A batched matrix product, with a loop over [batch..., m, n] that takes each sum and stores what becomes of it.
/// `a` has strides over [batch..., m, k], `b` over [batch..., k, n].
export struct Gemm {
    std::vector<std::uint32_t> batch;
    std::uint32_t m = 0, n = 0, k = 0;
    Operand a, b;
    Loop epilogue;
    static constexpr std::string_view fields = "batch m n k a b epilogue";
};

export using Step = std::variant<Loop, Gemm>;
export inline constexpr std::array<std::string_view, 2> step_names = {"loop", "gemm"};

/// The plan of one function: steps in order, over workspace slots of given sizes in bytes.
export struct Program {
    std::vector<Expr> exprs;
    std::vector<std::uint32_t> slots;
    std::vector<Step> steps;
    static constexpr std::string_view fields = "exprs slots steps";
};

/// An image section: for target "cpu", the plan of each function, in the functions' order.
export struct Image {
    std::vector<Program> programs;
    static constexpr std::string_view fields = "programs";
};

// --- plans of other devices ------------------------------------------------------------------------------------------

/// Memory whose address a kernel is given: `offset` (an expression) is in bytes.
export struct Buffer {
    Space space = Space::input;
    std::uint32_t index = 0;
    std::uint32_t offset = 0;
    static constexpr std::string_view fields = "space index offset";
    friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// One kernel of the target's code section, on `blocks` (an expression; none when it is 0) of `threads`. Its one
/// parameter is the addresses of `buffers`, then the values of `words` (expressions), each of 8 bytes.
export struct Launch {
    std::string kernel;
    std::uint32_t blocks = 0;
    std::uint32_t threads = 0;
    std::vector<Buffer> buffers;
    std::vector<std::uint32_t> words;
    static constexpr std::string_view fields = "kernel blocks threads buffers words";
};

/// A matrix product that the device's library does: c[m, n] = sum over k of a[m, k] * b[k, n], for each of `batch`.
/// Strides and sizes are expressions; c is row-major.
export struct Product {
    DType dtype = DType::f32;  ///< of a and b; sums are f32 (f64 for f64)
    DType result = DType::f32;
    Buffer a, b, c;
    std::uint32_t batch = 0, m = 0, n = 0, k = 0;
    std::uint32_t a_batch = 0, a_m = 0, a_k = 0;
    std::uint32_t b_batch = 0, b_k = 0, b_n = 0;
    static constexpr std::string_view fields = "dtype result a b c batch m n k a_batch a_m a_k b_batch b_k b_n";
};

export using DeviceStep = std::variant<Launch, Product>;
export inline constexpr std::array<std::string_view, 2> device_step_names = {"launch", "product"};

/// The plan of one function, over workspace slots of given sizes in bytes.
export struct DeviceProgram {
    std::vector<Expr> exprs;
    std::vector<std::uint32_t> slots;
    std::vector<DeviceStep> steps;
    static constexpr std::string_view fields = "exprs slots steps";
};

/// A launches section: for one target that is not "cpu", the plan of each function, in the functions' order.
export struct DeviceImage {
    std::vector<DeviceProgram> programs;
    static constexpr std::string_view fields = "programs";
};

}  // namespace lyo
