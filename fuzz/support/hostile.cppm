// Files that must be refused, each wrong in one way, with every digest right where the fault lies deeper.
export module lyo.fuzz:hostile;

import lyo.prelude;
import lyo.base;
import :parts;

namespace lyo::fuzz {

/// One refused file; its error's text contains `expected`.
export struct Hostile {
    std::string name;
    Buffer file;
    ErrorCode code = ErrorCode::bad_value;
    std::string expected;
};

/// A small valid artifact that uses every part of the schema: a symbol, constants, a product whose epilogue goes to
/// workspace, a reduction, a guard.
export Parts small_parts();
/// The same function for two targets more: kernels of a cubin's name and PTX text, never run.
export Parts device_parts();

/// Wrong headers, tables, paddings and digests.
export std::vector<Hostile> hostile_files();
/// Sections whose bytes are no encoding of anything.
export std::vector<Hostile> hostile_encodings();
/// Well-formed metadata that breaks a rule.
export std::vector<Hostile> hostile_values();
/// Plans that break a rule, for the CPU and for other devices.
export std::vector<Hostile> hostile_plans();
export std::vector<Hostile> hostile_device_plans();
/// All of the above.
export std::vector<Hostile> hostile();

}  // namespace lyo::fuzz
