// lyo_kernels_pack against the obvious loop on the host.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <lyo_kernels.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using Dims = std::vector<std::int64_t>;

std::string message(int status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); }

/// Why device tests cannot run here; empty when they can.
std::string no_device() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return "no CUDA device: " + message(status);
    return count > 0 ? "" : "no CUDA device: the driver lists none";
}

/// Device memory that may be too large for the device.
class Memory {
  public:
    explicit Memory(std::size_t size) { status_ = cudaMalloc(&data_, size); }
    ~Memory() { cudaFree(data_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    cudaError_t status() const { return status_; }
    unsigned char* data() const { return static_cast<unsigned char*>(data_); }

  private:
    void* data_ = nullptr;
    cudaError_t status_ = cudaSuccess;
};

/// The elements in row-major order, one byte string.
std::vector<unsigned char> packed(const unsigned char* from, std::size_t element, const Dims& sizes,
                                  const Dims& strides) {
    std::int64_t count = 1;
    for (auto size : sizes) count *= size;
    std::vector<unsigned char> out;
    out.reserve(static_cast<std::size_t>(count) * element);
    Dims index(sizes.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < sizes.size(); ++d) offset += index[d] * strides[d];
        const auto* at = from + offset * static_cast<std::int64_t>(element);
        out.insert(out.end(), at, at + element);
        for (std::size_t d = sizes.size(); d-- > 0;) {
            if (++index[d] < sizes[d]) break;
            index[d] = 0;
        }
    }
    return out;
}

/// Packs random memory of that layout on the device and compares every byte, and the bytes behind the result.
void check(int element, const Dims& sizes, const Dims& strides) {
    std::int64_t lowest = 0, highest = 0, count = 1;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        count *= sizes[d];
        if (sizes[d] > 0) (strides[d] < 0 ? lowest : highest) += (sizes[d] - 1) * strides[d];
    }
    const auto width = static_cast<std::size_t>(element);
    std::vector<unsigned char> host(static_cast<std::size_t>(highest - lowest + 1) * width);
    std::mt19937 random(static_cast<unsigned>(host.size() + width));
    for (auto& byte : host) byte = static_cast<unsigned char>(random());
    const auto origin = static_cast<std::size_t>(-lowest) * width;

    const std::size_t size = static_cast<std::size_t>(count) * width, guard = 64;
    const Memory from(host.size()), to(size + guard);
    ASSERT_EQ(from.status(), cudaSuccess);
    ASSERT_EQ(to.status(), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(from.data(), host.data(), host.size(), cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaMemset(to.data(), 0xa5, size + guard), cudaSuccess);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(lyo_kernels_pack(to.data(), from.data() + origin, element, static_cast<int>(sizes.size()), sizes.data(),
                               strides.data(), stream),
              0);
    const auto waited = cudaStreamSynchronize(stream);
    EXPECT_EQ(waited, cudaSuccess) << message(waited);
    cudaStreamDestroy(stream);

    std::vector<unsigned char> got(size + guard);
    ASSERT_EQ(cudaMemcpy(got.data(), to.data(), got.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    auto expected = packed(host.data() + origin, width, sizes, strides);
    expected.insert(expected.end(), guard, 0xa5);
    EXPECT_TRUE(got == expected) << "element size " << element << ", sizes " << testing::PrintToString(sizes)
                                 << ", strides " << testing::PrintToString(strides);
}

class PackOnDevice : public testing::Test {
  protected:
    void SetUp() override {
        if (const auto reason = no_device(); !reason.empty()) GTEST_SKIP() << reason;
    }
};

TEST(PackArguments, AreCheckedBeforeTheDeviceIsTouched) {
    const std::int64_t one[] = {4}, negative[] = {-1}, huge[] = {std::int64_t{1} << 62, 4};
    const std::int64_t strides[] = {1, 1};
    unsigned char byte = 0;
    const auto refused = [&](void* to, const void* from, int element, int rank, const std::int64_t* sizes,
                             const std::int64_t* steps) {
        return lyo_kernels_pack(to, from, element, rank, sizes, steps, nullptr) == cudaErrorInvalidValue;
    };
    EXPECT_TRUE(refused(&byte, &byte, 3, 1, one, strides)) << "element size";
    EXPECT_TRUE(refused(&byte, &byte, 16, 1, one, strides)) << "element size";
    EXPECT_TRUE(refused(&byte, &byte, 1, LYO_KERNELS_MAX_RANK + 1, one, strides)) << "rank";
    EXPECT_TRUE(refused(&byte, &byte, 1, -1, one, strides)) << "rank";
    EXPECT_TRUE(refused(&byte, &byte, 1, 1, nullptr, strides)) << "no sizes";
    EXPECT_TRUE(refused(&byte, &byte, 1, 1, one, nullptr)) << "no strides";
    EXPECT_TRUE(refused(&byte, &byte, 1, 1, negative, strides)) << "negative size";
    EXPECT_TRUE(refused(&byte, &byte, 8, 2, huge, strides)) << "more bytes than there are addresses";
    EXPECT_TRUE(refused(nullptr, &byte, 1, 1, one, strides)) << "nowhere to";
    EXPECT_TRUE(refused(&byte, nullptr, 1, 1, one, strides)) << "nowhere from";
}

TEST(PackArguments, ATensorWithoutElementsIsNoWork) {
    const std::int64_t sizes[] = {3, 0, 5}, strides[] = {7, 1, 1};
    EXPECT_EQ(lyo_kernels_pack(nullptr, nullptr, 4, 3, sizes, strides, nullptr), 0);
}

TEST_F(PackOnDevice, OneElementAndRowMajorTensorsAreCopied) {
    for (int element : {1, 2, 4, 8}) {
        check(element, {}, {});
        check(element, {1, 1}, {5, -3});
        check(element, {3, 4, 5}, {20, 5, 1});
    }
}

TEST_F(PackOnDevice, SizesBelowAtAndAboveAWarpAndABlock) {
    for (int element : {1, 2, 4, 8})
        for (std::int64_t n : {1, 7, 31, 32, 33, 65, 128, 255, 256, 257}) {
            check(element, {n}, {3});
            check(element, {n, 3}, {1, n});
            check(element, {5, n}, {2 * n, 2});
        }
}

TEST_F(PackOnDevice, BroadcastReversedAndOverlappingStrides) {
    for (int element : {1, 2, 4, 8}) {
        check(element, {4, 33}, {0, 1});
        check(element, {33, 4}, {1, 0});
        check(element, {9, 9}, {0, 0});
        check(element, {65}, {-1});
        check(element, {6, 5, 7}, {-35, 7, -1});
        check(element, {8, 8}, {1, 1});
    }
}

TEST_F(PackOnDevice, RandomLayoutsOfEveryRank) {
    std::mt19937 random(20260101);
    for (int round = 0; round < 400; ++round) {
        const auto rank = static_cast<std::size_t>(round % (LYO_KERNELS_MAX_RANK + 1));
        Dims sizes(rank), strides(rank);
        for (std::size_t d = 0; d < rank; ++d) {
            sizes[d] = 1 + static_cast<std::int64_t>(random() % (rank <= 3 ? 40 : 5));
            strides[d] = static_cast<std::int64_t>(random() % 81) - 40;
        }
        check(1 << (random() % 4), sizes, strides);
    }
}

TEST_F(PackOnDevice, MoreElementsThanOneRoundOfTheGrid) { check(1, {2100, 1001}, {1, 2100}); }

TEST_F(PackOnDevice, OffsetsBeyond32Bits) {
    const std::int64_t far = (std::int64_t{1} << 32) + 5;
    const Memory from(static_cast<std::size_t>(far) + 2), to(4);
    if (from.status() != cudaSuccess) GTEST_SKIP() << "not enough device memory: " << message(from.status());
    const unsigned char ends[] = {1, 2, 3, 4};
    ASSERT_EQ(cudaMemcpy(from.data(), ends, 2, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(from.data() + far, ends + 2, 2, cudaMemcpyHostToDevice), cudaSuccess);
    const std::int64_t sizes[] = {2, 2}, strides[] = {1, far};
    ASSERT_EQ(lyo_kernels_pack(to.data(), from.data(), 1, 2, sizes, strides, nullptr), 0);
    unsigned char got[4] = {};
    ASSERT_EQ(cudaMemcpy(got, to.data(), 4, cudaMemcpyDeviceToHost), cudaSuccess);
    const unsigned char expected[] = {1, 3, 2, 4};
    EXPECT_EQ(std::memcmp(got, expected, 4), 0);
}

TEST_F(PackOnDevice, ElementCountsBeyond32Bits) {
    const std::int64_t row = 1431655766;
    const Memory from(3), to(3 * static_cast<std::size_t>(row));
    if (to.status() != cudaSuccess) GTEST_SKIP() << "not enough device memory: " << message(to.status());
    const unsigned char values[] = {10, 20, 30};
    ASSERT_EQ(cudaMemcpy(from.data(), values, 3, cudaMemcpyHostToDevice), cudaSuccess);
    const std::int64_t sizes[] = {3, row}, strides[] = {1, 0};
    ASSERT_GT(3 * row, std::int64_t{UINT32_MAX});
    ASSERT_EQ(lyo_kernels_pack(to.data(), from.data(), 1, 2, sizes, strides, nullptr), 0);
    for (std::int64_t r = 0; r < 3; ++r)
        for (std::int64_t at : {r * row, (r + 1) * row - 1}) {
            unsigned char got = 0;
            ASSERT_EQ(cudaMemcpy(&got, to.data() + at, 1, cudaMemcpyDeviceToHost), cudaSuccess);
            EXPECT_EQ(got, values[r]) << at;
        }
}

}  // namespace
