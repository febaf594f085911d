// make_artifact FILE: writes the artifact that the host projects run, relu(x) * 2 + 1 of a 2x2 tensor.
#include <cstdio>

import lyo.base;
import lyo.graph;
import lyo.compiler;

int main(int argc, char** argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: make_artifact FILE\n"), 2;
    lyo::Builder builder;
    const auto x = builder.input("x", lyo::DType::f32, {2, 2});
    const auto twice = builder.call("mul.Tensor", {builder.call("relu", {x}), lyo::Sym(2)});
    builder.output(builder.call("add.Tensor", {twice, lyo::Sym(1)}));
    const auto graph = builder.finish();
    if (!graph) return std::fprintf(stderr, "%s\n", graph.error().to_string().c_str()), 1;
    const auto bytes = lyo::compile(*graph);
    if (!bytes) return std::fprintf(stderr, "%s\n", bytes.error().to_string().c_str()), 1;
    const auto written = lyo::write_file(argv[1], *bytes);
    if (!written) return std::fprintf(stderr, "%s\n", written.error().to_string().c_str()), 3;
}
