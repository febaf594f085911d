// Graphs as values: digests that caches find them by, and graphs made for given sizes.
export module lyo.graph:canonical;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;

namespace lyo {

/// What a compiled function depends on, in parts that say what changed between two models.
export struct GraphDigests {
    Digest code;       ///< operators, arguments, types, names
    Digest constants;  ///< contents of the weights
    Digest sizes;      ///< symbols, their ranges, relations between them
};
/// The same on every machine. The same digests mean the same graph: everything is encoded with its length and kind.
export GraphDigests digests(const Graph& graph);

/// The expression with some symbols replaced by numbers.
export Sym substitute(const Sym& value, const std::map<std::string, std::int64_t>& sizes);
/// The graph for these values of some of its symbols; others stay. Errors: invalid_argument (no such symbol, a value
/// outside its range), guard_failed (a relation between sizes that would not hold).
export Result<Graph> specialize(const Graph& graph, const std::map<std::string, std::int64_t>& sizes);

}  // namespace lyo
