// torch.export archives: symbols, what is not supported, in-place operators, damage. Models' JSON is made here, so that
// each test shows what it is about; whole archives come from tests/cases.
#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

import lyo.base;
import lyo.graph;
import lyo.importer;

namespace {

using lyo::ErrorCode;

std::string sizes_of(const std::vector<std::string>& sizes) {
    std::string out;
    for (const std::string& s : sizes) {
        const bool number = s.find_first_not_of("0123456789") == std::string::npos;
        out += (out.empty() ? "" : ", ") +
               (number ? "{\"as_int\": " + s + "}"
                       : "{\"as_expr\": {\"expr_str\": \"" + s + "\", \"hint\": {\"as_int\": 4}}}");
    }
    return out;
}

/// A model of one input "x", nodes, and one output.
struct Model {
    std::map<std::string, std::vector<std::string>> values;  // f32 tensors by name
    std::string nodes, output;
    std::string ranges = {}, sym_ints = {}, extra_inputs = {}, extra_values = {}, sym_bools = {};

    std::string json() const {
        std::string tensors;
        for (const auto& [name, sizes] : values) {
            tensors +=
                (tensors.empty() ? "" : ", ") + ("\"" + name + "\": {\"dtype\": 7, \"sizes\": [" + sizes_of(sizes)) +
                R"(], "requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [], "storage_offset": {"as_int": 0}, "layout": 7})";
        }
        return R"({"schema_version": {"major": 8, "minor": 17}, "range_constraints": {)" + ranges +
               R"(}, "guards_code": [],
            "graph_module": {"signature": {"input_specs": [)" +
               extra_inputs + R"({"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
            "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": ")" +
               output + R"("}}}}]},
            "graph": {"inputs": [], "outputs": [], "nodes": [)" +
               nodes + R"(], "sym_int_values": {)" + sym_ints + R"(},
            "sym_bool_values": {)" +
               sym_bools + R"(}, "tensor_values": {)" + tensors + extra_values + "}}}}";
    }
    lyo::Result<lyo::Graph> read() const {
        constexpr std::string_view none = R"({"config": {}})";
        const std::string weights =
            R"({"config": {"b": {"path_name": "weight_0", "is_param": false, "use_pickle": false, "tensor_meta": {"dtype": 7,
               "sizes": [{"as_int": 2}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}}}})";
        const lyo::PayloadReader payload = [](std::string_view) {
            return lyo::Bytes::copy(std::as_bytes(std::span("1234567")));
        };
        return lyo::import_exported_program(json(), weights, none, payload);
    }
};

std::string node(const std::string& target, const std::string& inputs, const std::string& output) {
    return R"({"target": "torch.ops.aten.)" + target + R"(", "inputs": [)" + inputs +
           R"(], "outputs": [{"as_tensor": {"name": ")" + output + R"("}}], "metadata": {}, "name": ")" + output +
           "\"}";
}
std::string tensor(const std::string& parameter, const std::string& name) {
    return R"({"name": ")" + parameter + R"(", "arg": {"as_tensor": {"name": ")" + name + R"("}}, "kind": 1})";
}

constexpr const char* batch = "Symbol('s77', positive=True, integer=True)";

TEST(Pt2, SymbolicSizesKeepTheirRanges) {
    Model m{{{"x", {batch, "3"}}, {"y", {batch, "3"}}}, node("relu.default", tensor("self", "x"), "y"), "y"};
    m.ranges = R"("s77": {"min_val": 3, "max_val": 40})";
    const auto graph = m.read();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    ASSERT_EQ(graph->symbols.size(), 1u);
    EXPECT_EQ(graph->symbols[0].min, 3);
    EXPECT_EQ(graph->symbols[0].max, 40);
    EXPECT_EQ(lyo::to_string(graph->type(graph->outputs[0])), "f32[s77, 3]");
}

TEST(Pt2, SizeArithmeticBecomesExpressions) {
    Model m{
        {{"x", {batch, "4"}}, {"y", {"Mul(Integer(2), Symbol('s77', positive=True, integer=True))", "2"}}}, "", "y"};
    m.nodes =
        R"({"target": "torch.ops.aten.sym_size.int", "inputs": [], "outputs": [{"as_sym_int": {"as_name": "n"}}], "metadata": {}}, )" +
        node("view.default",
             tensor("self", "x") +
                 R"(, {"name": "size", "arg": {"as_sym_ints": [{"as_name": "n2"}, {"as_int": 2}]}, "kind": 1})",
             "y");
    m.sym_ints =
        R"json("n2": {"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s77', positive=True, integer=True))", "hint": null}})json";
    const auto graph = m.read();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    EXPECT_EQ(lyo::to_string(graph->type(graph->outputs[0])), "f32[2*s77, 2]");
}

TEST(Pt2, AssertionsOnSizesBecomeGuards) {
    Model m{{{"x", {batch}}, {"y", {batch}}}, "", "y"};
    m.nodes =
        R"({"target": "torch.ops.aten._assert_scalar.default", "inputs": [{"name": "self", "arg": {"as_sym_bool": {"as_name": "c"}}, "kind": 1}], "outputs": [], "metadata": {}}, )" +
        node("relu.default", tensor("self", "x"), "y");
    m.sym_bools =
        R"json("c": {"as_expr": {"expr_str": "LessThan(Symbol('s77', positive=True, integer=True), Integer(9))"}})json";
    const auto graph = m.read();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    ASSERT_EQ(graph->relations.size(), 1u);
    EXPECT_EQ(graph->relations[0].right, lyo::Sym(9));
}

TEST(Pt2, AllMissingOperatorsAreNamedWithTheirCounts) {
    const Model m{{{"x", {"2"}}, {"y", {"2"}}},
                  node("frobnicate.default", tensor("self", "x"), "y") + ", " +
                      node("abacus.out", tensor("self", "y"), "z") + ", " +
                      node("frobnicate.default", tensor("self", "z"), "w"),
                  "w"};
    const auto graph = m.read();
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, ErrorCode::unsupported_operator);
    EXPECT_NE(graph.error().what.find("abacus.out (1), torch.ops.aten.frobnicate.default (2)"), std::string::npos)
        << graph.error().to_string();
}

TEST(Pt2, AllUnsupportedArgumentsAreNamed) {
    const auto gelu = [](const std::string& from, const std::string& to) {
        return node("gelu.default",
                    tensor("self", from) + R"(, {"name": "approximate", "arg": {"as_string": "abacus"}, "kind": 2})",
                    to);
    };
    const Model m{{{"x", {"2"}}, {"y", {"2"}}, {"z", {"2"}}}, gelu("x", "y") + ", " + gelu("x", "z"), "z"};
    const auto graph = m.read();
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, ErrorCode::unsupported_argument);
    EXPECT_NE(graph.error().what.find("2 nodes: y: gelu"), std::string::npos) << graph.error().to_string();
    EXPECT_NE(graph.error().what.find("z: gelu"), std::string::npos);
}

TEST(Pt2, InPlaceOperatorsChangeWhatLaterNodesRead) {
    const Model m{{{"x", {"2"}}, {"a", {"2"}}, {"b2", {"2"}}, {"c", {"2"}}},
                  node("abs.default", tensor("self", "x"), "a") + ", " +
                      node("neg_.default", tensor("self", "a"), "b2") + ", " +
                      node("exp.default", tensor("self", "a"), "c"),
                  "c"};
    const auto graph = m.read();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    // exp reads what neg_ left in a.
    EXPECT_EQ(lyo::operands(graph->nodes[2])[0], graph->nodes[1].outputs[0]);
}

TEST(Pt2, InPlaceOperatorsCallTheirTargetSelf) {
    // dropout(Tensor input, ...), but dropout_(Tensor self, ...).
    const Model m{
        {{"x", {"2"}}, {"a", {"2"}}, {"d", {"2"}}},
        node("abs.default", tensor("self", "x"), "a") + ", " +
            node("dropout_.default", tensor("self", "a") + R"(, {"name": "p", "arg": {"as_float": 0.5}, "kind": 1},
                               {"name": "train", "arg": {"as_bool": false}, "kind": 1})",
                 "d"),
        "d"};
    const auto graph = m.read();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
}

TEST(Pt2, AViewOfWhatAnInPlaceOperatorWroteIsRefusedWhereItIsRead) {
    const Model m{{{"x", {"2"}}, {"a", {"2"}}, {"v", {"2", "1"}}, {"n", {"2"}}, {"c", {"2", "1"}}},
                  node("abs.default", tensor("self", "x"), "a") + ", " +
                      node("unsqueeze.default",
                           tensor("self", "a") + R"(, {"name": "dim", "arg": {"as_int": 1}, "kind": 1})", "v") +
                      ", " + node("neg_.default", tensor("self", "a"), "n") + ", " +
                      node("exp.default", tensor("self", "v"), "c"),
                  "c"};
    const auto graph = m.read();
    ASSERT_FALSE(graph.has_value());
    EXPECT_NE(graph.error().what.find("another view"), std::string::npos) << graph.error().to_string();
}

TEST(Pt2, AWrittenBufferIsAnOutputBehindTheOthers) {
    Model m{{{"x", {"2"}}, {"p_b", {"2"}}, {"s", {"2"}}},
            node("add_.Tensor", tensor("self", "p_b") + ", " + tensor("other", "x"), "s"),
            "s"};
    m.extra_inputs = R"({"buffer": {"arg": {"name": "p_b"}, "buffer_name": "b", "persistent": true}}, )";
    const auto graph = m.read();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    ASSERT_EQ(graph->outputs.size(), 2u);
    EXPECT_EQ((*graph)[graph->outputs[1]].name, "b.written");
}

TEST(Pt2, ATypeThatTheExportDidNotRecordIsRefused) {
    const Model m{{{"x", {"2"}}, {"y", {"3"}}}, node("relu.default", tensor("self", "x"), "y"), "y"};
    const auto graph = m.read();
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, ErrorCode::bad_model);
    EXPECT_NE(graph.error().to_string().find("f32[3]"), std::string::npos) << graph.error().to_string();
}

lyo::Bytes archive(const std::string& name) {
    auto bytes = lyo::read_file(std::string(LYO_CASES_DIR) + "/" + name + "/model.pt2");
    EXPECT_TRUE(bytes.has_value());
    return *bytes;
}

TEST(Pt2, EveryTruncationOfAnArchiveIsRefused) {
    const lyo::Bytes whole = archive("scalars");
    ASSERT_TRUE(lyo::import_pt2(whole).has_value());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto graph = lyo::import_pt2(whole.slice(0, size));
        ASSERT_FALSE(graph.has_value()) << size;
        ASSERT_FALSE(graph.error().what.empty());
    }
}

TEST(Pt2, NoChangeOfAByteDoesHarm) {
    const lyo::Bytes whole = archive("seed_mlp");
    std::vector<std::byte> copy(whole.span().begin(), whole.span().end());
    for (std::size_t at = 0; at < copy.size(); at += 7) {
        copy[at] ^= std::byte{0x11};
        const auto graph = lyo::import_pt2(lyo::Bytes::borrow(copy));
        if (!graph) EXPECT_FALSE(graph.error().what.empty());
        copy[at] ^= std::byte{0x11};
    }
}

TEST(Pt2, WhatIsNoArchiveIsCalledThat) {
    const auto graph =
        lyo::import_pt2(lyo::Bytes::borrow(std::as_bytes(std::span("hello, world, this is no zip archive"))));
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, ErrorCode::bad_archive);
    const auto missing = lyo::import_pt2_file("/nonexistent/model.pt2");
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, ErrorCode::file);
}

}  // namespace
