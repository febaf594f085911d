module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {
namespace {

Operand view(DType dtype, Space space, std::uint32_t index, std::vector<std::uint32_t> strides) {
    return {OperandKind::tensor, dtype, space, index, 0, std::move(strides)};
}
Instr instr(ScalarOp op, std::uint16_t dst, std::uint16_t a, std::uint16_t b) {
    return {op, RegClass::f32, RegClass::f32, DType::boolean, dst, a, b, 0};
}

Buffer numbers(std::initializer_list<float> values) {
    const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
    return Buffer(bytes.begin(), bytes.end());
}

}  // namespace

Parts small_parts() {
    Parts parts;
    parts.manifest = {"lyo.fuzz", format::abi_version, {"cpu"}, {}};
    FunctionSpec f;
    f.name = "main";
    f.symbols = {{"s0", 0, 8}};
    f.exprs = {{ExprOp::symbol, 0, 0, 0}, {ExprOp::constant, 2, 0, 0}, {ExprOp::constant, 8, 0, 0}};
    f.inputs = {{"x", DType::f32, {0, 1}}};
    f.outputs = {{"y", DType::f32, {0, 1}}, {"z", DType::f32, {0}}};
    f.guards = {{GuardKind::at_most, 0, 2}};
    parts.functions.functions = {f};
    parts.functions.constants = {{"bias", DType::f32, {2}, 0}, {"weight", DType::f32, {2, 2}, 0}};
    parts.constants = {numbers({0.5f, -1.0f}), numbers({1.0f, 2.0f, 3.0f, 4.0f})};

    Program p;
    p.exprs = {{ExprOp::constant, 0, 0, 0}, {ExprOp::constant, 1, 0, 0}, {ExprOp::constant, 2, 0, 0},
               {ExprOp::symbol, 0, 0, 0},   {ExprOp::constant, 8, 0, 0}, {ExprOp::mul, 0, 3, 4}};
    p.slots = {5};
    Gemm gemm;
    gemm.m = 3;
    gemm.n = gemm.k = 2;
    gemm.a = view(DType::f32, Space::input, 0, {2, 1});
    gemm.b = view(DType::f32, Space::constant, 1, {2, 1});
    gemm.epilogue.extents = {3, 2};
    gemm.epilogue.outer_rank = 2;
    gemm.epilogue.operands = {{OperandKind::accumulator, DType::f32, Space::input, 0, 0, {}},
                              view(DType::f32, Space::slot, 0, {2, 1})};
    gemm.epilogue.phases = {{false, {instr(ScalarOp::load, 0, 0, 0), instr(ScalarOp::store, 0, 0, 1)}}};
    Loop loop;
    loop.extents = {3, 2};
    loop.outer_rank = 1;
    loop.operands = {view(DType::f32, Space::slot, 0, {2, 1}), view(DType::f32, Space::constant, 0, {0, 1}),
                     view(DType::f32, Space::output, 0, {2, 1}), view(DType::f32, Space::output, 1, {1, 0})};
    loop.constants = {std::bit_cast<std::uint64_t>(2.0)};
    loop.phases = {
        {false,
         {instr(ScalarOp::load, 0, 0, 0), instr(ScalarOp::load, 1, 0, 1), instr(ScalarOp::add, 2, 0, 1),
          instr(ScalarOp::store, 0, 2, 2), instr(ScalarOp::reduce_sum, 3, 2, 0)}},
        {true, {instr(ScalarOp::constant, 4, 0, 0), instr(ScalarOp::mul, 5, 3, 4), instr(ScalarOp::store, 0, 5, 3)}}};
    p.steps = {gemm, loop};
    parts.images = {{{p}}};
    parts.debug = Debug{"y = x @ weight + bias; z = 2 * sum(y)\n"};
    return parts;
}

Parts device_parts() {
    Parts parts = small_parts();
    parts.manifest.targets = {"cpu", "cuda:ptx", "cuda:sm_90"};
    DeviceProgram p;
    p.exprs = parts.images[0].programs[0].exprs;
    p.slots = {5};
    Product product;
    product.a = {Space::input, 0, 0};
    product.b = {Space::constant, 1, 0};
    product.c = {Space::slot, 0, 0};
    product.batch = 1;
    product.m = 3;
    product.n = product.k = 2;
    product.a_m = product.b_k = 2;
    product.a_k = product.b_n = 1;
    Launch launch;
    launch.kernel = "rows";
    launch.blocks = 3;
    launch.threads = 32;
    launch.buffers = {{Space::slot, 0, 0}, {Space::constant, 0, 0}, {Space::output, 0, 0}, {Space::output, 1, 0}};
    launch.words = {3, 2};
    p.steps = {product, launch};
    parts.device_images = {{{p}}, {{p}}};
    const std::string_view text = ".visible .entry rows() {}\n";
    const auto ptx = std::as_bytes(std::span(text));
    parts.device_code = {Buffer(ptx.begin(), ptx.end()), Buffer(70, std::byte{0x7f})};
    parts.device_code[0].push_back(std::byte{0});
    return parts;
}

std::vector<Hostile> hostile() {
    std::vector<Hostile> out = hostile_files();
    for (auto more : {hostile_encodings(), hostile_values(), hostile_plans(), hostile_device_plans()})
        out.insert(out.end(), more.begin(), more.end());
    return out;
}

}  // namespace lyo::fuzz
