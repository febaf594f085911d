// The lowered plan as launches: a kernel a step, or one for all of them where the whole is tiny.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;
import :cuda;

namespace lyo::cuda {

std::string_view storage_type(DType dtype) noexcept {
    constexpr std::string_view names[] = {"boolean", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "float", "double"};
    return names[static_cast<std::size_t>(dtype)];
}

std::string Arguments::address(Space space, std::uint32_t index, std::string_view type) {
    const Buffer wanted{space, index, (*exprs_)(Sym(0))};
    auto at = std::find(buffers_.begin(), buffers_.end(), wanted);
    if (at == buffers_.end()) at = buffers_.insert(buffers_.end(), wanted);
    return cat("((", type, "*)p.b[", at - buffers_.begin(), "])");
}

std::string Arguments::size(const Sym& value) {
    if (value.is_constant())
        return value.value() >= 0 && value.value() < (1 << 30) ? std::to_string(value.value())
                                                               : cat("(", value.value(), "ll)");
    const auto [at, fresh] = known_words_.try_emplace(value.to_string(), words_.size());
    if (fresh) words_.push_back((*exprs_)(value));
    return cat("p.w[", at->second, "]");
}

std::string Arguments::declaration(std::string_view name) const {
    std::string out = cat("struct ", name, " {");
    if (!buffers_.empty()) out += cat(" char* b[", buffers_.size(), "];");
    if (!words_.empty()) out += cat(" i64 w[", words_.size(), "];");
    return out + " };\n";
}

void Arguments::fill(Launch& launch) const {
    launch.buffers = buffers_;
    launch.words = words_;
}

namespace {

/// Numbers for expressions beside those of the lowered plan.
class Table {
  public:
    explicit Table(const SymOf& sym) : base_(sym) {
        sym_ = [this](std::uint32_t i) { return i < first ? base_(i) : own_[i - first]; };
    }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    std::uint32_t add(const Sym& value) {
        own_.push_back(value);
        return static_cast<std::uint32_t>(first + own_.size() - 1);
    }
    const SymOf& sym() const noexcept { return sym_; }
    Sym operator()(std::uint32_t i) const { return sym_(i); }

  private:
    static constexpr std::uint32_t first = std::uint32_t{1} << 31;
    const SymOf& base_;
    std::vector<Sym> own_;
    SymOf sym_;
};

RegClass sum_class(DType dtype) noexcept {
    return dtype == DType::f64 ? RegClass::f64 : is_float(dtype) ? RegClass::f32 : RegClass::i64;
}
DType sum_dtype(DType dtype) noexcept {
    return dtype == DType::f64 ? DType::f64 : is_float(dtype) ? DType::f32 : DType::i64;
}

/// The product as a loop that reduces over k: right for any strides, and the best form where there are few rows.
Loop as_loop(const Gemm& gemm, Table& table) {
    const std::uint32_t zero = table.add(0);
    Loop out = gemm.epilogue;
    const std::size_t batch = gemm.batch.size();
    out.outer_rank = static_cast<std::uint32_t>(batch + 2);
    out.extents = gemm.batch;
    out.extents.insert(out.extents.end(), {gemm.m, gemm.n, gemm.k});
    for (Operand& o : out.operands) {
        if (o.kind == OperandKind::accumulator) {
            // Read as the sum's register below; here it stands in its place only.
            o.kind = OperandKind::iota;
            o.offset = zero;
            o.strides.assign(batch + 3, zero);
        } else {
            o.strides.push_back(zero);
        }
    }
    const auto factor = [&](const Operand& from, bool rows) {
        Operand o = from;
        o.strides.assign(from.strides.begin(), from.strides.begin() + static_cast<std::ptrdiff_t>(batch));
        const std::uint32_t first = from.strides[batch], second = from.strides[batch + 1];
        o.strides.insert(o.strides.end(), {rows ? first : zero, rows ? zero : second, rows ? second : first});
        out.operands.push_back(std::move(o));
        return static_cast<std::uint16_t>(out.operands.size() - 1);
    };
    const std::uint16_t a = factor(gemm.a, true), b = factor(gemm.b, false);
    // Registers beyond those that a plan may name.
    constexpr std::uint16_t ra = format::max_registers, rb = ra + 1, product = ra + 2, sum = ra + 3;
    const RegClass cls = sum_class(gemm.a.dtype);
    const DType dtype = sum_dtype(gemm.a.dtype);
    Phase add{false, {}};
    const auto load = [&](std::uint16_t operand, DType from, std::uint16_t to) {
        add.instrs.push_back({.op = ScalarOp::load, .cls = class_of(from), .dst = to, .b = operand});
        if (class_of(from) != cls)
            add.instrs.push_back(
                {.op = ScalarOp::cast, .cls = cls, .from = class_of(from), .to = dtype, .dst = to, .a = to});
    };
    load(a, gemm.a.dtype, ra);
    load(b, gemm.b.dtype, rb);
    add.instrs.push_back({.op = ScalarOp::mul, .cls = cls, .dst = product, .a = ra, .b = rb});
    add.instrs.push_back({.op = ScalarOp::reduce_sum, .cls = cls, .dst = sum, .a = product});
    for (Phase& phase : out.phases) {
        phase.outer = true;
        for (Instr& i : phase.instrs)
            if (i.op == ScalarOp::load && out.operands[i.b].kind == OperandKind::iota)
                i = {.op = ScalarOp::cast, .cls = i.cls, .from = cls, .to = dtype, .dst = i.dst, .a = sum};
    }
    out.phases.insert(out.phases.begin(), std::move(add));
    return out;
}

/// The one dimension that a product's batches walk along, where there is one: extent, and strides of a and b.
struct Batch {
    Sym count = 1, a = 0, b = 0;
};
std::optional<Batch> single_batch(const Gemm& gemm, const Table& table) {
    Batch out;
    for (std::size_t d = gemm.batch.size(); d-- > 0;) {
        const Sym extent = table(gemm.batch[d]), a = table(gemm.a.strides[d]), b = table(gemm.b.strides[d]);
        if (extent == Sym(1)) continue;
        if (out.count == Sym(1)) {
            out = {extent, a, b};
        } else if (a == out.a * out.count && b == out.b * out.count) {
            out.count = out.count * extent;
        } else {
            return std::nullopt;
        }
    }
    return out;
}

/// The operand that the epilogue stores the bare sums to, row-major, if that is all it does.
const Operand* bare_store(const Gemm& gemm, const Table& table) {
    const Loop& loop = gemm.epilogue;
    if (loop.phases.size() != 1 || loop.phases[0].instrs.size() != 2) return nullptr;
    const Instr &load = loop.phases[0].instrs[0], &store = loop.phases[0].instrs[1];
    if (load.op != ScalarOp::load || store.op != ScalarOp::store || store.a != load.dst) return nullptr;
    const Operand& to = loop.operands[store.b];
    Sym step = 1;
    for (std::size_t d = to.strides.size(); d-- > 0;) {
        if (table(loop.extents[d]) != Sym(1) && table(to.strides[d]) != step) return nullptr;
        step = step * table(loop.extents[d]);
    }
    return table(to.offset) == Sym(0) && loop.operands[load.b].kind == OperandKind::accumulator ? &to : nullptr;
}

class Planner {
  public:
    Planner(const Program& program, std::span<const SymbolRange> symbols, const SymOf& sym, std::string_view prefix)
        : program_(program), table_(sym), exprs_(symbols), prefix_(prefix) {}

    Result<Generated> run() {
        for (const std::uint32_t s : program_.slots) out_.program.slots.push_back(exprs_(table_(s)));
        std::vector<std::variant<Loop, const Gemm*>> steps;
        for (const Step& step : program_.steps) {
            if (const auto* loop = std::get_if<Loop>(&step)) {
                steps.emplace_back(*loop);
            } else {
                const auto& gemm = std::get<1>(step);
                if (is_small(gemm))
                    steps.emplace_back(as_loop(gemm, table_));
                else
                    steps.emplace_back(&gemm);
            }
        }
        auto ok = is_tiny(steps) ? add_fused(steps) : add_each(steps);
        if (!ok) return std::unexpected(ok.error());
        out_.program.exprs = exprs_.take();
        return std::move(out_);
    }

  private:
    std::optional<std::int64_t> constant(std::uint32_t expr) const {
        const Sym s = table_(expr);
        return s.is_constant() ? std::optional(s.value()) : std::nullopt;
    }
    /// Multiplications of a product; sizes that are not known count as 64.
    double work_of(const Gemm& gemm) const {
        double work = 1;
        for (const std::uint32_t e : {gemm.m, gemm.n, gemm.k}) work *= static_cast<double>(constant(e).value_or(64));
        for (const std::uint32_t e : gemm.batch) work *= static_cast<double>(constant(e).value_or(64));
        return work;
    }
    bool is_small(const Gemm& gemm) const {
        constexpr double small = 1 << 20;
        constexpr std::int64_t few_rows = 4;
        return constant(gemm.m).value_or(64) <= few_rows || constant(gemm.k).value_or(64) <= few_rows ||
               work_of(gemm) <= small;
    }
    bool uses_library(const Gemm& gemm) const {
        constexpr double large = 1 << 22;
        const auto contiguous = [&](const Operand& o) {
            const Sym rows = table_(o.strides[gemm.batch.size()]), columns = table_(o.strides[gemm.batch.size() + 1]);
            return rows == Sym(1) || columns == Sym(1);
        };
        return is_float(gemm.a.dtype) && gemm.a.dtype == gemm.b.dtype && work_of(gemm) >= large && contiguous(gemm.a) &&
               contiguous(gemm.b) && single_batch(gemm, table_).has_value();
    }

    /// All steps together are less work than a launch costs.
    bool is_tiny(const std::vector<std::variant<Loop, const Gemm*>>& steps) const {
        if (steps.size() < 2) return false;
        std::int64_t total = 0;
        constexpr std::int64_t limit = 1 << 15;
        for (const auto& step : steps) {
            const auto* loop = std::get_if<Loop>(&step);
            if (loop == nullptr) return false;
            std::int64_t elements = 1;
            for (const std::uint32_t e : loop->extents) {
                const auto size = constant(e);
                if (!size || *size > limit) return false;
                elements *= std::max<std::int64_t>(*size, 1);
                if (elements > limit) return false;
            }
            total += elements;
        }
        return total <= limit;
    }

    Launch named() {
        Launch launch;
        launch.kernel = cat(prefix_, kernels_++);
        return launch;
    }
    void add_kernel(Launch launch, const Arguments& arguments, const std::string& functions, const std::string& body,
                    int threads, const Sym& blocks) {
        const std::string type = cat(launch.kernel, "_args");
        // The functions name the type too: it stands before them.
        std::string text = arguments.declaration(type) + functions;
        text += cat("extern \"C\" __global__ void __launch_bounds__(", threads, ") ", launch.kernel,
                    "(const __grid_constant__ ", type, " p) {\n", body, "}\n\n");
        out_.source += text;
        launch.blocks = exprs_(blocks);
        launch.threads = static_cast<std::uint32_t>(threads);
        arguments.fill(launch);
        out_.program.steps.emplace_back(std::move(launch));
    }

    Result<> add_fused(const std::vector<std::variant<Loop, const Gemm*>>& steps) {
        constexpr int threads = 256;
        Launch launch = named();
        Arguments arguments(exprs_);
        std::string functions, body;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const Loop& loop = std::get<0>(steps[i]);
            const Geometry geometry = geometry_of(loop, table_.sym());
            auto text = write_loop(loop, geometry, schedule_of(geometry, threads), arguments, table_.sym());
            if (!text) return std::unexpected(text.error());
            functions += cat("__device__ __forceinline__ void ", launch.kernel, "_", i, "(const ", launch.kernel,
                             "_args& p, i64 block, i64 blocks) {\n", *text, "}\n");
            if (i > 0) body += "    __syncthreads();\n";
            body += cat("    ", launch.kernel, "_", i, "(p, 0, 1);\n");
        }
        add_kernel(std::move(launch), arguments, functions, body, threads, 1);
        return {};
    }

    Result<> add_each(const std::vector<std::variant<Loop, const Gemm*>>& steps) {
        for (const auto& step : steps) {
            const auto* loop = std::get_if<Loop>(&step);
            auto ok = loop != nullptr ? add_loop(*loop) : add_gemm(**std::get_if<1>(&step));
            if (!ok) return ok;
        }
        return {};
    }

    Result<> add_loop(const Loop& loop) {
        Arguments arguments(exprs_);
        const Geometry geometry = geometry_of(loop, table_.sym());
        const Schedule schedule = schedule_of(geometry, 0);
        auto text = write_loop(loop, geometry, schedule, arguments, table_.sym());
        if (!text) return std::unexpected(text.error());
        const std::string body = "    const i64 block = blockIdx.x, blocks = gridDim.x;\n" + *text;
        add_kernel(named(), arguments, "", body, schedule.threads, schedule.blocks);
        return {};
    }

    Result<> add_gemm(const Gemm& gemm) {
        if (uses_library(gemm)) return add_product(gemm);
        Launch launch = named();
        Arguments arguments(exprs_);
        const Geometry geometry = geometry_of(gemm.epilogue, table_.sym(), false);
        auto epilogue = write_epilogue(gemm.epilogue, geometry, "sum", arguments, table_.sym());
        if (!epilogue) return std::unexpected(epilogue.error());
        const Sym m = table_(gemm.m), n = table_(gemm.n), k = table_(gemm.k);
        constexpr std::int64_t tile = 64;
        const Sym tiles = floor_div(m + Sym(tile - 1), Sym(tile)) * floor_div(n + Sym(tile - 1), Sym(tile));
        Sym batches = 1;
        for (const std::uint32_t e : gemm.batch) batches = batches * table_(e);
        const std::string_view sum_type = sum_class(gemm.a.dtype) == RegClass::f64   ? "double"
                                          : sum_class(gemm.a.dtype) == RegClass::f32 ? "float"
                                                                                     : "i64";
        std::string body =
            cat("    const i64 tiles = ", arguments.size(tiles), ";\n    for (i64 i = blockIdx.x; i < tiles * ",
                arguments.size(batches), "; i += gridDim.x) {\n    i64 batch = i / tiles;\n");
        std::string a_base = arguments.size(table_(gemm.a.offset)), b_base = arguments.size(table_(gemm.b.offset));
        for (std::size_t d = gemm.batch.size(); d-- > 0;) {
            const std::string extent = arguments.size(table_(gemm.batch[d]));
            body += cat("    const i64 o", d, " = batch % ", extent, "; batch /= ", extent, ";\n");
            a_base += cat(" + o", d, " * (i64)", arguments.size(table_(gemm.a.strides[d])));
            b_base += cat(" + o", d, " * (i64)", arguments.size(table_(gemm.b.strides[d])));
        }
        const auto factor = [&](const Operand& o, std::string_view name, const std::string& base) {
            const std::size_t batch = gemm.batch.size();
            return cat("    const ", storage_type(o.dtype), "* const ", name, " = ",
                       arguments.address(o.space, o.index, storage_type(o.dtype)), " + ", base,
                       ";\n    const auto read_", name, " = [&](i64 x, i64 y) { return (", sum_type, ")reg(", name,
                       "[x * ", arguments.size(table_(o.strides[batch])), " + y * ",
                       arguments.size(table_(o.strides[batch + 1])), "]); };\n");
        };
        body += factor(gemm.a, "a", a_base) + factor(gemm.b, "b", b_base);
        body += cat("    gemm_tile<", sum_type, ">(", arguments.size(m), ", ", arguments.size(n), ", ",
                    arguments.size(k), ", i % tiles, read_a, read_b, [&](i64 o", gemm.batch.size(), ", i64 o",
                    gemm.batch.size() + 1, ", ", sum_type, " sum) {\n", *epilogue, "    });\n    }\n");
        constexpr std::int64_t max_blocks = (std::int64_t{1} << 31) - 1;
        add_kernel(std::move(launch), arguments, "", body, 256, min(tiles * batches, Sym(max_blocks)));
        return {};
    }

    Buffer buffer_of(const Operand& o) {
        return {o.space, o.index, exprs_(table_(o.offset) * Sym(static_cast<std::int64_t>(size_of(o.dtype))))};
    }

    Result<> add_product(const Gemm& gemm) {
        const Batch batch = *single_batch(gemm, table_);
        const std::size_t at = gemm.batch.size();
        Product p;
        p.dtype = gemm.a.dtype;
        p.a = buffer_of(gemm.a);
        p.b = buffer_of(gemm.b);
        p.batch = exprs_(batch.count);
        p.m = exprs_(table_(gemm.m));
        p.n = exprs_(table_(gemm.n));
        p.k = exprs_(table_(gemm.k));
        p.a_batch = exprs_(batch.a);
        p.b_batch = exprs_(batch.b);
        p.a_m = exprs_(table_(gemm.a.strides[at]));
        p.a_k = exprs_(table_(gemm.a.strides[at + 1]));
        p.b_k = exprs_(table_(gemm.b.strides[at]));
        p.b_n = exprs_(table_(gemm.b.strides[at + 1]));
        const Operand* bare = bare_store(gemm, table_);
        // Rounded to the factors' dtype between product and epilogue, as PyTorch's kernels do.
        p.result = bare != nullptr && bare->dtype == DType::f32 ? DType::f32 : gemm.a.dtype;
        if (bare != nullptr && bare->dtype == p.result) {
            p.c = buffer_of(*bare);
            out_.program.steps.emplace_back(p);
            return {};
        }
        const Sym elements = batch.count * table_(gemm.m) * table_(gemm.n);
        p.c = {Space::slot, static_cast<std::uint32_t>(out_.program.slots.size()), exprs_(Sym(0))};
        out_.program.slots.push_back(exprs_(elements * Sym(static_cast<std::int64_t>(size_of(p.result)))));
        Loop loop = gemm.epilogue;
        for (Operand& o : loop.operands) {
            if (o.kind != OperandKind::accumulator) continue;
            o = {OperandKind::tensor, p.result, Space::slot, p.c.index, table_.add(0), {}};
            Shape extents;
            for (const std::uint32_t e : loop.extents) extents.push_back(table_(e));
            for (const Sym& s : row_major(extents)) o.strides.push_back(table_.add(s));
        }
        out_.program.steps.emplace_back(p);
        return add_loop(loop);
    }

    const Program& program_;
    Table table_;
    ExprPool exprs_;
    std::string prefix_;
    Generated out_;
    std::size_t kernels_ = 0;
};

}  // namespace

Result<Generated> generate(const Program& program, std::span<const SymbolRange> symbols, const SymOf& sym,
                           std::string_view prefix) {
    return Planner(program, symbols, sym, prefix).run();
}

}  // namespace lyo::cuda
