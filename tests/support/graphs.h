// Graphs and tensors, as the tests of several modules make them. Included last: it imports.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

import lyo.base;
import lyo.graph;

namespace lyo_test {

/// Deterministic values in [-2, 2), integers in [-4, 3], in memory that the tensor owns.
inline lyo::Tensor filled(const lyo::Dims& shape, lyo::DType dtype, std::uint64_t seed) {
    auto tensor = lyo::Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    auto* data = static_cast<std::byte*>(tensor->mutable_data());
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (std::int64_t i = 0; i < tensor->numel(); ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double value = static_cast<double>(state >> 11) * 0x1p-53 * 4 - 2;
        if (!lyo::is_float(dtype)) value = std::floor(value * 1.75);
        lyo::store_double(data + static_cast<std::size_t>(i) * lyo::size_of(dtype), dtype, value);
    }
    return *tensor;
}

inline lyo::Graph built(const std::function<void(lyo::Builder&)>& body) {
    lyo::Builder builder;
    body(builder);
    auto graph = builder.finish();
    EXPECT_TRUE(graph.has_value()) << graph.error().to_string();
    return *graph;
}

}  // namespace lyo_test
