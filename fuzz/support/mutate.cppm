// Changes to artifacts that get past the digests: what is behind them is what a fuzzer must reach.
export module lyo.fuzz:mutate;

import lyo.prelude;
import :random;
import :parts;

namespace lyo::fuzz {

/// One change to one field or list of `parts`, valid or not.
export void mutate(Parts& parts, Random& random);

/// A file like `input` with something changed and every digest repaired: a field of its decoded form, bytes of a
/// section, the header, the table. At most `max_size` bytes; empty where nothing that small was found. Now and then a
/// new artifact.
export Buffer mutate(std::span<const std::byte> input, Random& random, std::size_t max_size);

}  // namespace lyo::fuzz
