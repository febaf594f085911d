// The body of one loop as CUDA C++.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;
import :cuda;

namespace lyo::cuda {
namespace {

constexpr std::string_view class_type(RegClass cls) noexcept {
    constexpr std::string_view names[] = {"float", "double", "i32", "i64"};
    return names[static_cast<std::size_t>(cls)];
}

/// A constant of the loop's table as a literal of its class, exact.
std::string literal(std::uint64_t bits, RegClass cls) {
    char text[64];
    if (cls == RegClass::i32 || cls == RegClass::i64) {
        const auto value = static_cast<std::int64_t>(bits);
        // The lowest number has no literal of its own.
        if (cls == RegClass::i64 && value == std::numeric_limits<std::int64_t>::min())
            return "(-9223372036854775807ll - 1)";
        return cls == RegClass::i64 ? cat("(", value, "ll)") : cat("((i32)", value, "ll)");
    }
    const auto value = std::bit_cast<double>(bits);
    if (cls == RegClass::f64) {
        std::snprintf(text, sizeof text, "__longlong_as_double(0x%016llxll)", static_cast<unsigned long long>(bits));
    } else {
        const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
        std::snprintf(text, sizeof text, "__uint_as_float(0x%08xu)", single);
    }
    return text;
}

struct Reduction {
    std::string_view op;
    bool candidate = false;
};
std::optional<Reduction> reduction_of(ScalarOp op) noexcept {
    switch (op) {
        case ScalarOp::reduce_sum:
            return Reduction{"Sum"};
        case ScalarOp::reduce_prod:
            return Reduction{"Prod"};
        case ScalarOp::reduce_max:
            return Reduction{"Max"};
        case ScalarOp::reduce_min:
            return Reduction{"Min"};
        case ScalarOp::reduce_argmax:
            return Reduction{"ArgMax", true};
        case ScalarOp::reduce_argmin:
            return Reduction{"ArgMin", true};
        default:
            return std::nullopt;
    }
}

/// What a reduction of nothing gives.
std::string identity(ScalarOp op, RegClass cls) {
    if (op == ScalarOp::reduce_sum) return "0";
    if (op == ScalarOp::reduce_prod) return "1";
    const bool greatest = op == ScalarOp::reduce_max;
    if (cls == RegClass::f32 || cls == RegClass::f64)
        return literal(std::bit_cast<std::uint64_t>(greatest ? -std::numeric_limits<double>::infinity()
                                                             : std::numeric_limits<double>::infinity()),
                       cls);
    if (cls == RegClass::i64)
        return literal(static_cast<std::uint64_t>(greatest ? std::numeric_limits<std::int64_t>::min()
                                                           : std::numeric_limits<std::int64_t>::max()),
                       cls);
    return greatest ? "(-2147483647 - 1)" : "2147483647";
}

class LoopSource {
  public:
    LoopSource(const Loop& loop, const Geometry& geometry, const Schedule& schedule, Arguments& arguments,
               const SymOf& sym)
        : loop_(loop),
          g_(geometry),
          s_(schedule),
          args_(arguments),
          sym_(sym),
          index_(geometry.small ? "int" : "i64") {}

    /// The epilogue of a matrix product: coordinates are o0, o1, ..., and the sum has the name `sum`.
    Result<std::string> run_at_element(std::string_view sum) {
        for (const Phase& phase : loop_.phases) {
            std::map<std::uint16_t, std::string> given;
            for (const Instr& i : phase.instrs)
                if (i.op == ScalarOp::load && g_.views[i.b].operand->kind == OperandKind::accumulator) given[i.b] = sum;
            if (auto ok = write_phase(phase, 1, true, given, ""); !ok) return std::unexpected(ok.error());
        }
        return std::move(out_);
    }

    Result<std::string> run() {
        if (auto ok = g_.reduces ? write_rows() : write_elements(); !ok) return std::unexpected(ok.error());
        return std::move(out_);
    }

  private:
    void line(std::string_view text) { out_ += cat("    ", text, "\n"); }

    /// Declares a coordinate for each dimension, from a linear number of packs along the last one.
    void coordinates(const Shape& extents, std::string_view linear, std::string_view name, int lanes) {
        if (extents.empty()) return;
        if (extents.size() == 1) {
            line(cat("const ", index_, " ", name, "0 = (", linear, ") * ", lanes, ";"));
            return;
        }
        line(cat(index_, " ", name, " = ", linear, ";"));
        for (std::size_t d = extents.size(); d-- > 1;) {
            const bool last = d + 1 == extents.size();
            const std::string extent = args_.size(last && lanes > 1 ? floor_div(extents[d], Sym(lanes)) : extents[d]);
            line(cat("const ", index_, " ", name, d, " = ", name, " % (", index_, ")", extent,
                     last && lanes > 1 ? cat(" * ", lanes) : "", "; ", name, " /= (", index_, ")", extent, ";"));
        }
        line(cat("const ", index_, " ", name, "0 = ", name, ";"));
    }

    void add_terms(std::string& sum, const Shape& strides, std::string_view name) {
        for (std::size_t d = 0; d < strides.size(); ++d) {
            if (strides[d] == Sym(0)) continue;
            sum += cat(sum.empty() ? "" : " + ", name, d);
            if (strides[d] != Sym(1)) sum += cat(" * (", index_, ")", args_.size(strides[d]));
        }
    }
    /// The element's number in its memory, for the coordinates that are declared.
    std::string place(const View& v, bool within_row) {
        std::string sum = v.offset == Sym(0) ? "" : cat("(", index_, ")", args_.size(v.offset));
        add_terms(sum, v.outer, "o");
        if (within_row) add_terms(sum, v.reduced, "r");
        return sum.empty() ? "0" : sum;
    }
    std::string address(const View& v) {
        return args_.address(v.operand->space, v.operand->index, storage_type(v.operand->dtype));
    }

    /// The stride along the dimension that lanes lie in.
    const Shape& lane_strides(const View& v) const { return g_.reduces ? v.reduced : v.outer; }
    bool is_packed(const View& v, int lanes) const {
        const Shape& inner = lane_strides(v);
        if (lanes == 1 || inner.empty() || inner.back() != Sym(1) || !is_multiple(v.offset, lanes)) return false;
        const auto aligned = [&](const Shape& strides, bool skip_last) {
            for (std::size_t d = 0; d + (skip_last ? 1 : 0) < strides.size(); ++d)
                if (!is_multiple(strides[d], lanes)) return false;
            return true;
        };
        return aligned(v.outer, !g_.reduces) && aligned(v.reduced, g_.reduces);
    }
    Sym lane_stride(const View& v) const {
        const Shape& inner = lane_strides(v);
        return inner.empty() ? Sym(0) : inner.back();
    }

    std::string fresh(std::string_view prefix) { return cat(prefix, next_++); }

    /// A variable that holds a pack, or the one element that all lanes have.
    struct Loaded {
        std::string name;
        bool packed = false;
        /// The element of lane j, as a register.
        std::string element() const { return cat("reg(", name, packed ? ".at[j])" : ")"); }
    };

    /// Statements before the lanes: a load's pack, under a name.
    Loaded load(std::uint16_t operand, int lanes, bool within_row) {
        const View& v = g_.views[operand];
        const std::string type(storage_type(v.operand->dtype)), name = fresh("l"), from = place(v, within_row);
        if (lanes == 1 || lane_stride(v) == Sym(0)) {
            line(cat("const ", type, " ", name, " = ", address(v), "[", from, "];"));
            return {name, false};
        }
        if (is_packed(v, lanes)) {
            line(cat("const Pack<", type, ", ", lanes, "> ", name, " = *(const Pack<", type, ", ", lanes, ">*)(",
                     address(v), " + (", from, "));"));
        } else {
            line(cat("Pack<", type, ", ", lanes, "> ", name, ";"));
            line("#pragma unroll");
            line(cat("for (int j = 0; j < ", lanes, "; ++j) ", name, ".at[j] = ", address(v), "[", from, " + j * (",
                     index_, ")", args_.size(lane_stride(v)), "];"));
        }
        return {name, true};
    }

    /// One phase's instructions for `lanes` neighbouring elements whose coordinates are declared. `cached` names packs
    /// that are in registers already; `store_if` is a condition on who stores, or empty.
    Result<> write_phase(const Phase& phase, int lanes, bool within_row,
                         const std::map<std::uint16_t, std::string>& cached, std::string_view store_if) {
        std::map<std::uint16_t, std::string> loads;
        for (const Instr& i : phase.instrs)
            if (i.op == ScalarOp::load && !loads.contains(i.b)) {
                const auto at = cached.find(i.b);
                loads[i.b] = at != cached.end() ? at->second : load(i.b, lanes, within_row).element();
            }
        std::vector<std::uint16_t> stores;
        for (const Instr& i : phase.instrs)
            if (i.op == ScalarOp::store && lanes > 1) {
                line(cat("Pack<", storage_type(g_.views[i.b].operand->dtype), ", ", lanes, "> s", stores.size(), ";"));
                stores.push_back(i.b);
            }
        if (lanes > 1) {
            line("#pragma unroll");
            line(cat("for (int j = 0; j < ", lanes, "; ++j) {"));
        }
        std::size_t store = 0;
        for (const Instr& i : phase.instrs) {
            if (i.op == ScalarOp::store) {
                const View& v = g_.views[i.b];
                const std::string type(storage_type(v.operand->dtype));
                if (lanes > 1)
                    line(cat("s", store++, ".at[j] = Stored<", type, ">::of(", regs_[i.a], ");"));
                else
                    line(cat(store_if.empty() ? "" : cat("if (", store_if, ") "), address(v), "[", place(v, within_row),
                             "] = Stored<", type, ">::of(", regs_[i.a], ");"));
            } else if (auto ok = write_instr(i, loads, lanes, within_row); !ok) {
                return ok;
            }
        }
        if (lanes > 1) line("}");
        for (std::size_t k = 0; k < stores.size(); ++k) {
            const View& v = g_.views[stores[k]];
            const std::string type(storage_type(v.operand->dtype)), to = place(v, within_row);
            if (!store_if.empty()) line(cat("if (", store_if, ")"));
            if (is_packed(v, lanes)) {
                line(cat("*(Pack<", type, ", ", lanes, ">*)(", address(v), " + (", to, ")) = s", k, ";"));
            } else {
                line(cat("for (int j = 0; j < ", lanes, "; ++j) ", address(v), "[", to, " + j * (", index_, ")",
                         args_.size(lane_stride(v)), "] = s", k, ".at[j];"));
            }
        }
        return {};
    }

    void define(const Instr& i, RegClass cls, std::string_view value) {
        regs_[i.dst] = fresh("v");
        line(cat("const ", class_type(cls), " ", regs_[i.dst], " = ", value, ";"));
    }

    Result<> write_instr(const Instr& i, const std::map<std::uint16_t, std::string>& loads, int lanes,
                         bool within_row) {
        switch (i.op) {
            case ScalarOp::load:
                define(i, i.cls, loads.find(i.b)->second);
                return {};
            case ScalarOp::constant:
                define(i, i.cls, literal(loop_.constants[i.b], i.cls));
                return {};
            case ScalarOp::iota: {
                const View& v = g_.views[i.b];
                std::string value = cat("(i64)(", place(v, within_row), ")");
                if (lanes > 1) value += cat(" + j * (i64)", args_.size(lane_stride(v)));
                define(i, i.cls, cat("(", class_type(i.cls), ")(", value, ")"));
                return {};
            }
            case ScalarOp::symbol:
                define(i, i.cls, cat("(", class_type(i.cls), ")", args_.size(sym_(i.b))));
                return {};
            case ScalarOp::cast:
                define(i, i.cls, cat("to_", to_string(i.to), "(", regs_[i.a], ")"));
                return {};
            case ScalarOp::select:
                define(i, i.cls, cat(regs_[i.a], " != 0 ? ", regs_[i.b], " : ", regs_[i.c]));
                return {};
            case ScalarOp::load_at: {
                const View& v = g_.views[i.b];
                define(i, i.cls, cat("reg(", address(v), "[(i64)(", place(v, within_row), ") + ", regs_[i.a], "])"));
                return {};
            }
            case ScalarOp::check_index:
                define(i, i.cls, cat("checked_index(", regs_[i.a], ", ", args_.size(sym_(i.b)), ")"));
                return {};
            default:
                break;
        }
        if (const auto reduction = reduction_of(i.op)) {
            const std::string& acc = accumulators_[i.dst];
            const std::string cls(class_type(i.cls));
            if (reduction->candidate) {
                const std::string at = cat("(i64)", linear_ ? *linear_ : std::string("0"), lanes > 1 ? " + j" : "");
                line(cat(acc, " = ", reduction->op, "::join(", acc, ", Candidate<", cls, ">{", regs_[i.a], ", ", at,
                         "});"));
            } else {
                line(cat(acc, " = ", reduction->op, "::join(", acc, ", ", regs_[i.a], ");"));
            }
            return {};
        }
        const OpKind kind = kind_of(i.op);
        const RegClass cls = kind == OpKind::compare || kind == OpKind::test ? RegClass::i32 : i.cls;
        define(i, cls,
               arity_of(i.op) == 1 ? cat("op_", to_string(i.op), "(", regs_[i.a], ")")
                                   : cat("op_", to_string(i.op), "(", regs_[i.a], ", ", regs_[i.b], ")"));
        return {};
    }

    /// No reductions: each thread takes packs of neighbouring elements.
    Result<> write_elements() {
        const int lanes = s_.lanes;
        line(cat("const ", index_, " count = ", args_.size(g_.outer_count), ";"));
        const bool tail = lanes > 1 && !is_multiple(g_.outer_count, lanes);
        line(cat("for (", index_, " i = (", index_, ")block * ", s_.threads, " + threadIdx.x; i < (count + ", lanes - 1,
                 ") / ", lanes, "; i += (", index_, ")blocks * ", s_.threads, ") {"));
        if (tail) line(cat("if ((i + 1) * ", lanes, " <= count) {"));
        coordinates(g_.outer, "i", "o", lanes);
        for (const Phase& phase : loop_.phases)
            if (auto ok = write_phase(phase, lanes, true, {}, ""); !ok) return ok;
        if (tail) {
            line("} else {");
            line(cat("for (", index_, " o0 = i * ", lanes, "; o0 < count; ++o0) {"));
            for (const Phase& phase : loop_.phases)
                if (auto ok = write_phase(phase, 1, true, {}, ""); !ok) return ok;
            line("}");
            line("}");
        }
        line("}");
        return {};
    }

    /// Operands that more than one full phase reads are kept in registers where a row's length is known.
    std::set<std::uint16_t> kept_operands() const {
        std::map<std::uint16_t, int> phases;
        for (const Phase& phase : loop_.phases) {
            if (phase.outer) continue;
            std::set<std::uint16_t> here;
            for (const Instr& i : phase.instrs)
                if (i.op == ScalarOp::load) here.insert(i.b);
            for (const std::uint16_t o : here) ++phases[o];
        }
        std::set<std::uint16_t> out;
        std::size_t bytes = 0;
        constexpr std::size_t room = 256;  // bytes of registers a thread can spare
        for (const auto& [operand, count] : phases) {
            const std::size_t needs = static_cast<std::size_t>(s_.items * s_.lanes) *
                                      std::max<std::size_t>(size_of(g_.views[operand].operand->dtype), 4);
            if (count < 2 || s_.items == 0 || bytes + needs > room) continue;
            bytes += needs;
            out.insert(operand);
        }
        return out;
    }

    Result<> write_rows() {
        const int rows = s_.columns ? 32 : s_.threads / s_.width;
        line(cat("const ", index_, " count = ", args_.size(g_.outer_count), ", length = ", args_.size(g_.reduced_count),
                 ";"));
        line(cat("__shared__ alignas(16) char scratch[", (s_.columns ? s_.threads : 32) * 16, "];"));
        line(s_.columns ? cat("const int t = threadIdx.x / 32, own = threadIdx.x % 32;")
                        : cat("const int t = threadIdx.x % ", s_.width, ", own = threadIdx.x / ", s_.width, ";"));
        line(cat("for (", index_, " first = (", index_, ")block * ", rows, "; first < count; first += (", index_,
                 ")blocks * ", rows, ") {"));
        // A thread whose row is beyond the last one computes the last one again and stores nothing.
        line(cat("const bool valid = first + own < count;"));
        line(cat("const ", index_, " row = valid ? first + own : count - 1;"));
        coordinates(g_.outer, "row", "o", 1);
        const std::set<std::uint16_t> kept = kept_operands();
        std::map<std::uint16_t, std::string> names;
        for (const std::uint16_t o : kept) {
            names[o] = fresh("k");
            line(cat("Pack<", storage_type(g_.views[o].operand->dtype), ", ", s_.lanes, "> ", names[o], "[", s_.items,
                     "];"));
        }
        std::set<std::uint16_t> filled;
        for (const Phase& phase : loop_.phases) {
            auto ok =
                phase.outer ? write_phase(phase, 1, false, {}, "valid && t == 0") : write_full(phase, names, filled);
            if (!ok) return ok;
        }
        line("}");
        return {};
    }

    /// A phase over the elements of each row, and what its reductions give.
    Result<> write_full(const Phase& phase, const std::map<std::uint16_t, std::string>& kept,
                        std::set<std::uint16_t>& filled) {
        accumulators_.clear();
        for (const Instr& i : phase.instrs) {
            const auto reduction = reduction_of(i.op);
            if (!reduction) continue;
            const std::string name = accumulators_[i.dst] = fresh("a"), cls(class_type(i.cls));
            if (reduction->candidate)
                line(cat("Candidate<", cls, "> ", name, "{0, -1};"));
            else
                line(cat(cls, " ", name, " = ", identity(i.op, i.cls), ";"));
        }
        const int lanes = s_.lanes;
        if (s_.items > 0) {
            line("#pragma unroll");
            line(cat("for (int k = 0; k < ", s_.items, "; ++k) {"));
            line(cat("const ", index_, " at = (k * ", s_.width, " + t) * ", lanes, ";"));
            line("if (at < length) {");
        } else {
            line(cat("for (", index_, " at = (", index_, ")t * ", lanes, "; at < length; at += ", s_.width * lanes,
                     ") {"));
        }
        coordinates(g_.reduced, lanes > 1 ? cat("at / ", lanes) : "at", "r", lanes);
        std::map<std::uint16_t, std::string> cached;
        for (const Instr& i : phase.instrs) {
            const auto at = i.op == ScalarOp::load ? kept.find(i.b) : kept.end();
            if (at == kept.end() || cached.contains(i.b)) continue;
            if (filled.insert(i.b).second) {
                const Loaded loaded = load(i.b, lanes, true);
                if (loaded.packed) {
                    line(cat(at->second, "[k] = ", loaded.name, ";"));
                } else {
                    line("#pragma unroll");
                    line(cat("for (int j = 0; j < ", lanes, "; ++j) ", at->second, "[k].at[j] = ", loaded.name, ";"));
                }
            }
            cached[i.b] = cat("reg(", at->second, "[k].at[", lanes > 1 ? "j" : "0", "])");
        }
        linear_ = "at";
        if (auto ok = write_phase(phase, lanes, true, cached, "valid"); !ok) return ok;
        linear_.reset();
        line(s_.items > 0 ? "}\n    }" : "}");
        for (const Instr& i : phase.instrs) {
            const auto reduction = reduction_of(i.op);
            if (!reduction) continue;
            const std::string& acc = accumulators_[i.dst];
            const std::string cls(class_type(i.cls)), type = reduction->candidate ? cat("Candidate<", cls, ">") : cls;
            const std::string call = cat(s_.columns ? "down_columns<" : "across_row<", reduction->op, ", ", s_.width,
                                         ">(", acc, ", (", type, "*)scratch)");
            if (reduction->candidate) {
                line(cat("const ", type, " c", acc, " = ", call, ";"));
                define(i, RegClass::i64, cat("c", acc, ".index < 0 ? 0 : c", acc, ".index"));
            } else {
                define(i, i.cls, call);
            }
        }
        return {};
    }

  private:
    const Loop& loop_;
    const Geometry& g_;
    const Schedule& s_;
    Arguments& args_;
    const SymOf& sym_;  // for the `symbol` instruction
    std::string index_;
    std::string out_;
    std::size_t next_ = 0;
    std::map<std::uint16_t, std::string> regs_, accumulators_;
    std::optional<std::string> linear_;
};

}  // namespace

Result<std::string> write_loop(const Loop& loop, const Geometry& geometry, const Schedule& schedule,
                               Arguments& arguments, const SymOf& sym) {
    return LoopSource(loop, geometry, schedule, arguments, sym).run();
}

Result<std::string> write_epilogue(const Loop& loop, const Geometry& geometry, std::string_view sum,
                                   Arguments& arguments, const SymOf& sym) {
    const Schedule none;
    return LoopSource(loop, geometry, none, arguments, sym).run_at_element(sum);
}

}  // namespace lyo::cuda
