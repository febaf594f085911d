// What must hold for every input, whoever made it. A violation says what broke and ends the process.
export module lyo.fuzz:oracle;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import lyo.hydration;

namespace lyo::fuzz {

/// Ends the process with this text unless `holds`.
export void require(bool holds, std::string_view text);

/// The error of a refusal is one of the group "artifact bytes" and says what and where.
export void require_error(const Error& error);

/// Bytes are refused with an error that says what and where, or accepted; what is accepted has one encoding, these
/// bytes. True where they were accepted.
export bool check_load(const Bytes& input);

/// What one call made by `check_roundtrip` may take.
export inline constexpr CallLimits call_limits = {
    .workspace_bytes = std::uint64_t{4} << 20, .output_bytes = std::uint64_t{1} << 20, .work = std::uint64_t{1} << 18};
export inline constexpr std::uint64_t max_input_elements = std::uint64_t{1} << 14;

/// Whatever loads comes alive or is refused, is called with inputs that satisfy its guards where some are found, and
/// gives back its bytes by every way there is: kept, encoded again, encoded from what it is made of, written by the
/// second writer. True where a call was made.
export bool check_roundtrip(const Bytes& input);

}  // namespace lyo::fuzz
