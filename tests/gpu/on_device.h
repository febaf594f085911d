// What the tests of functions on a device share. Included last: it imports.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../support/graphs.h"

import lyo;

namespace lyo_test {

using lyo::DType;
using lyo::Sym;
using lyo::Tensor;
using lyo::ValueId;

inline constexpr DType dtypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                                   DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

/// The target for device 0; empty, with the reason in `why`, where there is none.
inline std::string target(std::string& why) {
    const auto devices = lyo::cuda_devices();
    if (!devices) {
        why = "no CUDA device: " + devices.error().to_string();
        return {};
    }
    return "cuda:sm_" + std::to_string(devices->front().major) + std::to_string(devices->front().minor);
}

class OnDevice : public testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        target_ = target(why);
        if (target_.empty()) GTEST_SKIP() << why;
    }
    std::string target_;
};

inline lyo::Function live(const lyo::Graph& graph, const std::string& target) {
    auto bytes = lyo::compile(graph, {{target}, false});
    EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string() << "\n" << graph.to_string();
    auto artifact = lyo::Artifact::check(*bytes);
    EXPECT_TRUE(artifact.has_value()) << artifact.error().to_string();
    auto function = lyo::hydrate(*artifact, lyo::Device::cuda(0));
    EXPECT_TRUE(function.has_value()) << function.error().to_string();
    return *function;
}

inline std::vector<Tensor> on_device(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> out;
    for (const Tensor& t : tensors) {
        auto copy = lyo::copy_to_device(t, lyo::Device::cuda(0));
        EXPECT_TRUE(copy.has_value()) << copy.error().to_string();
        out.push_back(*copy);
    }
    return out;
}

/// Rounding of a dtype, times what a sum of `terms` terms may lose.
inline double tolerance(DType dtype, double terms) {
    const double epsilon = dtype == DType::f64    ? 2.3e-16
                           : dtype == DType::f32  ? 1.2e-7
                           : dtype == DType::f16  ? 9.8e-4
                           : dtype == DType::bf16 ? 7.9e-3
                                                  : 0;
    const double accumulate = dtype == DType::f64 ? 2.3e-16 : 1.2e-7;
    return 4 * epsilon + accumulate * (16 + 2 * terms);
}

inline void expect_same(const std::vector<Tensor>& expected, const std::vector<Tensor>& got, double terms,
                        const std::string& what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t o = 0; o < got.size(); ++o) {
        const auto host = lyo::copy_to_cpu(got[o]);
        ASSERT_TRUE(host.has_value()) << host.error().to_string() << "\n" << what;
        ASSERT_EQ(host->shape(), expected[o].shape()) << what;
        ASSERT_EQ(host->dtype(), expected[o].dtype()) << what;
        const double allowed = lyo::is_float(host->dtype()) ? tolerance(host->dtype(), terms) : 0;
        for (std::int64_t i = 0; i < host->numel(); ++i) {
            const double a = host->at(i), b = expected[o].at(i);
            if (std::isnan(a) && std::isnan(b)) continue;
            if (a == b) continue;
            ASSERT_LE(std::fabs(a - b), allowed * (1 + std::fabs(b)))
                << "output " << o << " element " << i << ": " << a << ", " << b << "\n"
                << what;
        }
    }
}

inline void check(const lyo::Graph& graph, const std::string& target, const std::vector<Tensor>& inputs,
                  double terms = 1) {
    const auto expected = lyo::interpret(graph, inputs);
    ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
    const lyo::Function function = live(graph, target);
    const auto got = function.call(on_device(inputs));
    ASSERT_TRUE(got.has_value()) << got.error().to_string() << "\n" << graph.to_string();
    expect_same(*expected, *got, terms, graph.to_string());
}

}  // namespace lyo_test
