module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import lyo.hydration;

namespace lyo::fuzz {

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
