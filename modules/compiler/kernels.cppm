// The compiler's own form of a function, between graph and plan: items (one kernel-able operation each) that read
// memory through strided accesses, gathered into groups (one kernel each).
module lyo.compiler:kernels;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import lyo.artifact;

namespace lyo {

/// Where a value's memory is.
struct BaseId {
    enum class Kind : std::uint8_t { input, constant, item };
    Kind kind = Kind::input;
    std::uint32_t index = 0;
    friend bool operator==(BaseId, BaseId) = default;
    friend auto operator<=>(BaseId, BaseId) = default;
};

/// A strided reading of a row-major base, as the value it stands for: offset and strides in elements.
struct Access {
    BaseId base;
    StridedView view;
};

/// One operation. Its operands broadcast to its shape, right-aligned.
struct Item {
    enum class Kind : std::uint8_t { pointwise, copy, arange, reduction, matmul, cat, take };
    Kind kind = Kind::pointwise;
    const Node* node = nullptr;
    TensorType type;
    /// One per parameter of the operator (pointwise); the operands (others).
    std::vector<std::optional<Access>> operands;
    std::vector<std::size_t> reduced;  // axes of the operand, ascending
    bool keepdim = false;
    std::size_t cat_dim = 0;
    std::uint32_t group = 0;

    /// Operand `o` is needed as memory: a factor of a product, what elements are taken from.
    bool takes_address(const std::optional<Access>& o) const noexcept {
        return kind == Kind::matmul || (kind == Kind::take && &o == operands.data());
    }
    /// No tensor is read: its value is written into whoever uses it.
    bool is_inline() const noexcept;
};

/// Items that run as one kernel over `space`; the axes in `reduced` are reduced within it.
struct Group {
    std::vector<std::uint32_t> items;  // ascending
    Shape space;
    std::vector<std::size_t> reduced;
    bool matmul = false;  // one item is a matrix product, the others its epilogue
    bool cat = false;
    bool alive = true;
};

/// A function as items and groups. `outputs` are the accesses that the graph returns.
struct Flow {
    const Graph* graph = nullptr;
    std::vector<Item> items;
    std::vector<Group> groups;
    std::vector<Access> outputs;
    std::vector<std::uint32_t> order;  // of the groups that are alive
};

/// The shape of a reduction's results within a group's space.
Shape kept_shape(const Shape& space, std::span<const std::size_t> reduced);
Shape squeezed_shape(const Shape& space, std::span<const std::size_t> reduced);
Shape row_major(const Shape& shape);
DType dtype_of(const Flow& f, BaseId base);
const Shape& shape_of(const Flow& f, BaseId base);

/// Strides of an access over the axes of `space`, or nullopt when the reader's shape has no place in it. `shape` is the
/// reader's: the space itself, or the shape of its reductions, kept or squeezed.
std::optional<Shape> space_strides(const Access& access, const Shape& shape, const Group& group);

/// True when reading `access` at each element of the reader is reading the value that `item` computed there.
bool reads_in_place(const Access& access, const Shape& reader, const Item& item, const Group& group);

/// Graph to items; copies are added where no strides describe a view. Errors: those of view functions.
Result<Flow> make_items(const Graph& graph);

/// Gathers items into groups, at most `max_items` in one, and orders them.
void make_groups(Flow& f, std::size_t max_items);

/// Expressions of a plan, each once.
class ExprPool {
  public:
    explicit ExprPool(std::span<const SymbolRange> symbols);
    std::uint32_t operator()(const Sym& sym);
    std::vector<Expr> take() { return std::move(exprs_); }
    /// What each entry that was asked for stands for.
    const std::map<std::uint32_t, Sym>& syms() const noexcept { return syms_; }

  private:
    std::uint32_t add(const Expr& expr);
    std::map<std::string, std::uint32_t, std::less<>> symbols_;
    std::map<std::string, std::uint32_t> known_;
    std::map<std::uint32_t, Sym> syms_;
    std::map<std::tuple<ExprOp, std::int64_t, std::uint32_t, std::uint32_t>, std::uint32_t> entries_;
    std::vector<Expr> exprs_;
};

/// Where the lowered plan puts each base, while memory is being planned: items in slots of their own.
struct Placement {
    Space space = Space::slot;
    std::uint32_t index = 0;
};

/// What lowering one group needs of the whole.
struct LowerContext {
    const Flow& f;
    ExprPool& exprs;
    const std::map<BaseId, Placement>& places;
    /// Items whose values are read outside their group, and the outputs they are: places to store to.
    const std::map<std::uint32_t, std::vector<Placement>>& stores;
};

/// The steps of one group. Errors: limit_exceeded when the group needs more registers than a loop has (the caller then
/// makes smaller groups).
Result<std::vector<Step>> lower_group(const LowerContext& context, const Group& group);

/// A loop that copies an access to row-major memory.
Loop copy_loop(const LowerContext& context, const Access& access, DType dtype, Placement to);

/// Merges slots that are not in use at the same time. `sizes` are the slots' bytes.
void plan_memory(Program& program, std::vector<Sym> sizes, ExprPool& exprs);

}  // namespace lyo
