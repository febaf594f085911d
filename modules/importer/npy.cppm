// NumPy's .npy files, versions 1 to 3, little-endian: one tensor a file.
export module lyo.importer:npy;

import lyo.prelude;
import lyo.base;

namespace lyo {

/// The tensor of a .npy file: a view that shares `file` (a copy where the data is not aligned to its element). Fortran
/// order becomes strides. Errors: bad_archive, unsupported_argument (an element type that lyo lacks), out_of_memory.
export Result<Tensor> read_npy(const Bytes& file);

/// A version 1.0 file as NumPy writes it, in C order. CPU tensors of any strides. Errors: unsupported_argument (bf16
/// has no NumPy type), wrong_device, out_of_memory.
export Result<Bytes> write_npy(const Tensor& tensor);

}  // namespace lyo
