// Exported models with PyTorch's own answers: each is compiled, loaded, called and given back. The folders: this one,
// and those that the CMake variable LYO_CASES names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

import lyo;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> case_folders() {
    std::map<std::string, fs::path> found;  // of two folders with one name, the first
    std::string list = LYO_CASE_FOLDERS;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(':', at), list.size());
        const fs::path root = list.substr(at, end - at);
        if (fs::is_directory(root))
            for (const auto& entry : fs::directory_iterator(root))
                if (fs::exists(entry.path() / "model.pt2"))
                    found.emplace(entry.path().filename().string(), entry.path());
        at = end + 1;
    }
    std::vector<fs::path> out;
    for (const auto& [name, path] : found) out.push_back(path);
    return out;
}

struct Case {
    lyo::Graph graph;
    std::vector<lyo::Tensor> inputs, outputs;
    double rtol = 0, atol = 0;
};

std::vector<std::int64_t> numbers(const nlohmann::json& list) { return list.get<std::vector<std::int64_t>>(); }

/// The same elements at other strides, in memory that just holds them.
lyo::Tensor laid_out(const lyo::Tensor& from, const std::vector<std::int64_t>& strides) {
    const lyo::Dims wanted{std::span<const std::int64_t>(strides)};
    if (from.strides() == wanted || from.numel() == 0) return from;
    std::int64_t extent = 1;
    for (std::size_t d = 0; d < from.rank(); ++d) extent += (from.shape()[d] - 1) * wanted[d];
    auto memory = lyo::Tensor::empty({extent}, from.dtype());
    if (!memory) std::abort();
    const std::size_t size = lyo::size_of(from.dtype());
    auto* to = static_cast<std::byte*>(memory->mutable_data());
    for (std::int64_t i = 0; i < from.numel(); ++i) {
        std::int64_t at = 0, rest = i;
        for (std::size_t d = from.rank(); d-- > 0; rest /= from.shape()[d]) at += rest % from.shape()[d] * wanted[d];
        std::memcpy(to + static_cast<std::size_t>(at) * size,
                    static_cast<const std::byte*>(from.data()) + static_cast<std::size_t>(i) * size, size);
    }
    auto owner = std::make_shared<lyo::Tensor>(*memory);
    return lyo::Tensor::share(owner, memory->data(), from.shape(), wanted, from.dtype(), lyo::Device::cpu());
}

void load(const fs::path& folder, std::optional<Case>& out) {
    Case c;
    std::ifstream stream(folder / "case.json");
    const auto json = nlohmann::json::parse(stream);
    c.rtol = json["rtol"];
    c.atol = json["atol"];
    auto graph = lyo::import_pt2_file((folder / "model.pt2").string());
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    c.graph = std::move(*graph);
    auto bytes = lyo::read_file((folder / "io.safetensors").string());
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto tensors = lyo::read_safetensors(*bytes);
    ASSERT_TRUE(tensors.has_value()) << tensors.error().to_string();
    const auto find = [&](const std::string& name) -> const lyo::Tensor* {
        for (const auto& t : *tensors)
            if (t.name == name) return &t.tensor;
        return nullptr;
    };
    for (std::size_t i = 0; const auto* t = find("input." + std::to_string(i)); ++i)
        c.inputs.push_back(laid_out(*t, numbers(json["inputs"].at(i).at(2))));
    for (std::size_t i = 0; const auto* t = find("output." + std::to_string(i)); ++i) c.outputs.push_back(*t);
    ASSERT_FALSE(c.outputs.empty());
    out = std::move(c);
}

void expect_close(const std::vector<lyo::Tensor>& got, const Case& c) {
    ASSERT_GE(got.size(), c.outputs.size());
    for (std::size_t o = 0; o < c.outputs.size(); ++o) {
        const lyo::Tensor &a = got[o], &b = c.outputs[o];
        ASSERT_EQ(a.dtype(), b.dtype()) << "output " << o;
        ASSERT_EQ(a.shape(), b.shape()) << "output " << o;
        for (std::int64_t i = 0; i < a.numel(); ++i) {
            const double x = a.at(i), y = b.at(i);
            if (std::isnan(x) && std::isnan(y)) continue;
            if (x == y) continue;  // infinities
            ASSERT_LE(std::fabs(x - y), c.atol + c.rtol * std::fabs(y))
                << "output " << o << " element " << i << ": " << x << ", " << y;
        }
    }
}

class Cases : public testing::TestWithParam<fs::path> {};

TEST_P(Cases, TheReferenceInterpreterGivesPyTorchsAnswers) {
    std::optional<Case> c;
    ASSERT_NO_FATAL_FAILURE(load(GetParam(), c));
    const auto outputs = lyo::interpret(c->graph, c->inputs);
    ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
    expect_close(*outputs, *c);
}

TEST_P(Cases, TheCompiledFunctionGivesPyTorchsAnswersAndItsBytesBack) {
    std::optional<Case> c;
    ASSERT_NO_FATAL_FAILURE(load(GetParam(), c));
    const auto bytes = lyo::compile(c->graph);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value()) << artifact.error().to_string();
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    ASSERT_TRUE(function.has_value()) << function.error().to_string();
    for (int call = 0; call < 2; ++call) {
        const auto outputs = function->call(c->inputs);
        ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
        ASSERT_NO_FATAL_FAILURE(expect_close(*outputs, *c));
    }
    EXPECT_EQ(function->serialize().data(), artifact->bytes().data());
    EXPECT_TRUE(function->serialize() == *bytes);
    const auto again = function->artifact().encode_again();
    ASSERT_TRUE(again.has_value()) << again.error().to_string();
    EXPECT_TRUE(*again == *bytes);
}

INSTANTIATE_TEST_SUITE_P(Models, Cases, testing::ValuesIn(case_folders()),
                         [](const auto& info) { return info.param.filename().string(); });

}  // namespace
