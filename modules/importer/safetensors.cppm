// safetensors files: an 8-byte length, a JSON header, and the tensors' bytes one after the other without a gap.
export module lyo.importer:safetensors;

import lyo.prelude;
import lyo.base;

namespace lyo {

export struct NamedTensor {
    std::string name;
    Tensor tensor;
};

/// The tensors in the order of their bytes (empty ones at the same place by name): views that share `file` (copies
/// where the data is not aligned to its element). Metadata is checked and left out. Errors: bad_archive,
/// unsupported_argument (an element type that lyo lacks), out_of_memory.
export Result<std::vector<NamedTensor>> read_safetensors(const Bytes& file);

/// The one canonical file for these tensors, byte for byte what the reference implementation writes without metadata:
/// wide element types first, then by name, header padded to 8 bytes. CPU tensors of any strides. Errors:
/// invalid_argument (a name twice, or not UTF-8), wrong_device, out_of_memory.
export Result<Bytes> write_safetensors(std::span<const NamedTensor> tensors);

}  // namespace lyo
