// npy and safetensors: what is written is read back, what others write is read, what is broken is refused by name.
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

import lyo.base;
import lyo.importer;

namespace {

using lyo::DType;
using lyo::Tensor;

constexpr DType dtypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                            DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

lyo::Bytes bytes_of(const std::string& text) {
    auto bytes = lyo::Bytes::copy(std::as_bytes(std::span(text)));
    EXPECT_TRUE(bytes.has_value());
    return *bytes;
}

Tensor counting(const lyo::Dims& shape, DType dtype) {
    auto tensor = Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    for (std::int64_t i = 0; i < tensor->numel(); ++i)
        lyo::store_double(
            static_cast<std::byte*>(tensor->mutable_data()) + static_cast<std::size_t>(i) * lyo::size_of(dtype), dtype,
            static_cast<double>(i % 100));
    return *tensor;
}

void expect_same(const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.dtype(), b.dtype());
    ASSERT_EQ(a.shape(), b.shape());
    for (std::int64_t i = 0; i < a.numel(); ++i) ASSERT_EQ(a.at(i), b.at(i)) << i;
}

std::string npy(const std::string& header, const std::string& data) {
    std::string out = "\x93NUMPY";
    out += '\x01';
    out += '\0';
    out += static_cast<char>(header.size() & 0xff);
    out += static_cast<char>(header.size() >> 8);
    return out + header + data;
}

std::string safetensors(const std::string& header, const std::string& data) {
    std::string out;
    for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i));
    return out + header + data;
}

template <class T>
void expect_error(const lyo::Result<T>& result, const std::string& part) {
    ASSERT_FALSE(result.has_value()) << "should say: " << part;
    EXPECT_NE(result.error().to_string().find(part), std::string::npos) << result.error().to_string();
}

TEST(Npy, EveryDTypeAndShapeComesBack) {
    for (const DType dtype : dtypes) {
        if (dtype == DType::bf16) continue;
        for (const lyo::Dims& shape :
             {lyo::Dims{}, lyo::Dims{1}, lyo::Dims{3}, lyo::Dims{2, 3}, lyo::Dims{2, 0, 5}, lyo::Dims{1, 2, 3, 4}}) {
            const Tensor tensor = counting(shape, dtype);
            const auto file = lyo::write_npy(tensor);
            ASSERT_TRUE(file.has_value()) << file.error().to_string();
            EXPECT_EQ(file->size() % 64, static_cast<std::size_t>(tensor.numel()) * lyo::size_of(dtype) % 64);
            const auto back = lyo::read_npy(*file);
            ASSERT_TRUE(back.has_value()) << back.error().to_string();
            expect_same(*back, tensor);
        }
    }
    expect_error(lyo::write_npy(counting({2}, DType::bf16)), "bf16");
}

TEST(Npy, StridedTensorsAreWrittenInRowMajorOrder) {
    const Tensor memory = counting({24}, DType::f32);
    const Tensor view = Tensor::borrow(static_cast<const float*>(memory.data()) + 20, {3, 2}, {-6, 2}, DType::f32);
    const auto file = lyo::write_npy(view);
    ASSERT_TRUE(file.has_value());
    const auto back = lyo::read_npy(*file);
    ASSERT_TRUE(back.has_value());
    const double expected[] = {20, 22, 14, 16, 8, 10};
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(back->at(i), expected[i]);
}

TEST(Npy, FortranOrderBecomesStrides) {
    const float data[] = {1, 4, 2, 5, 3, 6};
    const std::string raw(reinterpret_cast<const char*>(data), sizeof data);
    const auto tensor =
        lyo::read_npy(bytes_of(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", raw)));
    ASSERT_TRUE(tensor.has_value()) << tensor.error().to_string();
    EXPECT_EQ(tensor->strides(), (lyo::Dims{1, 2}));
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor->at(i), static_cast<double>(i + 1));
}

TEST(Npy, BrokenFilesAreRefusedByName) {
    const std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", std::string(8, 'x'));
    ASSERT_TRUE(lyo::read_npy(bytes_of(good)).has_value());
    for (std::size_t size = 0; size < good.size(); ++size)
        EXPECT_FALSE(lyo::read_npy(bytes_of(good.substr(0, size))).has_value()) << size;
    expect_error(lyo::read_npy(bytes_of(good + "y")), "bytes of data");
    expect_error(lyo::read_npy(bytes_of(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (), }\n", "1234"))),
                 ">f4");
    expect_error(lyo::read_npy(bytes_of(npy("{'descr': '<f4', 'shape': (), }\n", "1234"))), "missing");
    expect_error(lyo::read_npy(bytes_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", ""))),
                 "a size");
    expect_error(lyo::read_npy(bytes_of(npy(
                     "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", "12345678"))),
                 "64 bits");
    expect_error(lyo::read_npy(bytes_of(
                     npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", "1234"))),
                 "twice");
    expect_error(lyo::read_npy(bytes_of("hello, world")), "magic");
}

TEST(Safetensors, EveryDTypeComesBackWithItsName) {
    std::vector<lyo::NamedTensor> tensors;
    for (const DType dtype : dtypes)
        tensors.push_back({"t \"" + std::string(lyo::to_string(dtype)) + "\"\n\xc3\xa9", counting({2, 3}, dtype)});
    tensors.push_back({"scalar", counting({}, DType::f32)});
    tensors.push_back({"empty", counting({0, 7}, DType::f16)});
    const auto file = lyo::write_safetensors(tensors);
    ASSERT_TRUE(file.has_value()) << file.error().to_string();
    const auto back = lyo::read_safetensors(*file);
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    ASSERT_EQ(back->size(), tensors.size());
    for (const auto& t : tensors) {
        const auto* found = static_cast<const lyo::NamedTensor*>(nullptr);
        for (const auto& b : *back)
            if (b.name == t.name) found = &b;
        ASSERT_NE(found, nullptr) << t.name;
        expect_same(found->tensor, t.tensor);
    }
    const auto again = lyo::write_safetensors(*back);
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(*again == *file);
}

TEST(Safetensors, AlignedTensorsShareTheFile) {
    const auto file = lyo::write_safetensors(std::vector<lyo::NamedTensor>{{"x", counting({4}, DType::f32)}});
    ASSERT_TRUE(file.has_value());
    const auto back = lyo::read_safetensors(*file);
    ASSERT_TRUE(back.has_value());
    const auto* data = static_cast<const std::byte*>(back->front().tensor.data());
    EXPECT_GE(data, file->data());
    EXPECT_LT(data, file->data() + file->size());
}

TEST(Safetensors, BrokenFilesAreRefusedByName) {
    const std::string entry = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    const std::string good = safetensors("{" + entry + "}", "12345678");
    ASSERT_TRUE(lyo::read_safetensors(bytes_of(good)).has_value());
    for (std::size_t size = 0; size < good.size(); ++size)
        EXPECT_FALSE(lyo::read_safetensors(bytes_of(good.substr(0, size))).has_value()) << size;
    expect_error(lyo::read_safetensors(bytes_of(good + "x")), "bytes of data");
    expect_error(lyo::read_safetensors(bytes_of(safetensors("{" + entry + "," + entry + "}", "12345678"))), "a");
    expect_error(lyo::read_safetensors(
                     bytes_of(safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})", "123456789"))),
                 "begin");
    expect_error(lyo::read_safetensors(
                     bytes_of(safetensors(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678"))),
                 "data_offsets");
    expect_error(lyo::read_safetensors(
                     bytes_of(safetensors(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}})", "12345678"))),
                 "F4");
    expect_error(
        lyo::read_safetensors(bytes_of(safetensors(
            R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0]}})", ""))),
        "64 bits");
    expect_error(lyo::read_safetensors(bytes_of(safetensors("[]", ""))), "an object");
    expect_error(lyo::read_safetensors(bytes_of("\xff\xff\xff\xff\xff\xff\xff\x7f")), "length");
    const std::vector<lyo::NamedTensor> twice{{"x", counting({1}, DType::f32)}, {"x", counting({1}, DType::f32)}};
    expect_error(lyo::write_safetensors(twice), "taken");
    expect_error(lyo::write_safetensors(std::vector<lyo::NamedTensor>{{"\xff", counting({1}, DType::f32)}}), "UTF-8");
}

}  // namespace
