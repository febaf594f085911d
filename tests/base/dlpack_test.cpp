#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

import lyo.base;

namespace {

using lyo::Device;
using lyo::Dims;
using lyo::DType;
using lyo::Tensor;

/// A tensor of another library, that counts how often it is given back.
struct Foreign {
    DLManagedTensor managed{};
    std::vector<std::int64_t> shape, strides;
    std::vector<float> values = {0, 1, 2, 3, 4, 5};
    int deleted = 0;

    explicit Foreign(std::vector<std::int64_t> s) : shape(std::move(s)) {
        DLTensor& t = managed.dl_tensor;
        t.data = values.data();
        t.device = {kDLCPU, 0};
        t.ndim = static_cast<int>(shape.size());
        t.dtype = {kDLFloat, 32, 1};
        t.shape = shape.data();
        managed.manager_ctx = this;
        managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    }
};

TEST(FromDLPack, TakesOverAndGivesBackOnceWhenTheLastTensorIsGone) {
    Foreign foreign({2, 3});
    {
        std::optional<Tensor> kept;
        {
            const auto tensor = lyo::from_dlpack(&foreign.managed);
            ASSERT_TRUE(tensor.has_value()) << tensor.error().to_string();
            EXPECT_EQ(tensor->data(), foreign.values.data());
            EXPECT_EQ(tensor->to_string(), "tensor([[0, 1, 2], [3, 4, 5]], f32)");
            kept = *tensor;
        }
        EXPECT_EQ(foreign.deleted, 0);
    }
    EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDLPack, FollowsStridesAndOffset) {
    Foreign foreign({3, 2});
    foreign.strides = {-1, 3};
    foreign.managed.dl_tensor.strides = foreign.strides.data();
    foreign.managed.dl_tensor.byte_offset = 8;
    EXPECT_EQ(lyo::from_dlpack(&foreign.managed)->to_string(), "tensor([[2, 5], [1, 4], [0, 3]], f32)");
    EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDLPack, AcceptsTensorsWithoutElementsOrDimensions) {
    Foreign empty({0, 3});
    empty.managed.dl_tensor.data = nullptr;
    empty.managed.dl_tensor.byte_offset = 64;
    EXPECT_EQ(lyo::from_dlpack(&empty.managed)->data(), nullptr);
    Foreign scalar({});
    scalar.managed.dl_tensor.shape = nullptr;
    EXPECT_EQ(lyo::from_dlpack(&scalar.managed)->to_string(), "tensor(0, f32)");
}

TEST(FromDLPack, KnowsEveryDTypeAndDevice) {
    const std::pair<DLDataType, DType> types[] = {
        {{kDLInt, 8, 1}, DType::i8},     {{kDLInt, 16, 1}, DType::i16},     {{kDLInt, 32, 1}, DType::i32},
        {{kDLInt, 64, 1}, DType::i64},   {{kDLUInt, 8, 1}, DType::u8},      {{kDLFloat, 16, 1}, DType::f16},
        {{kDLFloat, 64, 1}, DType::f64}, {{kDLBfloat, 16, 1}, DType::bf16}, {{6, 8, 1}, DType::boolean}};
    for (const auto& [type, dtype] : types) {
        Foreign foreign({1});
        foreign.managed.dl_tensor.dtype = type;
        foreign.managed.dl_tensor.device = {kDLCUDA, 3};
        const auto tensor = lyo::from_dlpack(&foreign.managed);
        ASSERT_TRUE(tensor.has_value()) << lyo::to_string(dtype);
        EXPECT_EQ(tensor->dtype(), dtype);
        EXPECT_EQ(tensor->device(), Device::cuda(3));
    }
}

TEST(FromDLPack, RefusesWhatLyoDoesNotHaveAndGivesItBack) {
    const auto refused = [](auto change) {
        Foreign foreign({2, 3});
        change(foreign, foreign.managed.dl_tensor);
        const auto tensor = lyo::from_dlpack(&foreign.managed);
        EXPECT_FALSE(tensor.has_value());
        EXPECT_EQ(foreign.deleted, 1);
        return tensor.has_value() ? std::string() : tensor.error().to_string();
    };
    EXPECT_EQ(refused([](auto&, DLTensor& t) { t.dtype = {kDLFloat, 32, 4}; }),
              "dlpack: no such dtype: code 2, bits 32, lanes 4");
    EXPECT_EQ(refused([](auto&, DLTensor& t) { t.dtype = {kDLComplex, 64, 1}; }),
              "dlpack: no such dtype: code 5, bits 64, lanes 1");
    EXPECT_EQ(refused([](auto&, DLTensor& t) { t.dtype = {kDLUInt, 32, 1}; }),
              "dlpack: no such dtype: code 1, bits 32, lanes 1");
    EXPECT_EQ(refused([](auto&, DLTensor& t) { t.dtype = {kDLInt, 4, 1}; }),
              "dlpack: no such dtype: code 0, bits 4, lanes 1");
    EXPECT_EQ(refused([](auto&, DLTensor& t) { t.ndim = -1; }), "dlpack: rank: expected at most 8, got -1");
    EXPECT_EQ(refused([](Foreign& f, DLTensor& t) {
                  f.shape.assign(9, 1);
                  t.shape = f.shape.data();
                  t.ndim = 9;
              }),
              "dlpack: rank: expected at most 8, got 9");
    EXPECT_EQ(refused([](auto&, DLTensor& t) { t.device = {kDLOpenCL, 0}; }),
              "dlpack: device type: expected cpu or cuda, got 4");
    EXPECT_EQ(refused([](auto&, DLTensor& t) { t.shape = nullptr; }), "dlpack: no shape");
    EXPECT_EQ(refused([](Foreign& f, auto&) { f.shape[0] = -1; }), "dlpack: shape [-1, 3] has no size");
    EXPECT_EQ(refused([](Foreign& f, auto&) { f.shape[0] = std::numeric_limits<std::int64_t>::max(); }),
              "dlpack: shape [9223372036854775807, 3] has no size");
    EXPECT_EQ(lyo::from_dlpack(nullptr).error().to_string(), "dlpack: no tensor");
}

TEST(FromDLPack, ATensorWithoutDeleterIsJustLeft) {
    Foreign foreign({2});
    foreign.managed.deleter = nullptr;
    EXPECT_EQ(lyo::from_dlpack(&foreign.managed)->to_string(), "tensor([0, 1], f32)");
    EXPECT_EQ(foreign.deleted, 0);
}

TEST(ToDLPack, SharesTheMemoryUntilTheDeleterIsCalled) {
    auto owner = std::make_shared<std::vector<float>>(6, 1.0f);
    const std::weak_ptr<std::vector<float>> watch = owner;
    DLManagedTensor* managed = nullptr;
    {
        const Tensor tensor = Tensor::share(owner, owner->data(), {3, 2}, {1, 3}, DType::f32, Device::cpu());
        managed = *lyo::to_dlpack(tensor);
        owner.reset();
    }
    const DLTensor& t = managed->dl_tensor;
    EXPECT_EQ(t.ndim, 2);
    EXPECT_EQ(t.shape[0], 3);
    EXPECT_EQ(t.strides[1], 3);
    EXPECT_EQ(t.byte_offset, 0u);
    EXPECT_EQ(t.dtype.code, kDLFloat);
    EXPECT_EQ(t.dtype.bits, 32);
    EXPECT_EQ(t.device.device_type, kDLCPU);
    EXPECT_FALSE(watch.expired());
    managed->deleter(managed);
    EXPECT_TRUE(watch.expired());
}

TEST(ToDLPack, ComesBackAsTheSameTensor) {
    for (std::uint8_t i = 0; i < lyo::dtype_count; ++i) {
        const auto tensor = Tensor::empty({2, 1, 3}, static_cast<DType>(i));
        const auto back = lyo::from_dlpack(*lyo::to_dlpack(*tensor));
        ASSERT_TRUE(back.has_value()) << back.error().to_string();
        EXPECT_EQ(back->data(), tensor->data());
        EXPECT_EQ(back->shape(), tensor->shape());
        EXPECT_EQ(back->strides(), tensor->strides());
        EXPECT_EQ(back->dtype(), tensor->dtype());
    }
    const Tensor device = Tensor::borrow(reinterpret_cast<const void*>(16), {}, DType::f32, Device::cuda(2));
    EXPECT_EQ(lyo::from_dlpack(*lyo::to_dlpack(device))->device(), Device::cuda(2));
}

}  // namespace
