// DLPack in and out: the exchange format of tensor libraries (dmlc/dlpack, version 0.6 structures).
export module lyo.base:dlpack;

import lyo.prelude;
import :result;
import :tensor;

// The structure itself comes from <dlpack/dlpack.h>, in the caller's file.
extern "C++" {
export struct DLManagedTensor;
}

namespace lyo {

/// Takes the tensor over: its deleter runs when the last Tensor that shares it is gone, or now when it is refused.
/// Errors: invalid_argument (a dtype, device, rank or shape that lyo does not have), out_of_memory.
export [[nodiscard]] Result<Tensor> from_dlpack(DLManagedTensor* tensor);
/// A managed tensor that shares the memory (borrowed memory stays borrowed); the consumer calls its deleter.
export [[nodiscard]] Result<DLManagedTensor*> to_dlpack(const Tensor& tensor);

}  // namespace lyo
