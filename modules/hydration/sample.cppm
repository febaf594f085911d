// Inputs for a function that nobody has inputs for: round trips, benchmarks and fuzzing call what they load.
export module lyo.hydration:sample;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo {

/// Row-major CPU tensors that satisfy the function's signature and guards; the same for the same arguments, anywhere.
/// Reals are multiples of 1/64 in [-1, 1], integers and booleans 0 or 1; seed 0 gives zeros throughout. Each symbol
/// gets the value nearest to a preferred one that the guards allow: 2 for seed 1, then 3, 4, 2, ... with the seeds. A
/// search that is bounded finds it, so functions with contrived guards may be refused.
/// Errors: guard_failed (no sizes found), limit_exceeded (all inputs together have more than `max_elements` elements),
/// out_of_memory.
export [[nodiscard]] Result<std::vector<Tensor>> sample_inputs(const FunctionSpec& spec, std::uint64_t seed,
                                                               std::uint64_t max_elements);

}  // namespace lyo
