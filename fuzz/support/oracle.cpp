module;
#include <stdio.h>

module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import lyo.hydration;

namespace lyo::fuzz {
namespace {

void require_error(const Error& error) {
    const auto code = static_cast<unsigned>(error.code);
    require(code >= 200 && code < 300, "bytes are refused with a code of the group \"artifact bytes\"");
    require(!error.what.empty(), "a refusal says what is wrong");
    require(!error.where.empty(), "a refusal says where");
}

}  // namespace

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

bool check_roundtrip(const Bytes& input) {
    auto artifact = Artifact::check(input, {Verify::eager});
    if (!artifact) return require_error(artifact.error()), false;
    require(!artifact->to_json().empty(), "an artifact can be printed");
    const auto function = hydrate(*artifact, Device::cpu(), {{}, call_limits});
    bool called = false;
    if (function) {
        const auto inputs = sample_inputs(function->spec(), 1, max_input_elements);
        if (inputs) called = function->call(*inputs).has_value();
        require(function->serialize().data() == input.data(), "serialize() copies nothing");
        require(function->serialize() == input, "serialize() gives the bytes it came from");
    } else {
        require(!function.error().what.empty(), "a refusal says what is wrong");
    }
    const auto again = artifact->encode_again();
    require(again.has_value() && *again == input, "encode(decode(bytes)) == bytes");
    const Parts parts = take_apart(*artifact);
    const auto encoded = Artifact::encode(contents_of(parts));
    require(encoded.has_value() && *encoded == input, "encode(contents) == bytes");
    require(Bytes::borrow(seal(parts)) == input, "the second writer gives the same bytes");
    return called;
}

}  // namespace lyo::fuzz
