// lyo.base: what every other crate stands on: errors, byte regions, digests, files, dtypes, shapes and tensors.
// It knows nothing of artifacts. Everything here is safe to use from many threads unless a comment says otherwise.
export module lyo.base;

export import :result;
export import :checked;
export import :bytes;
export import :digest;
export import :file;
export import :library;
export import :dtype;
export import :scalar_op;
export import :tensor;
export import :dlpack;
