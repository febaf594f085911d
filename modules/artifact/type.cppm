// The artifact itself: validated bytes, and the way to make them.
export module lyo.artifact:artifact;

import lyo.prelude;
import lyo.base;
import :format;
import :schema;

namespace lyo {

/// When the constants' digest is checked. Everything else is always checked at load.
export enum class Verify : std::uint8_t {
    automatic,  ///< at load up to `LoadOptions::eager_limit` bytes of constants, else before the first use
    eager,      ///< at load
    lazy,       ///< before the first use
    trusted,    ///< not at all: the store vouches for the bytes
};

export struct LoadOptions {
    Verify verify = Verify::automatic;
    std::uint64_t eager_limit = std::uint64_t{64} << 20;
};

/// One row of the section table.
export struct Section {
    format::SectionKind kind = format::SectionKind::manifest;
    std::uint32_t tag = 0;
    std::uint64_t offset = 0, length = 0;
    Digest digest;
};

/// What an artifact is made of, before it is bytes.
export struct ArtifactContents {
    Manifest manifest;  ///< `constant_leaves` is computed by the encoder
    FunctionTable functions;
    std::vector<Image> images;  ///< one if "cpu" is among `manifest.targets`
    /// One per other target, in their order: the plans, and the code (a cubin; or PTX text that ends in a NUL).
    std::vector<DeviceImage> device_images;
    std::vector<std::span<const std::byte>> device_code;
    std::optional<Debug> debug;
    /// The constants' bytes, one entry per `functions.constants`, row-major. Their offsets are computed by the encoder.
    std::vector<std::span<const std::byte>> constants;
};

/// A validated artifact. There is no way to have one of bytes that nobody checked, and only an Artifact can be
/// hydrated. Copying shares. All functions may be called from many threads.
export class Artifact {
  public:
    /// Reads the file whole (up to 64 MiB) or maps it (larger), and validates it. A mapped file must not be changed in
    /// place; unlinking or replacing it is harmless.
    /// Errors: file, and every code of the group "artifact bytes"; `where` names file and section.
    [[nodiscard]] static Result<Artifact> read(const std::string& path, const LoadOptions& options = {});
    /// Validates bytes in memory and shares them. Errors: every code of the group "artifact bytes", out_of_memory.
    [[nodiscard]] static Result<Artifact> check(Bytes bytes, const LoadOptions& options = {});
    /// The one encoding of these contents. Errors: bad_value (contents that would not validate), out_of_memory.
    [[nodiscard]] static Result<Bytes> encode(ArtifactContents contents);

    /// Exactly the bytes it was loaded from: shared, not copied.
    const Bytes& bytes() const noexcept;
    /// The same bytes, by the other way: the decoded state encoded again.
    [[nodiscard]] Result<Bytes> encode_again() const;
    /// SHA-256 that names the artifact.
    const Digest& id() const noexcept;
    const Manifest& manifest() const noexcept;
    const FunctionTable& functions() const noexcept;
    std::span<const Section> sections() const noexcept;
    /// The image for target "cpu", or null: other targets have device images.
    const Image* image(std::string_view target) const noexcept;
    /// The plans for another target of the manifest, or null, and its code: the bytes of the file, in place.
    const DeviceImage* device_image(std::string_view target) const noexcept;
    Bytes device_code(std::string_view target) const noexcept;
    const std::optional<Debug>& debug() const noexcept;
    /// The row-major elements of a constant of the function table.
    Bytes constant(std::size_t index) const noexcept;

    /// Checks the constants' digests if that has not been done; the first caller works, on several threads where it
    /// pays, and the others wait. Errors: bad_digest, naming the chunk. With Verify::trusted it does nothing.
    [[nodiscard]] Result<> verify_constants() const;
    /// True once the constants' digests were checked.
    bool constants_verified() const noexcept;

    /// The whole metadata as JSON, `id` and `sections` first.
    std::string to_json() const;

  private:
    struct State;
    explicit Artifact(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<const State> state_;
};

/// Value of each expression of a table under the symbols' values; `out` has a place for each.
/// Errors: bad_value (overflow, division by zero), naming the entry.
export [[nodiscard]] Result<> evaluate(std::span<const Expr> exprs, std::span<const std::int64_t> symbols,
                                       std::span<std::int64_t> out);

/// Bytes of a constant. nullopt when that does not fit.
export std::optional<std::uint64_t> byte_size(const Constant& constant) noexcept;

}  // namespace lyo
