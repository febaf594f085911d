module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {

std::vector<Hostile> hostile_device_plans() {
    std::vector<Hostile> out;
    const auto c = [&](std::string name, std::string expected, const std::function<void(Parts&)>& change,
                       ErrorCode code = ErrorCode::bad_value) {
        Parts parts = device_parts();
        change(parts);
        out.push_back({"device-" + name, seal(parts), code, std::move(expected)});
    };
    const auto program = [](Parts& p) -> DeviceProgram& { return p.device_images[0].programs[0]; };
    const auto product = [&](Parts& p) -> Product& { return *std::get_if<Product>(&program(p).steps[0]); };
    const auto launch = [&](Parts& p) -> Launch& { return *std::get_if<Launch>(&program(p).steps[1]); };

    c(
        "no-code", "manifest.targets: tags of code sections: expected [1, 2], got [1]",
        [](Parts& p) { p.device_code.pop_back(); }, ErrorCode::bad_section);
    c("empty-code", "code for cuda:sm_90: is empty", [](Parts& p) { p.device_code[1].clear(); });
    c("ptx-without-nul", "code for cuda:ptx: is no text that ends in its only NUL",
      [](Parts& p) { p.device_code[0].pop_back(); });
    c("ptx-with-two-nuls", "code for cuda:ptx: is no text that ends in its only NUL",
      [](Parts& p) { p.device_code[0][3] = std::byte{0}; });
    c("programs", "programs: expected 1, got 0", [](Parts& p) { p.device_images[1].programs.clear(); });
    c("expr-forward", "exprs[5]: operands: expected below 5, got 5", [&](Parts& p) { program(p).exprs[5].a = 5; });
    c("slot-expression", "slots[0]: expression: expected below 6, got 6", [&](Parts& p) { program(p).slots[0] = 6; });
    c("kernel-name", "steps[1]: kernel: has no name", [&](Parts& p) { launch(p).kernel.clear(); });
    c("no-threads", "steps[1]: threads: number: expected in [1, 1024], got 0",
      [&](Parts& p) { launch(p).threads = 0; });
    c("many-threads", "steps[1]: threads: number: expected in [1, 1024], got 1025",
      [&](Parts& p) { launch(p).threads = 1025; });
    c("blocks", "steps[1]: blocks: expression: expected below 6, got 6", [&](Parts& p) { launch(p).blocks = 6; });
    c("many-words", "steps[1]: words: buffers and words: expected at most 500, got 501",
      [&](Parts& p) { launch(p).words.assign(497, 0); });
    c("word", "steps[1]: words[1]: expression: expected below 6, got 6", [&](Parts& p) { launch(p).words[1] = 6; });
    c("buffer-slot", "steps[1]: buffers[0]: slot: expected below 1, got 1",
      [&](Parts& p) { launch(p).buffers[0].index = 1; });
    c("buffer-constant", "steps[1]: buffers[1]: constant: expected below 2, got 2",
      [&](Parts& p) { launch(p).buffers[1].index = 2; });
    c("buffer-output", "steps[1]: buffers[3]: output: expected below 2, got 4294967295",
      [&](Parts& p) { launch(p).buffers[3].index = 0xffffffff; });
    c("buffer-offset", "steps[1]: buffers[2]: expression: expected below 6, got 6",
      [&](Parts& p) { launch(p).buffers[2].offset = 6; });
    c("product-dtype", "steps[0]: dtype: dtype: expected a floating one, got i32",
      [&](Parts& p) { product(p).dtype = DType::i32; });
    c("product-result", "steps[0]: result: dtype: expected f16 or f32, got f64", [&](Parts& p) {
        product(p).dtype = DType::f16;
        product(p).result = DType::f64;
    });
    c("product-buffer", "steps[0]: a: input: expected below 1, got 1", [&](Parts& p) { product(p).a.index = 1; });
    c("product-size", "steps[0]: k: expression: expected below 6, got 6", [&](Parts& p) { product(p).k = 6; });
    return out;
}

}  // namespace lyo::fuzz
