// The builder and the operator table: arguments, defaults, inference over symbolic sizes, errors that stick.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

import lyo.base;
import lyo.graph;

namespace {

using lyo::DType;
using lyo::Sym;
using lyo::ValueId;

std::string type_of(const lyo::Builder& b, ValueId id) { return lyo::to_string(b.type(id)); }

TEST(Table, NamesAreUniqueAndEveryEntryIsWhole) {
    std::set<std::string> names;
    for (const lyo::Op* op : lyo::all_ops()) {
        EXPECT_TRUE(names.insert(op->name).second) << op->name;
        EXPECT_NE(op->def.infer, nullptr) << op->name;
        EXPECT_NE(op->def.eval, nullptr) << op->name;
        const int forms = (op->def.emit != nullptr) + (op->def.view != nullptr) + (op->def.decompose != nullptr) +
                          (op->def.core != lyo::Core::none);
        EXPECT_EQ(forms, 1) << op->name;
        EXPECT_EQ(lyo::find_op(op->name), op);
    }
    EXPECT_EQ(lyo::find_op("relu.default"), lyo::find_op("relu"));
    EXPECT_EQ(lyo::find_op("frobnicate"), nullptr);
    EXPECT_GT(names.size(), 300u);
}

TEST(Builder, DefaultsFillWhatIsLeftOut) {
    lyo::Builder b;
    const ValueId x = b.input("x", DType::f32, {2, 3});
    EXPECT_EQ(type_of(b, b.call("add.Tensor", {x, x})), "f32[2, 3]");
    EXPECT_EQ(type_of(b, b.call("sum.dim_IntList", {x, Sym(1)}, {{"keepdim", true}})), "f32[2, 1]");
    EXPECT_EQ(type_of(b, b.call("softmax.int", {x, Sym(-1)})), "f32[2, 3]");
    EXPECT_FALSE(b.error().has_value());
}

TEST(Builder, TheFirstErrorSticksAndNamesTheOperator) {
    lyo::Builder b;
    const ValueId x = b.input("x", DType::f32, {2, 3});
    b.output(b.call("matmul", {x, x}));
    b.output(b.call("frobnicate", {x}));
    const auto graph = b.finish();
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, lyo::ErrorCode::bad_graph);
    EXPECT_NE(graph.error().to_string().find("matmul"), std::string::npos) << graph.error().to_string();
}

TEST(Builder, WrongArgumentsAreNamed) {
    const auto error = [](auto body) {
        lyo::Builder b;
        const ValueId x = b.input("x", DType::f32, {2, 3});
        body(b, x);
        EXPECT_TRUE(b.error().has_value());
        return b.error() ? b.error()->to_string() : std::string();
    };
    EXPECT_NE(error([](lyo::Builder& b, ValueId x) { b.call("softmax.int", {x}); }).find("dim is missing"),
              std::string::npos);
    EXPECT_NE(error([](lyo::Builder& b, ValueId x) { b.call("relu", {x, x}); }).find("at most 1"), std::string::npos);
    EXPECT_NE(error([](lyo::Builder& b, ValueId x) { b.call("relu", {x}, {{"frob", true}}); }).find("frob"),
              std::string::npos);
    EXPECT_NE(error([](lyo::Builder& b, ValueId x) {
                  b.call("softmax.int", {x, std::string("a")});
              }).find("expected int, got str"),
              std::string::npos);
    EXPECT_NE(error([](lyo::Builder& b, ValueId x) { b.call("softmax.int", {x, Sym(2)}); }).find("[-2, 2)"),
              std::string::npos);
}

TEST(Builder, SizesThatMustAgreeBecomeRelations) {
    lyo::Builder b;
    const Sym n = b.symbol("n", 1, 100), m = b.symbol("m", 1, 100);
    const ValueId x = b.input("x", DType::f32, {n, 4}), y = b.input("y", DType::f32, {m, 4});
    b.output(b.call("add.Tensor", {x, y}));
    const auto graph = b.finish();
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    ASSERT_EQ(graph->relations.size(), 1u);
    EXPECT_EQ(graph->relations[0].left, n);
    EXPECT_EQ(graph->relations[0].right, m);
}

TEST(Builder, DTypesPromoteAsInPyTorch) {
    lyo::Builder b;
    const ValueId u8 = b.input("a", DType::u8, {2}), i8 = b.input("b", DType::i8, {2}),
                  i64 = b.input("c", DType::i64, {}), f16 = b.input("d", DType::f16, {2}),
                  bf16 = b.input("e", DType::bf16, {2}), f64 = b.input("f", DType::f64, {}),
                  flag = b.input("g", DType::boolean, {2});
    const auto sum = [&](ValueId x, lyo::Argument y) { return type_of(b, b.call("add.Tensor", {x, std::move(y)})); };
    EXPECT_EQ(sum(u8, i8), "i16[2]");
    EXPECT_EQ(sum(u8, i64), "u8[2]");  // a tensor with dimensions outranks one without
    EXPECT_EQ(sum(f16, bf16), "f32[2]");
    EXPECT_EQ(sum(f16, f64), "f16[2]");
    EXPECT_EQ(sum(u8, f64), "f64[2]");  // but not a higher category
    EXPECT_EQ(sum(u8, 1.5), "f32[2]");
    EXPECT_EQ(sum(f16, Sym(3)), "f16[2]");
    EXPECT_EQ(sum(flag, Sym(3)), "i64[2]");
    EXPECT_EQ(type_of(b, b.call("div.Tensor", {u8, u8})), "f32[2]");
    EXPECT_EQ(type_of(b, b.call("lt.Tensor", {u8, f16})), "boolean[2]");
    EXPECT_EQ(type_of(b, b.call("sum", {flag})), "i64[]");
    EXPECT_FALSE(b.error().has_value()) << b.error()->to_string();
}

}  // namespace
