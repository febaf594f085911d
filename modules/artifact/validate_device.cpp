// A plan of a device other than the CPU against its function: every index stays within its table, so preparing and
// launching it cannot go astray on the host. What the kernels themselves do is machine code that nobody can check.
module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :state;

namespace lyo {
namespace {

constexpr ErrorCode code = ErrorCode::bad_value;

struct Context {
    const DeviceProgram& program;
    const FunctionSpec& function;
    const FunctionTable& table;
};

Result<> check_expr(const Context& c, std::uint32_t index, std::string_view field) {
    if (index >= c.program.exprs.size())
        return mismatch(code, field, "expression", cat("below ", c.program.exprs.size()), index);
    return {};
}

Result<> check_buffer(const Context& c, const Buffer& b, std::string_view field) {
    const std::size_t counts[] = {c.function.inputs.size(), c.table.constants.size(), c.program.slots.size(),
                                  c.function.outputs.size()};
    const auto space = static_cast<std::size_t>(b.space);
    if (b.index >= counts[space])
        return mismatch(code, field, space_names[space], cat("below ", counts[space]), b.index);
    return check_expr(c, b.offset, field);
}

Result<> check(const Context& c, const Launch& launch) {
    if (launch.kernel.empty()) return fail(code, "kernel", "has no name");
    if (launch.threads == 0 || launch.threads > format::max_threads)
        return mismatch(code, "threads", "number", cat("in [1, ", format::max_threads, "]"), launch.threads);
    if (launch.buffers.size() + launch.words.size() > format::max_launch_words)
        return mismatch(code, "words", "buffers and words", cat("at most ", format::max_launch_words),
                        launch.buffers.size() + launch.words.size());
    if (auto ok = check_expr(c, launch.blocks, "blocks"); !ok) return ok;
    for (std::size_t i = 0; i < launch.buffers.size(); ++i)
        if (auto ok = check_buffer(c, launch.buffers[i], cat("buffers[", i, "]")); !ok) return ok;
    for (std::size_t i = 0; i < launch.words.size(); ++i)
        if (auto ok = check_expr(c, launch.words[i], cat("words[", i, "]")); !ok) return ok;
    return {};
}

Result<> check(const Context& c, const Product& p) {
    if (!is_float(p.dtype)) return mismatch(code, "dtype", "dtype", "a floating one", to_string(p.dtype));
    if (p.result != p.dtype && p.result != DType::f32)
        return mismatch(code, "result", "dtype", cat(to_string(p.dtype), " or f32"), to_string(p.result));
    const std::pair<std::string_view, const Buffer*> buffers[] = {{"a", &p.a}, {"b", &p.b}, {"c", &p.c}};
    for (const auto& [field, buffer] : buffers)
        if (auto ok = check_buffer(c, *buffer, field); !ok) return ok;
    const std::pair<std::string_view, std::uint32_t> exprs[] = {
        {"batch", p.batch},     {"m", p.m},     {"n", p.n},     {"k", p.k},
        {"a_batch", p.a_batch}, {"a_m", p.a_m}, {"a_k", p.a_k}, {"b_batch", p.b_batch},
        {"b_k", p.b_k},         {"b_n", p.b_n}};
    for (const auto& [field, index] : exprs)
        if (auto ok = check_expr(c, index, field); !ok) return ok;
    return {};
}

}  // namespace

Result<> validate_device_program(const DeviceProgram& program, const FunctionSpec& function,
                                 const FunctionTable& table) {
    if (auto ok = validate_exprs(program.exprs, function.symbols.size()); !ok) return ok;
    const Context context{program, function, table};
    for (std::size_t i = 0; i < program.slots.size(); ++i)
        if (auto ok = check_expr(context, program.slots[i], cat("slots[", i, "]")); !ok) return ok;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        auto ok = std::visit([&](const auto& step) { return check(context, step); }, program.steps[i]);
        if (!ok) return std::unexpected(std::move(ok.error()).in(cat("steps[", i, "]")));
    }
    return {};
}

}  // namespace lyo
