// Sizes and conditions as torch writes them: sympy's srepr ("Mul(Integer(2), Symbol('s0', integer=True))"), and Python
// ("2*s0", "L['x'].size()[0] % 8 == 0").
module lyo.importer:expr;

import lyo.prelude;
import lyo.base;
import lyo.graph;

namespace lyo {

/// The size of a dimension of a user input, for conditions that name it as L['x'].size()[0].
using SizeOf = std::function<std::optional<Sym>(std::string_view input, std::int64_t dim)>;

/// A size. Errors: unsupported_argument (a form that Sym has no place for), bad_model (no expression).
Result<Sym> parse_size(std::string_view text);

/// A condition as relations that hold together. Errors as in parse_size: "a != b" or "a or b", for one, are no
/// relations.
Result<std::vector<Relation>> parse_condition(std::string_view text, const SizeOf& size_of);

/// Whether a shape is small enough to compute with: products of sizes are expanded, so their cost is the product of the
/// numbers of their terms.
bool is_tractable(const Shape& shape);

}  // namespace lyo
