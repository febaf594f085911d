#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

import lyo.base;

namespace {

using lyo::Device;
using lyo::Dims;
using lyo::DType;
using lyo::Tensor;

std::vector<float> counting(std::size_t n) {
    std::vector<float> out(n);
    std::iota(out.begin(), out.end(), 0.0f);
    return out;
}

TEST(Dims, HoldUpToEightNumbers) {
    Dims dims;
    for (int i = 0; i < 10; ++i) dims.push_back(i);
    EXPECT_EQ(dims.size(), lyo::max_rank);
    EXPECT_EQ(lyo::to_string(dims), "[0, 1, 2, 3, 4, 5, 6, 7]");
    EXPECT_EQ(lyo::to_string(Dims()), "[]");
    EXPECT_TRUE((Dims{1, 2} == Dims{1, 2}) && !(Dims{1, 2} == Dims{1}) && !(Dims{1} == Dims{2}));
}

TEST(Dims, StridesOfRowMajorMemory) {
    EXPECT_EQ(lyo::contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
    EXPECT_EQ(lyo::contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
    EXPECT_EQ(lyo::contiguous_strides({}), Dims());
}

TEST(Dims, ElementCountIsExactOrNothing) {
    constexpr std::int64_t huge = std::int64_t{1} << 40;
    EXPECT_EQ(lyo::element_count(Dims{}), 1);
    EXPECT_EQ(lyo::element_count(Dims{2, 3}), 6);
    EXPECT_EQ(lyo::element_count(Dims{2, 0}), 0);
    EXPECT_EQ(lyo::element_count(Dims{-1}), std::nullopt);
    EXPECT_EQ(lyo::element_count(Dims{huge, huge}), std::nullopt);
    EXPECT_EQ(lyo::element_count(Dims{huge, huge, 0}), std::nullopt);
    EXPECT_EQ(lyo::element_count(Dims{0, -1}), std::nullopt);
}

TEST(Device, IsParsedAsItIsPrinted) {
    for (const Device device : {Device::cpu(), Device::cuda(0), Device::cuda(17)})
        EXPECT_EQ(*Device::parse(device.to_string()), device);
    EXPECT_EQ(*Device::parse("cuda"), Device::cuda(0));
    for (const char* text : {"", "gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "CPU", " cpu"})
        EXPECT_FALSE(Device::parse(text).has_value()) << text;
    EXPECT_EQ(Device::parse("gpu").error().to_string(), "device: expected cpu or cuda:N, got gpu");
}

TEST(Tensor, PrintsItsElements) {
    const auto values = counting(6);
    EXPECT_EQ(Tensor::borrow(values.data(), {2, 3}, DType::f32).to_string(), "tensor([[0, 1, 2], [3, 4, 5]], f32)");
    EXPECT_EQ(Tensor::borrow(values.data() + 4, {}, DType::f32).to_string(), "tensor(4, f32)");
    EXPECT_EQ(Tensor::borrow(values.data(), {0}, DType::f32).to_string(), "tensor([], f32)");
    EXPECT_EQ(Tensor::borrow(values.data(), {2, 0}, DType::f32).to_string(), "tensor([[], []], f32)");
    EXPECT_EQ(Tensor::borrow(values.data(), {0, 2}, DType::f32).to_string(), "tensor([], f32)");
    const std::int64_t large[] = {std::numeric_limits<std::int64_t>::max(), -1};
    EXPECT_EQ(Tensor::borrow(large, {2}, DType::i64).to_string(), "tensor([9223372036854775807, -1], i64)");
    const bool flags[] = {true, false};
    EXPECT_EQ(Tensor::borrow(flags, {2}, DType::boolean).to_string(), "tensor([true, false], boolean)");
    const float odd[] = {std::numeric_limits<float>::infinity(), -0.0f, 1.5e-7f};
    EXPECT_EQ(Tensor::borrow(odd, {3}, DType::f32).to_string(), "tensor([inf, -0, 1.5e-07], f32)");
}

TEST(Tensor, PrintsTheEdgesOfLongDimensions) {
    const auto values = counting(24);
    EXPECT_EQ(Tensor::borrow(values.data(), {10}, DType::f32).to_string(),
              "tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], f32)");
    EXPECT_EQ(Tensor::borrow(values.data(), {12}, DType::f32).to_string(),
              "tensor([0, 1, 2, 3, ..., 8, 9, 10, 11], f32)");
    EXPECT_EQ(Tensor::borrow(values.data(), {12, 2}, DType::f32).to_string(),
              "tensor([[0, 1], [2, 3], [4, 5], [6, 7], ..., [16, 17], [18, 19], [20, 21], [22, 23]], f32)");
}

TEST(Tensor, OnAnotherDeviceIsDescribedAndNotRead) {
    const Tensor tensor = Tensor::borrow(reinterpret_cast<const void*>(16), {2, 3}, DType::f16, Device::cuda(1));
    EXPECT_EQ(tensor.to_string(), "tensor(shape [2, 3] on cuda:1, f16)");
    const auto refused = tensor.contiguous();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, lyo::ErrorCode::wrong_device);
}

TEST(Tensor, AnyStridesAreFollowed) {
    const auto values = counting(12);
    const auto view = [&](std::size_t first, const Dims& strides) {
        return Tensor::borrow(values.data() + first, {2, 3}, strides, DType::f32).to_string();
    };
    EXPECT_EQ(view(0, {1, 2}), "tensor([[0, 2, 4], [1, 3, 5]], f32)");
    EXPECT_EQ(view(11, {-6, -1}), "tensor([[11, 10, 9], [5, 4, 3]], f32)");
    EXPECT_EQ(view(7, {0, 0}), "tensor([[7, 7, 7], [7, 7, 7]], f32)");
    EXPECT_EQ(view(2, {0, 4}), "tensor([[2, 6, 10], [2, 6, 10]], f32)");
    EXPECT_EQ(view(3, {6, -1}), "tensor([[3, 2, 1], [9, 8, 7]], f32)");
}

TEST(Tensor, ContiguousIsItselfOrACopy) {
    const auto values = counting(12);
    const Tensor rows = Tensor::borrow(values.data(), {3, 4}, DType::f32);
    EXPECT_EQ(rows.contiguous()->data(), values.data());
    const Tensor columns = Tensor::borrow(values.data(), {4, 3}, {1, 4}, DType::f32);
    EXPECT_FALSE(columns.is_contiguous());
    const auto copy = columns.contiguous();
    ASSERT_TRUE(copy.has_value());
    EXPECT_NE(copy->data(), values.data());
    EXPECT_TRUE(copy->is_contiguous());
    EXPECT_EQ(copy->to_string(), columns.to_string());
    for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(copy->at(i), columns.at(i));
}

TEST(Tensor, ContiguityIgnoresDimensionsOfOneAndOfNothing) {
    const auto values = counting(6);
    const auto contiguous = [&](const Dims& shape, const Dims& strides) {
        return Tensor::borrow(values.data(), shape, strides, DType::f32).is_contiguous();
    };
    EXPECT_TRUE(contiguous({1, 6}, {99, 1}));
    EXPECT_TRUE(contiguous({6, 1}, {1, -5}));
    EXPECT_TRUE(contiguous({0, 6}, {-3, 17}));
    EXPECT_TRUE(contiguous({}, {}));
    EXPECT_FALSE(contiguous({2, 3}, {1, 2}));
    EXPECT_FALSE(contiguous({3}, {0}));
    EXPECT_FALSE(contiguous({3}, {-1}));
    EXPECT_FALSE(contiguous({2, 2}, {4, 1}));
}

TEST(Tensor, EmptyIsAlignedAndSizedOrRefused) {
    const auto tensor = Tensor::empty({3, 5}, DType::bf16);
    ASSERT_TRUE(tensor.has_value());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->data()) % 64, 0u);
    EXPECT_EQ(tensor->numel(), 15);
    std::memset(tensor->mutable_data(), 0, 30);
    EXPECT_TRUE(Tensor::empty({0, 5}, DType::f64).has_value());
    constexpr std::int64_t huge = std::int64_t{1} << 40;
    EXPECT_EQ(Tensor::empty({huge, huge}, DType::u8).error().code, lyo::ErrorCode::invalid_argument);
    EXPECT_EQ(Tensor::empty({-1}, DType::u8).error().to_string(), "shape [-1] has no size");
    EXPECT_EQ(Tensor::empty({std::int64_t{1} << 61}, DType::f64).error().code, lyo::ErrorCode::invalid_argument);
}

TEST(Tensor, CopiesShareTheMemoryAndKeepItAlive) {
    auto owner = std::make_shared<std::vector<float>>(counting(4));
    const std::weak_ptr<std::vector<float>> watch = owner;
    std::optional<Tensor> kept;
    {
        const Tensor tensor = Tensor::share(owner, owner->data(), {4}, {1}, DType::f32, Device::cpu());
        kept = tensor;
        owner.reset();
    }
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(kept->at(3), 3.0);
    kept.reset();
    EXPECT_TRUE(watch.expired());
}

}  // namespace
