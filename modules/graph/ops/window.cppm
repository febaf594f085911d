// What convolutions and pooling share.
module lyo.graph:window;

import lyo.prelude;
import lyo.base;
import :sym;
import :ir;
import :op;
import :build;
import :ops;
import :tools;

namespace lyo::ops {

std::span<const OpDef> convolution();  // convolution.cpp
std::span<const OpDef> pooling();      // pooling.cpp

/// The int[] argument `i`, one number a spatial dimension; a single one counts for all. Errors: bad_graph,
/// unsupported_argument.
Result<std::vector<std::int64_t>> spread(const NodeView& node, std::size_t i, std::size_t n);
std::vector<Sym> syms(const std::vector<std::int64_t>& numbers);

/// The last dimensions of x as windows: [lead..., S...] to [lead..., K..., O...], a view.
ValueId windows(Steps& s, ValueId x, const std::vector<std::int64_t>& kernel, const std::vector<std::int64_t>& stride,
                const std::vector<std::int64_t>& dilation);
/// The last dimensions of x padded with a value; negative numbers crop.
ValueId padded(Steps& s, ValueId x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high,
               double value);

}  // namespace lyo::ops
