// One artifact with a symbolic batch: rows do not depend on one another, so any batch made of the recorded rows has the
// recorded answers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

import lyo;

namespace {

/// The first `rows` rows of a tensor, over and over.
lyo::Tensor repeated(const lyo::Tensor& from, std::int64_t rows) {
    lyo::Dims shape = from.shape();
    shape[0] = rows;
    auto out = lyo::Tensor::empty(shape, from.dtype());
    EXPECT_TRUE(out.has_value());
    const std::size_t row = static_cast<std::size_t>(from.numel() / from.shape()[0]) * lyo::size_of(from.dtype());
    for (std::int64_t i = 0; i < rows; ++i)
        std::memcpy(static_cast<std::byte*>(out->mutable_data()) + static_cast<std::size_t>(i) * row,
                    static_cast<const std::byte*>(from.data()) + static_cast<std::size_t>(i % from.shape()[0]) * row,
                    row);
    return *out;
}

TEST(DynamicBatch, OneArtifactServesOtherBatchesThanTheRecordedOne) {
    const std::string folder = std::string(LYO_CASES_DIR) + "/mlp_dynamic_batch";
    const auto graph = lyo::import_pt2_file(folder + "/model.pt2");
    ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
    const auto bytes = lyo::compile(*graph);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value());
    const auto function = lyo::hydrate(*artifact, lyo::Device::cpu());
    ASSERT_TRUE(function.has_value()) << function.error().to_string();
    const auto file = lyo::read_file(folder + "/io.safetensors");
    ASSERT_TRUE(file.has_value());
    const auto recorded = lyo::read_safetensors(*file);
    ASSERT_TRUE(recorded.has_value());
    const lyo::Tensor *input = nullptr, *output = nullptr;
    for (const auto& t : *recorded) (t.name == "input.0" ? input : output) = &t.tensor;
    ASSERT_NE(input, nullptr);
    ASSERT_NE(output, nullptr);
    for (const std::int64_t batch : {1, 2, 33, 7, 1, 4096}) {
        const auto got = function->call({repeated(*input, batch)});
        ASSERT_TRUE(got.has_value()) << got.error().to_string();
        const lyo::Tensor expected = repeated(*output, batch);
        ASSERT_EQ(got->front().shape(), expected.shape());
        for (std::int64_t i = 0; i < expected.numel(); ++i)
            ASSERT_NEAR(got->front().at(i), expected.at(i), 1e-5 + 1e-4 * std::fabs(expected.at(i)))
                << "batch " << batch << ", element " << i;
    }
    const auto beyond = function->call({repeated(*input, 4097)});
    ASSERT_FALSE(beyond.has_value());
    EXPECT_EQ(beyond.error().code, lyo::ErrorCode::guard_failed);
}

}  // namespace
