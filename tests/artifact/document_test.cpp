// FORMAT.md lists the numbers of the schema: they are those of the code.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

import lyo.base;
import lyo.artifact;

namespace {

/// The document with every run of white space as one space.
std::string document() {
    std::ifstream file(LYO_FORMAT_DOCUMENT);
    EXPECT_TRUE(file.is_open());
    std::string out;
    for (auto at = std::istreambuf_iterator<char>(file); at != std::istreambuf_iterator<char>(); ++at) {
        const bool space = *at == ' ' || *at == '\n';
        if (!space || out.empty() || out.back() != ' ') out += space ? ' ' : *at;
    }
    return out;
}

template <class Name>
std::string listed(std::size_t count, Name name) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += (i > 0 ? ", " : "") + std::to_string(i) + " " + std::string(name(i));
    return out;
}

void expect_listed(const std::string& list) { EXPECT_NE(document().find(list), std::string::npos) << list; }

TEST(Document, ListsTheNumbersOfEveryEnumeration) {
    expect_listed(listed(lyo::dtype_count, [](auto i) { return lyo::to_string(static_cast<lyo::DType>(i)); }));
    expect_listed(listed(lyo::scalar_op_count, [](auto i) { return lyo::to_string(static_cast<lyo::ScalarOp>(i)); }));
    expect_listed(listed(lyo::reg_class_count, [](auto i) { return lyo::to_string(static_cast<lyo::RegClass>(i)); }));
    expect_listed(listed(lyo::expr_op_names.size(), [](auto i) { return lyo::expr_op_names[i]; }));
    expect_listed(listed(lyo::guard_kind_names.size(), [](auto i) { return lyo::guard_kind_names[i]; }));
    expect_listed(listed(lyo::space_names.size(), [](auto i) { return lyo::space_names[i]; }));
    expect_listed(listed(lyo::operand_kind_names.size(), [](auto i) { return lyo::operand_kind_names[i]; }));
}

/// The fields' names of the document's row, as `fields` has them.
template <class T>
void expect_fields(const std::string& name) {
    const std::string text = document();
    const auto row = text.find("| " + name + " | ");
    ASSERT_NE(row, std::string::npos) << name;
    const auto from = row + name.size() + 5, to = text.find(" |", from);
    std::string fields;
    for (std::size_t at = from; at < to;) {
        fields += (fields.empty() ? "" : " ") + text.substr(at, text.find(':', at) - at);
        const auto next = text.find("; ", at);
        at = next == std::string::npos || next > to ? to : next + 2;
    }
    EXPECT_EQ(fields, T::fields) << name;
}

TEST(Document, ListsTheFieldsOfEveryStructureInTheirOrder) {
    expect_fields<lyo::Manifest>("Manifest");
    expect_fields<lyo::FunctionTable>("FunctionTable");
    expect_fields<lyo::FunctionSpec>("FunctionSpec");
    expect_fields<lyo::Symbol>("Symbol");
    expect_fields<lyo::Expr>("Expr");
    expect_fields<lyo::TensorSpec>("TensorSpec");
    expect_fields<lyo::Guard>("Guard");
    expect_fields<lyo::Constant>("Constant");
    expect_fields<lyo::Debug>("Debug");
    expect_fields<lyo::Image>("Image");
    expect_fields<lyo::Program>("Program");
    expect_fields<lyo::Loop>("Loop");
    expect_fields<lyo::Operand>("Operand");
    expect_fields<lyo::Phase>("Phase");
    expect_fields<lyo::Instr>("Instr");
    expect_fields<lyo::Gemm>("Gemm");
    expect_fields<lyo::DeviceImage>("DeviceImage");
    expect_fields<lyo::DeviceProgram>("DeviceProgram");
    expect_fields<lyo::Launch>("Launch");
    expect_fields<lyo::Buffer>("Buffer");
    expect_fields<lyo::Product>("Product");
}

}  // namespace
