// From the lowered plan to CUDA C++, to launches, to machine code.
module lyo.compiler:cuda;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;
import :kernels;

namespace lyo::cuda {

/// The expression behind a number in the lowered plan's table.
using SymOf = std::function<Sym(std::uint32_t)>;

/// What a kernel is given: addresses and sizes that are not constant. Each is asked for by name while code is written.
class Arguments {
  public:
    explicit Arguments(ExprPool& exprs) : exprs_(&exprs) {}
    /// C++ for the address of memory, as elements of a C++ type.
    std::string address(Space space, std::uint32_t index, std::string_view type);
    /// C++ for a size: a literal where it is constant.
    std::string size(const Sym& value);
    /// The parameter's declaration, and its fields in a launch.
    std::string declaration(std::string_view name) const;
    void fill(Launch& launch) const;

  private:
    ExprPool* exprs_;
    std::vector<Buffer> buffers_;
    std::vector<std::uint32_t> words_;
    std::map<std::string, std::size_t> known_words_;
};

/// A view as the writer of a loop sees it: sizes as expressions.
struct View {
    const Operand* operand = nullptr;
    Sym offset = 0;
    Shape outer, reduced;  // strides, collapsed
};

/// A loop with its dimensions collapsed.
struct Geometry {
    Shape outer, reduced;  // extents
    std::vector<View> views;
    Sym outer_count = 1, reduced_count = 1;
    bool reduces = false;
    bool small = false;  // every index fits 32 bits, provably
};
Geometry geometry_of(const Loop& loop, const SymOf& sym, bool collapsed = true);

/// How a loop's work is spread over threads.
struct Schedule {
    int threads = 256;     ///< of a block
    int width = 1;         ///< threads that share a row (reductions)
    bool columns = false;  ///< 32 rows side by side in a block, `width` threads down each
    int lanes = 1;         ///< neighbouring elements that a thread takes at once
    int items = 0;         ///< packs a thread takes of each row, when that number is known; else 0
    Sym blocks = 1;
};
/// `threads`: the block's size where it is given (kernels of several steps), or 0.
Schedule schedule_of(const Geometry& geometry, int threads);

/// The body of a device function: `block` and `blocks` say which part of the loop it does. Errors:
/// unsupported_operator.
Result<std::string> write_loop(const Loop& loop, const Geometry& geometry, const Schedule& schedule,
                               Arguments& arguments, const SymOf& sym);

/// What becomes of one sum of a matrix product, whose coordinates are declared as o0, o1, ...: `geometry` is not
/// collapsed.
Result<std::string> write_epilogue(const Loop& loop, const Geometry& geometry, std::string_view sum,
                                   Arguments& arguments, const SymOf& sym);

/// C++ type that holds a dtype in memory.
std::string_view storage_type(DType dtype) noexcept;
/// True when the value is a multiple of `n` for all values of its symbols.
bool is_multiple(const Sym& value, std::int64_t n);

/// A plan's launches and the source of their kernels.
struct Generated {
    DeviceProgram program;
    std::string source;
};
/// `prefix` begins the kernels' names. Errors: unsupported_operator (an instruction that has no CUDA form).
Result<Generated> generate(const Program& program, std::span<const SymbolRange> symbols, const SymOf& sym,
                           std::string_view prefix);

/// Machine code (target "cuda:sm_90", ...) or PTX with its NUL (target "cuda:ptx"), by NVRTC, which is opened at run
/// time. Errors: no_image (NVRTC is not there, or does not know the target), bad_value (its complaint).
Result<std::vector<std::byte>> assemble(const std::string& source, std::string_view target);
/// "13.0". Errors: no_image (NVRTC is not there).
Result<std::string> nvrtc_version();
/// "cuda:sm_NN" or "cuda:ptx".
bool is_target(std::string_view target) noexcept;
/// The header that generated code begins with: kernels/jit/*.cuh.
std::string_view prelude() noexcept;

}  // namespace lyo::cuda
