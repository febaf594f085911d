// One artifact, one encoding: golden bytes, two writers, and the way back.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

import lyo.base;
import lyo.artifact;
import lyo.fuzz;

namespace {

using lyo::Artifact;
using lyo::ErrorCode;
using lyo::fuzz::Buffer;

Buffer read_golden(const std::string& name) {
    std::ifstream file(std::string(LYO_GOLDEN) + "/" + name, std::ios::binary);
    EXPECT_TRUE(file.is_open()) << name;
    const std::vector<char> content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto bytes = std::as_bytes(std::span(content));
    return Buffer(bytes.begin(), bytes.end());
}

struct Golden {
    const char* file;
    lyo::fuzz::Parts parts;
    const char* id;
};
std::vector<Golden> goldens() {
    return {
        {"v1-small.lyo", lyo::fuzz::small_parts(), "519691979de1cb69d3ac803d851e40fe652c0567f296bac643a17027e80fedc3"},
        {"v1-device.lyo", lyo::fuzz::device_parts(),
         "fda584525efbecc0d45a046db307a456a5f47ea9f1087c0609acd60c0e5ec44c"}};
}

TEST(Encode, GivesTheGoldenBytes) {
    for (const auto& [file, parts, id] : goldens()) {
        const Buffer golden = read_golden(file);
        const auto bytes = Artifact::encode(lyo::fuzz::contents_of(parts));
        ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
        EXPECT_EQ(*bytes, lyo::Bytes::borrow(golden)) << file << ": the format changed; its version must";
        EXPECT_EQ(lyo::fuzz::seal(parts), golden) << file << ": the second writer disagrees";
    }
}

TEST(Decode, OfTheGoldenBytesIsWhatWasEncoded) {
    for (const auto& [file, parts, id] : goldens()) {
        const Buffer golden = read_golden(file);
        const auto artifact = Artifact::check(lyo::fuzz::exactly(golden));
        ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
        EXPECT_EQ(artifact->id().hex(), id) << file;
        EXPECT_TRUE(artifact->constants_verified());
        EXPECT_EQ(*artifact->encode_again(), lyo::Bytes::borrow(golden)) << file;
        EXPECT_EQ(lyo::fuzz::seal(lyo::fuzz::take_apart(*artifact)), golden) << file;
        EXPECT_EQ(artifact->functions().functions[0].name, "main");
        EXPECT_EQ(artifact->functions().constants[1].offset, 64u);
        EXPECT_EQ(artifact->constant(1), lyo::Bytes::borrow(parts.constants[1]));
        EXPECT_EQ(artifact->manifest().targets, parts.manifest.targets);
        EXPECT_NE(artifact->image("cpu"), nullptr);
        EXPECT_EQ(artifact->image("cuda:ptx"), nullptr);
        for (std::size_t i = 0; i < parts.device_images.size(); ++i) {
            EXPECT_NE(artifact->device_image(parts.manifest.targets[i + 1]), nullptr);
            EXPECT_EQ(artifact->device_code(parts.manifest.targets[i + 1]), lyo::Bytes::borrow(parts.device_code[i]));
        }
        EXPECT_EQ(artifact->device_image("cuda:sm_10"), nullptr);
        EXPECT_TRUE(artifact->device_code("cpu").empty());
    }
}

TEST(Encode, TwoWritersAgreeOnEveryGeneratedArtifact) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        lyo::fuzz::Random random(seed);
        const lyo::fuzz::Parts parts = lyo::fuzz::generate(random);
        const Buffer file = lyo::fuzz::seal(parts);
        const auto bytes = Artifact::encode(lyo::fuzz::contents_of(parts));
        ASSERT_TRUE(bytes.has_value()) << "seed " << seed << ": " << bytes.error().to_string();
        ASSERT_EQ(*bytes, lyo::Bytes::borrow(file)) << "seed " << seed;
        ASSERT_TRUE(lyo::fuzz::check_load(*bytes)) << "seed " << seed;
    }
}

TEST(Encode, RefusesWhatWouldNotLoad) {
    const auto refused = [](auto change) {
        lyo::fuzz::Parts parts = lyo::fuzz::small_parts();
        change(parts);
        const auto bytes = Artifact::encode(lyo::fuzz::contents_of(parts));
        EXPECT_FALSE(bytes.has_value());
        return bytes.has_value() ? std::string() : bytes.error().to_string();
    };
    EXPECT_EQ(refused([](auto& p) { p.constants.pop_back(); }), "constants: count: expected 2, got 1");
    EXPECT_EQ(refused([](auto& p) { p.constants[0].pop_back(); }), "constants[0]: bytes: expected 8, got 7");
    EXPECT_EQ(refused([](auto& p) { p.manifest.targets.clear(); }),
              "manifest.targets: do not fit the images that are given");
    EXPECT_EQ(refused([](auto& p) { p.manifest.targets = {"cpu", "cuda:ptx"}; }),
              "manifest.targets: do not fit the images that are given");
    EXPECT_EQ(refused([](auto& p) { p.functions.functions[0].exprs[0].a = 9; }),
              "functions[0]: exprs[0]: symbol: expected below 1, got 9");
    EXPECT_EQ(refused([](auto& p) { p.debug->graph = "\xff"; }), "debug: graph: text is not UTF-8 (at byte 2)");
}

TEST(Encode, ConstantsAreAlignedAndPaddedWithZeros) {
    lyo::fuzz::Parts parts;
    parts.manifest = {"test", lyo::format::abi_version, {}, {}};
    for (const std::uint64_t size : {1, 0, 64, 65, 3}) {
        parts.functions.constants.push_back({"c", lyo::DType::u8, {size}, 0});
        parts.constants.emplace_back(size, std::byte{0xff});
    }
    const auto artifact = Artifact::check(*Artifact::encode(lyo::fuzz::contents_of(parts)));
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    std::vector<std::uint64_t> offsets;
    for (const auto& c : artifact->functions().constants) offsets.push_back(c.offset);
    EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 64, 64, 128, 256}));
    EXPECT_EQ(artifact->bytes().size(), 4096u + 259u);
    EXPECT_EQ(artifact->bytes().data()[4096 + 1], std::byte{0});
}

TEST(Json, NamesEverythingAndEscapesText) {
    lyo::fuzz::Parts parts = lyo::fuzz::device_parts();
    parts.functions.functions[0].name = "a\"b\\c\n\x01\x7f\xc3\xa9";
    const auto artifact = Artifact::check(*Artifact::encode(lyo::fuzz::contents_of(parts)));
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    const std::string json = artifact->to_json();
    for (const char* text :
         {R"("name": "a\"b\\c\n\u0001\u007f)", "\xc3\xa9\"", R"("producer": "lyo.fuzz")", R"("op": "reduce_sum")",
          R"("kernel": "rows")", R"("product")", R"("gemm")", R"("kind": "constants")", R"("outer": true)"})
        EXPECT_NE(json.find(text), std::string::npos) << text << "\n" << json;
    EXPECT_NE(json.find(artifact->id().hex()), std::string::npos);
}

TEST(Expressions, AreEvaluatedAsPythonDoesOrRefused) {
    using lyo::Expr;
    using lyo::ExprOp;
    constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                           highest = std::numeric_limits<std::int64_t>::max();
    const auto value = [](ExprOp op, std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
        const std::vector<Expr> exprs = {{ExprOp::symbol, 0, 0, 0}, {ExprOp::constant, b, 0, 0}, {op, 0, 0, 1}};
        std::vector<std::int64_t> out(3);
        const std::int64_t symbols[] = {a};
        if (!lyo::evaluate(exprs, symbols, out)) return std::nullopt;
        return out[2];
    };
    EXPECT_EQ(value(ExprOp::add, 2, 3), 5);
    EXPECT_EQ(value(ExprOp::add, highest, 1), std::nullopt);
    EXPECT_EQ(value(ExprOp::mul, -4, 3), -12);
    EXPECT_EQ(value(ExprOp::mul, highest, 2), std::nullopt);
    EXPECT_EQ(value(ExprOp::floor_div, -7, 2), -4);
    EXPECT_EQ(value(ExprOp::floor_div, 7, -2), -4);
    EXPECT_EQ(value(ExprOp::floor_div, lowest, -1), std::nullopt);
    EXPECT_EQ(value(ExprOp::floor_div, 7, -1), -7);
    EXPECT_EQ(value(ExprOp::floor_div, 7, 0), std::nullopt);
    EXPECT_EQ(value(ExprOp::mod, -7, 3), 2);
    EXPECT_EQ(value(ExprOp::mod, 7, -3), -2);
    EXPECT_EQ(value(ExprOp::mod, lowest, -1), 0);
    EXPECT_EQ(value(ExprOp::mod, 7, 0), std::nullopt);
    EXPECT_EQ(value(ExprOp::max, 3, 4), 4);
    EXPECT_EQ(value(ExprOp::min, 3, 4), 3);
}

TEST(ByteSize, OfAConstantIsExactOrNothing) {
    using lyo::DType;
    EXPECT_EQ(lyo::byte_size({"", DType::f32, {}, 0}), 4u);
    EXPECT_EQ(lyo::byte_size({"", DType::i16, {3, 5}, 0}), 30u);
    EXPECT_EQ(lyo::byte_size({"", DType::f64, {0, 7}, 0}), 0u);
    EXPECT_EQ(lyo::byte_size({"", DType::u8, {std::uint64_t{1} << 63}, 0}), std::nullopt);
    EXPECT_EQ(lyo::byte_size({"", DType::u8, {(std::uint64_t{1} << 63) - 1}, 0}), (std::uint64_t{1} << 63) - 1);
    EXPECT_EQ(lyo::byte_size({"", DType::f32, {std::uint64_t{1} << 62}, 0}), std::nullopt);
}

}  // namespace
