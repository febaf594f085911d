// The reference interpreter: one node after the other, in double precision, without any optimization.
export module lyo.graph:interpret;

import lyo.prelude;
import lyo.base;
import :ir;
import :op;

namespace lyo {

export struct InterpretOptions {
    /// Elements of one tensor, at most.
    std::size_t max_elements = std::size_t{1} << 28;
};

/// The outputs for these inputs (CPU tensors, any strides). Reals are kept in double precision between nodes, except
/// where the model casts; outputs have the graph's dtypes. Errors: guard_failed (inputs that do not fit the graph's
/// signature), limit_exceeded, index_out_of_range, out_of_memory.
export Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const Tensor> inputs,
                                             const InterpretOptions& options = {});

/// The values of the symbols for inputs of these shapes. Errors: guard_failed, which names input, dimension, expected
/// and got.
export Result<std::map<std::string, std::int64_t>> bind_symbols(const Graph& graph, std::span<const Tensor> inputs);

/// Conversions between tensors and the interpreter's.
export HostTensor to_host(const Tensor& tensor);
export Result<Tensor> from_host(const HostTensor& tensor);

}  // namespace lyo
