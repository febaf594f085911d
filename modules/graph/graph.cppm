// lyo.graph: the tensor IR: ATen operators over tensors with symbolic sizes, a builder, shape inference, and the
// reference interpreter (slow, obvious, in double precision: the oracle). It knows nothing of devices or artifacts.
export module lyo.graph;

export import :sym;
export import :ir;
export import :op;
export import :build;
export import :interpret;
export import :canonical;
