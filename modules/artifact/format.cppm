// The fixed parts of an artifact file, and its limits. A file is, from the first byte to the last:
//
//   1. header, 56 bytes: magic[8], format version u32, section count u32, total length u64, root digest[32]
//   2. section table, one entry of 56 bytes each: kind u32, tag u32, offset u64, length u64, digest[32]
//   3. the sections in the table's order, each at the next multiple of 64 (constants: 4096) after the one before,
//      with zero bytes between
//
// Integers are little-endian. The table is sorted by kind, then tag; manifest, functions and constants occur exactly
// once, debug at most once. A tag is an index into the manifest's targets: "cpu" has an image, every other target one
// section of launches and one of code. A section's digest is the tree digest (lyo.base:digest) of its bytes.
// The root digest is SHA-256 over the header with that field zeroed, then the table; it is the artifact's id.
//
// It promises: one valid encoding for each artifact, the same bytes on any machine, use in place from a mapped file.
// It does not promise that other versions can read it: the version must match.
export module lyo.artifact:format;

import lyo.prelude;

namespace lyo::format {

/// Not text in any encoding, and changed by every transfer that converts line ends or strips the eighth bit.
export inline constexpr std::array<std::uint8_t, 8> magic = {0x89, 'L', 'Y', 'O', '\r', '\n', 0x1a, '\n'};
export inline constexpr std::uint32_t version = 1;
/// Version of what the plans mean (kernels, calling conventions): raised when an old plan would compute something else.
export inline constexpr std::uint32_t abi_version = 1;

export inline constexpr std::size_t header_size = 56;
export inline constexpr std::size_t entry_size = 56;
export inline constexpr std::uint64_t section_alignment = 64;
/// A page, so that constants can be mapped.
export inline constexpr std::uint64_t constants_alignment = 4096;
/// Each constant starts at a multiple of this within the constants section, the gap filled with zeros.
export inline constexpr std::uint64_t constant_alignment = 64;

export enum class SectionKind : std::uint32_t {
    manifest = 1,
    functions = 2,
    image = 3,
    constants = 4,
    debug = 5,
    launches = 6,
    code = 7,
};
/// "manifest", ...; "unknown" for any other number.
export std::string_view to_string(SectionKind kind) noexcept;

// Limits. Each is far above what models need and far below what would hurt a reader.
export inline constexpr std::uint32_t max_sections = 64;
export inline constexpr std::uint64_t max_metadata = std::uint64_t{64} << 20;  ///< bytes of one decoded section
export inline constexpr std::uint64_t max_code = std::uint64_t{1} << 30;       ///< bytes of one code section
export inline constexpr std::size_t max_registers = 128;                       ///< of one loop program
export inline constexpr std::uint32_t max_threads = 1024;                      ///< of one block of a launch
export inline constexpr std::size_t max_launch_words = 500;  ///< buffers and words of one launch: 4000 bytes
export inline constexpr std::size_t max_exprs = std::size_t{1} << 20;
export inline constexpr std::size_t max_operands = 256;  ///< of one loop program

}  // namespace lyo::format
