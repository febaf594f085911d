module;
#include <stdio.h>

module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {

void require_error(const Error& error) {
    const auto code = static_cast<unsigned>(error.code);
    require(code >= 200 && code < 300, "bytes are refused with a code of the group \"artifact bytes\"");
    require(!error.what.empty(), "a refusal says what is wrong");
    require(!error.where.empty(), "a refusal says where");
}

void require(bool holds, std::string_view text) {
    if (holds) return;
    std::fprintf(stderr, "violated: %.*s\n", static_cast<int>(text.size()), text.data());
    std::abort();
}

bool check_load(const Bytes& input) {
    auto artifact = Artifact::check(input, {Verify::lazy});
    if (!artifact) return require_error(artifact.error()), false;
    if (const auto verified = artifact->verify_constants(); !verified) return require_error(verified.error()), false;
    const auto again = artifact->encode_again();
    require(again.has_value(), "an artifact can be encoded again");
    require(*again == input, "encode(decode(bytes)) == bytes");
    return true;
}

}  // namespace lyo::fuzz
