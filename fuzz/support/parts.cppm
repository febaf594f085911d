// An artifact taken apart, and put together again without asking whether it makes sense. The writer here was made from
// FORMAT.md and shares nothing with lyo.artifact's codec: where both give the same bytes, the specification is right.
export module lyo.fuzz:parts;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {

export using Buffer = std::vector<std::byte>;

/// Everything an artifact says, owned.
export struct Parts {
    Manifest manifest;
    FunctionTable functions;
    std::vector<Image> images;
    std::vector<DeviceImage> device_images;
    std::vector<Buffer> device_code;
    std::optional<Debug> debug;
    std::vector<Buffer> constants;
};

/// One section as it will stand in the file. `offset` and `length` replace what they would be.
export struct RawSection {
    std::uint32_t kind = 0, tag = 0;
    Buffer content;
    std::optional<std::uint64_t> offset, length;
};

export Parts take_apart(const Artifact& artifact);
/// What Artifact::encode takes; the spans point into `parts`.
export ArtifactContents contents_of(const Parts& parts);

/// Encodings of whole sections.
export Buffer encode(const Manifest& manifest);
export Buffer encode(const FunctionTable& functions);
export Buffer encode(const Image& image);
export Buffer encode(const DeviceImage& image);
export Buffer encode(const Debug& debug);

/// The sections of `parts`, with constants laid out, their offsets and leaves set.
export std::vector<RawSection> sections_of(Parts parts);
/// Header, table, sections, padding and every digest.
export Buffer assemble(std::span<const RawSection> sections);
/// assemble(sections_of(parts)).
export Buffer seal(const Parts& parts);

/// A number of up to 8 bytes at a place of a file.
export std::uint64_t get(std::span<const std::byte> file, std::size_t at, std::size_t bytes) noexcept;
export void set(std::span<std::byte> file, std::size_t at, std::uint64_t value, std::size_t bytes) noexcept;

/// The section table's entries as they stand, those of them that the file is long enough for.
export std::vector<Section> table_of(std::span<const std::byte> file);
/// Repairs, in place, every digest that can be: the constants' leaves in the manifest, the sections', the root's.
export void reseal(std::span<std::byte> file);

/// Bytes that own exactly what they hold, so that a sanitizer sees the first byte behind it.
export Bytes exactly(std::span<const std::byte> data);

}  // namespace lyo::fuzz
