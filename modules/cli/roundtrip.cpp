module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

int roundtrip(const RoundtripArgs& args, const Console& console) {
    const auto file = read_file(args.artifact);
    if (!file) return console.fail(file.error());
    const auto function = open_function(args.artifact, args);
    if (!function) return console.fail(function.error());
    constexpr std::uint64_t calls = 3;
    std::uint64_t called = 0;
    std::string why;
    for (std::uint64_t seed = 0; seed < calls; ++seed) {
        const auto inputs = made_up_inputs(*function, seed);
        if (!inputs) {
            why = inputs.error().to_string();
            continue;
        }
        // Made-up values may index out of range; the bytes must come back after an error too.
        const auto outputs = call_from_cpu(*function, *inputs);
        if (outputs)
            ++called;
        else
            why = outputs.error().to_string();
    }
    if (!why.empty()) console.note(cat("not every call could be made: ", why));
    const Bytes& kept = function->serialize();
    const auto encoded = function->artifact().encode_again();
    if (!encoded) return console.fail(encoded.error());
    const bool same = kept == *file, again = *encoded == *file;
    if (!args.out.empty())
        if (const auto ok = write_file(args.out, kept); !ok) return console.fail(ok.error());
    if (console.json) {
        console.print(cat("{\"bytes\": ", kept.size(), ", \"calls\": ", called, ", \"serialized_identical\": ",
                          same ? "true" : "false", ", \"encoded_identical\": ", again ? "true" : "false", "}"));
    } else {
        console.print(cat(same && again ? "identical" : "different", ": ", kept.size(), " bytes, hydrated on ",
                          function->backend(), ", ", called, called == 1 ? " call" : " calls",
                          same ? "" : "; serialize() differs", again ? "" : "; encode(decode()) differs"));
    }
    return same && again ? done : no;
}

}  // namespace lyo::cli
