// What an Artifact holds, and the steps of loading it, for this crate's bodies.
module lyo.artifact:state;

import lyo.prelude;
import lyo.base;
import :format;
import :schema;
import :artifact;

namespace lyo {

struct Artifact::State {
    Bytes bytes;
    Digest id;
    std::vector<Section> sections;
    Manifest manifest;
    FunctionTable functions;
    std::vector<Image> images;  // none or one
    std::vector<DeviceImage> device_images;
    std::vector<Bytes> device_code;
    /// Where a target other than "cpu" is in the two above.
    std::optional<std::size_t> device_index(std::string_view target) const noexcept;
    std::optional<Debug> debug;
    Bytes constants;
    bool trusted = false;
    // Whether the constants have been checked, and the answer, kept for whoever asks later.
    mutable std::mutex verify_mutex;
    mutable std::atomic<bool> verified{false};
    mutable std::optional<Error> verify_error;
};

/// Header and section table, checked down to the root digest; the sections' own digests are not. Errors: bad_magic,
/// unsupported_version, truncated, bad_header, bad_section, bad_digest.
Result<std::vector<Section>> read_table(std::span<const std::byte> file, Digest& id);

/// Every rule that spans fields: indices within their tables, plans that read only what was written, constants that
/// fill their section. After it, running a plan can only fail on sizes. Errors: bad_value; `where` is the field.
Result<> validate(const Manifest& manifest, const FunctionTable& functions, std::span<const Image> images,
                  std::span<const DeviceImage> device_images, std::span<const Bytes> device_code,
                  std::span<const std::byte> constants);

/// One plan against its function. Errors: bad_value.
Result<> validate_program(const Program& program, const FunctionSpec& function, const FunctionTable& table);

/// One plan of another device against its function. What its kernels do, only the code knows. Errors: bad_value.
Result<> validate_device_program(const DeviceProgram& program, const FunctionSpec& function,
                                 const FunctionTable& table);

/// Entries refer to earlier ones and to symbols that exist. Errors: bad_value.
Result<> validate_exprs(std::span<const Expr> exprs, std::size_t symbols);

/// Index of the first byte that is not zero; the size where there is none.
std::size_t first_nonzero(std::span<const std::byte> data) noexcept;

}  // namespace lyo
