module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

int verify(const VerifyArgs& args, const Console& console) {
    if (!args.pubkey.empty())
        return console.fail({ErrorCode::invalid_argument, "signatures are not supported yet", "--pubkey"});
    const auto artifact = Artifact::read(args.artifact, {.verify = Verify::eager});
    if (!artifact) return console.fail(artifact.error());
    const auto again = artifact->encode_again();
    if (!again) return console.fail(Error(again.error()).in(args.artifact));
    if (!(*again == artifact->bytes()))
        return console.fail({ErrorCode::bad_encoding, "its decoded form encodes to other bytes", args.artifact});
    if (console.json)
        console.print(cat("{\"id\": ", json_text(artifact->id().hex()), ", \"bytes\": ", artifact->bytes().size(),
                          ", \"sections\": ", artifact->sections().size(),
                          ", \"checked\": [\"structure\", \"digests\", \"encoding\"], \"valid\": true}"));
    else
        console.print(cat(
            "valid: ", artifact->id().hex(), ", ", artifact->bytes().size(), " bytes, ", artifact->sections().size(),
            " sections; checked: structure, every digest, that the decoded form encodes to the same bytes"));
    return done;
}

}  // namespace lyo::cli
