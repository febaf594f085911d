// Functions on a CUDA device against the reference interpreter: every family of kernel over shapes, strides and dtypes,
// then streams, threads, lifetimes. Needs NVRTC beside the device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

import lyo;

namespace {

using lyo::DType;
using lyo::Sym;
using lyo::Tensor;
using lyo::ValueId;

constexpr DType dtypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                            DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

/// The target for device 0; empty, with the reason in `why`, where there is none.
std::string target(std::string& why) {
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

/// Deterministic values in [-2, 2); integers in [-3, 3].
Tensor filled(const lyo::Dims& shape, DType dtype, std::uint64_t seed) {
    auto tensor = Tensor::empty(shape, dtype);
    EXPECT_TRUE(tensor.has_value());
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (std::int64_t i = 0; i < tensor->numel(); ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double value = static_cast<double>(state >> 11) * 0x1p-53 * 4 - 2;
        if (!lyo::is_float(dtype)) value = std::floor(value * 1.75);
        lyo::store_double(
            static_cast<std::byte*>(tensor->mutable_data()) + static_cast<std::size_t>(i) * lyo::size_of(dtype), dtype,
            value);
    }
    return *tensor;
}

lyo::Graph built(const std::function<void(lyo::Builder&)>& body) {
    lyo::Builder builder;
    body(builder);
    auto graph = builder.finish();
    EXPECT_TRUE(graph.has_value()) << graph.error().to_string();
    return *graph;
}

lyo::Function live(const lyo::Graph& graph, const std::string& target) {
    auto bytes = lyo::compile(graph, {{target}, false});
    EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string() << "\n" << graph.to_string();
    auto artifact = lyo::Artifact::check(*bytes);
    EXPECT_TRUE(artifact.has_value()) << artifact.error().to_string();
    auto function = lyo::hydrate(*artifact, lyo::Device::cuda(0));
    EXPECT_TRUE(function.has_value()) << function.error().to_string();
    return *function;
}

std::vector<Tensor> on_device(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> out;
    for (const Tensor& t : tensors) {
        auto copy = lyo::copy_to_device(t, lyo::Device::cuda(0));
        EXPECT_TRUE(copy.has_value()) << copy.error().to_string();
        out.push_back(*copy);
    }
    return out;
}

/// Rounding of a dtype, times what a sum of `terms` terms may lose.
double tolerance(DType dtype, double terms) {
    const double epsilon = dtype == DType::f64    ? 2.3e-16
                           : dtype == DType::f32  ? 1.2e-7
                           : dtype == DType::f16  ? 9.8e-4
                           : dtype == DType::bf16 ? 7.9e-3
                                                  : 0;
    const double accumulate = dtype == DType::f64 ? 2.3e-16 : 1.2e-7;
    return 4 * epsilon + accumulate * (16 + 2 * terms);
}

void expect_same(const std::vector<Tensor>& expected, const std::vector<Tensor>& got, double terms,
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

void check(const lyo::Graph& graph, const std::string& target, const std::vector<Tensor>& inputs, double terms = 1) {
    const auto expected = lyo::interpret(graph, inputs);
    ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
    const lyo::Function function = live(graph, target);
    const auto got = function.call(on_device(inputs));
    ASSERT_TRUE(got.has_value()) << got.error().to_string() << "\n" << graph.to_string();
    expect_same(*expected, *got, terms, graph.to_string());
}

TEST_F(OnDevice, PointwiseChainsOfEveryDTypeAndOddSize) {
    for (const DType dtype : dtypes)
        for (const std::int64_t n : {0, 1, 3, 7, 31, 33, 1000, 4099}) {
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, {n}), y = b.input("y", dtype, {n});
                b.output(b.call("add.Tensor", {b.call("mul.Tensor", {x, y}), x}));
                b.output(b.call("maximum", {x, y}));
                b.output(b.call("lt.Tensor", {x, y}));
                b.output(b.call("to.dtype", {x, DType::i64}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled({n}, dtype, 1), filled({n}, dtype, 2)}));
        }
}

TEST_F(OnDevice, MathematicsOfFloatsWithNaNAndInfinity) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        const auto graph = built([&](lyo::Builder& b) {
            const ValueId x = b.input("x", dtype, {64});
            for (const char* op : {"exp", "tanh", "sigmoid", "relu", "erf", "sqrt", "rsqrt", "abs", "neg", "floor",
                                   "round", "sin", "cos", "isnan", "isinf", "sign", "expm1", "log1p"})
                b.output(b.call(op, {x}));
            b.output(b.call("gelu", {x}));
            b.output(b.call("silu", {x}));
        });
        Tensor x = filled({64}, dtype, 3);
        const double specials[] = {0.0, -0.0, std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(), std::nan("")};
        for (std::size_t i = 0; i < std::size(specials); ++i)
            lyo::store_double(static_cast<std::byte*>(x.mutable_data()) + i * lyo::size_of(dtype), dtype, specials[i]);
        ASSERT_NO_FATAL_FAILURE(check(graph, target_, {x}, 8));
    }
}

TEST_F(OnDevice, IntegerDivisionAndShifts) {
    for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8}) {
        const auto graph = built([&](lyo::Builder& b) {
            const ValueId x = b.input("x", dtype, {257}), y = b.input("y", dtype, {257});
            b.output(b.call("floor_divide", {x, y}));
            b.output(b.call("remainder.Tensor", {x, y}));
            b.output(b.call("fmod.Tensor", {x, y}));
            b.output(b.call("bitwise_xor.Tensor", {x, y}));
            b.output(b.call("div.Tensor", {x, b.call("add.Tensor", {y, Sym(5)})}));
        });
        ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled({257}, dtype, 4), filled({257}, dtype, 5)}));
    }
}

TEST_F(OnDevice, BroadcastsViewsAndTranspositions) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {5, 1, 12}), y = b.input("y", DType::f32, {4, 12}),
                      z = b.input("z", DType::f32, {12});
        const ValueId s = b.call("add.Tensor", {b.call("mul.Tensor", {x, y}), z});
        b.output(s);
        b.output(b.call("exp", {b.call("permute", {s, std::vector<Sym>{2, 0, 1}})}));
        b.output(b.call("neg", {b.call("slice.Tensor", {s, Sym(2), Sym(1), Sym(11), Sym(3)})}));
        b.output(b.call("flip", {s, std::vector<Sym>{0, 2}}));
        b.output(b.call("cat", {std::vector<std::optional<ValueId>>{s, b.call("neg", {s})}, Sym(1)}));
        b.output(b.call("expand", {z, std::vector<Sym>{3, 12}}));
    });
    ASSERT_NO_FATAL_FAILURE(
        check(graph, target_,
              {filled({5, 1, 12}, DType::f32, 1), filled({4, 12}, DType::f32, 2), filled({12}, DType::f32, 3)}));
}

TEST_F(OnDevice, RowReductionsOfEveryLength) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64})
        for (const std::int64_t n : {1, 2, 5, 31, 32, 33, 64, 100, 127, 1024, 1025, 5000, 33000}) {
            const std::int64_t rows = n > 4000 ? 3 : 37;
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, {rows, n});
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{1}}));
                b.output(b.call("amax", {x, std::vector<Sym>{1}}));
                b.output(b.call("argmax", {x, Sym(1)}));
                b.output(b.call("argmin", {x, Sym(-1), true}));
                if (!lyo::is_float(dtype)) return;
                b.output(b.call("softmax.int", {x, Sym(-1)}));
                b.output(b.call("layer_norm", {x, std::vector<Sym>{n}}));
                b.output(b.call("sum", {x}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled({rows, n}, dtype, static_cast<std::uint64_t>(n))},
                                          static_cast<double>(n) * 4));
        }
}

TEST_F(OnDevice, ColumnReductionsAndSeveralAxes) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::i32})
        for (const lyo::Dims& shape : {lyo::Dims{1, 1, 1}, lyo::Dims{3, 7, 5}, lyo::Dims{17, 64, 33},
                                       lyo::Dims{129, 3, 257}, lyo::Dims{4, 0, 5}}) {
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, lyo::to_shape(shape));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0}}));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{1}, true}));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0, 2}}));
                b.output(b.call("sum.dim_IntList", {x, std::vector<Sym>{0, 1, 2}}));
                if (lyo::is_float(dtype)) b.output(b.call("softmax.int", {x, Sym(0)}));
                if (lyo::is_float(dtype)) b.output(b.call("softmax.int", {x, Sym(1)}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled(shape, dtype, 7)}, 2000));
        }
}

TEST_F(OnDevice, MatrixProductsOfEverySizeAndLayout) {
    struct Size {
        std::int64_t m, n, k;
    };
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32})
        for (const Size s :
             {Size{1, 1, 1}, Size{2, 3, 4}, Size{1, 256, 300}, Size{17, 33, 65}, Size{64, 64, 64}, Size{100, 70, 130},
              Size{3, 500, 1000}, Size{65, 129, 257}, Size{5, 5, 0}, Size{128, 256, 512}, Size{200, 300, 400}}) {
            const auto graph = built([&](lyo::Builder& b) {
                const ValueId x = b.input("x", dtype, {s.m, s.k}), y = b.input("y", dtype, {s.k, s.n}),
                              w = b.input("w", dtype, {s.n, s.k});
                const ValueId v = b.input("v", dtype, {s.n});
                b.output(b.call("matmul", {x, y}));
                b.output(b.call("relu", {b.call("linear", {x, w, v})}));
                b.output(b.call("matmul", {b.call("t", {y}), b.call("t", {x})}));
            });
            ASSERT_NO_FATAL_FAILURE(check(graph, target_,
                                          {filled({s.m, s.k}, dtype, 1), filled({s.k, s.n}, dtype, 2),
                                           filled({s.n, s.k}, dtype, 3), filled({s.n}, dtype, 4)},
                                          static_cast<double>(s.k) * 4));
        }
}

TEST_F(OnDevice, BatchedProductsWithBroadcastBatches) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {3, 1, 40, 70}), y = b.input("y", DType::f32, {2, 70, 50});
        b.output(b.call("matmul", {x, y}));
        b.output(
            b.call("softmax.int",
                   {b.call("matmul", {b.call("squeeze.dim", {x, Sym(1)}),
                                      b.call("transpose.int", {b.call("squeeze.dim", {x, Sym(1)}), Sym(1), Sym(2)})}),
                    Sym(-1)}));
    });
    ASSERT_NO_FATAL_FAILURE(
        check(graph, target_, {filled({3, 1, 40, 70}, DType::f32, 1), filled({2, 70, 50}, DType::f32, 2)}, 300));
}

TEST_F(OnDevice, ASymbolicBatchServesEverySize) {
    const auto graph = built([](lyo::Builder& b) {
        const Sym n = b.symbol("n", 0, 1 << 20);
        const ValueId x = b.input("x", DType::f32, {n, 48});
        const ValueId h = b.call("gelu", {b.call("linear", {x, b.constant("w", filled({96, 48}, DType::f32, 1)),
                                                            b.constant("c", filled({96}, DType::f32, 2))})});
        b.output(b.call("layer_norm", {h, std::vector<Sym>{96}}));
        b.output(b.call("sum.dim_IntList", {h, std::vector<Sym>{0}}));
        b.output(b.call("softmax.int", {h, Sym(0)}));
    });
    const lyo::Function function = live(graph, target_);
    for (const std::int64_t n : {1, 2, 33, 0, 700, 5, 64}) {
        const std::vector<Tensor> inputs{filled({n, 48}, DType::f32, static_cast<std::uint64_t>(n) + 9)};
        const auto expected = lyo::interpret(graph, inputs);
        ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
        const auto got = function.call(on_device(inputs));
        ASSERT_TRUE(got.has_value()) << got.error().to_string();
        ASSERT_NO_FATAL_FAILURE(expect_same(*expected, *got, 4000, "n = " + std::to_string(n)));
    }
}

TEST_F(OnDevice, InputsOfAnyStridesAndAlignmentAreRight) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {6, 40});
        b.output(b.call("softmax.int", {b.call("mul.Tensor", {x, x}), Sym(-1)}));
    });
    const lyo::Function function = live(graph, target_);
    const Tensor memory = filled({4096}, DType::f32, 5);
    const Tensor there = on_device({memory})[0];
    const lyo::Dims layouts[] = {{40, 1}, {1, 6}, {100, 2}, {0, 1}, {-40, 1}, {40, -1}};
    for (const lyo::Dims& strides : layouts)
        for (const std::int64_t offset : {512, 513, 515}) {
            const std::size_t bytes = static_cast<std::size_t>(offset) * 4;
            const Tensor host =
                Tensor::borrow(static_cast<const std::byte*>(memory.data()) + bytes, {6, 40}, strides, DType::f32);
            const Tensor device = Tensor::borrow(static_cast<const std::byte*>(there.data()) + bytes, {6, 40}, strides,
                                                 DType::f32, lyo::Device::cuda(0));
            const auto expected = lyo::interpret(graph, std::vector<Tensor>{host});
            ASSERT_TRUE(expected.has_value());
            const auto got = function.call({device});
            ASSERT_TRUE(got.has_value()) << got.error().to_string();
            ASSERT_NO_FATAL_FAILURE(expect_same(*expected, *got, 100, lyo::to_string(strides)));
        }
}

TEST_F(OnDevice, OutputsOfTheCallerAreFilledWhereverTheyBegin) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {1000});
        b.output(b.call("exp", {x}));
    });
    const lyo::Function function = live(graph, target_);
    const std::vector<Tensor> inputs{filled({1000}, DType::f32, 6)};
    const auto expected = lyo::interpret(graph, inputs);
    ASSERT_TRUE(expected.has_value());
    const auto there = on_device(inputs);
    const auto memory = lyo::empty_on_device({2000}, DType::f32, lyo::Device::cuda(0));
    ASSERT_TRUE(memory.has_value());
    for (const std::size_t offset : {0u, 1u, 3u, 4u}) {
        const Tensor out = Tensor::borrow(static_cast<const float*>(memory->data()) + offset, {1000}, DType::f32,
                                          lyo::Device::cuda(0));
        const auto ok = function.call_into(there, std::vector<Tensor>{out});
        ASSERT_TRUE(ok.has_value()) << ok.error().to_string();
        ASSERT_NO_FATAL_FAILURE(expect_same(*expected, {out}, 4, "offset"));
    }
}

TEST_F(OnDevice, WrongInputsAreNamedAndNothingRuns) {
    const auto graph = built([](lyo::Builder& b) { b.output(b.call("exp", {b.input("x", DType::f32, {4})})); });
    const lyo::Function function = live(graph, target_);
    const auto on_cpu = function.call({filled({4}, DType::f32, 1)});
    ASSERT_FALSE(on_cpu.has_value());
    EXPECT_EQ(on_cpu.error().code, lyo::ErrorCode::wrong_device);
    const auto shape = function.call(on_device({filled({5}, DType::f32, 1)}));
    ASSERT_FALSE(shape.has_value());
    EXPECT_EQ(shape.error().code, lyo::ErrorCode::guard_failed);
}

TEST_F(OnDevice, TheBytesComeBackAfterCallsOnTheDevice) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {4, 8});
        b.output(b.call("linear", {x, b.constant("w", filled({3, 8}, DType::f32, 1))}));
    });
    const lyo::Function function = live(graph, target_);
    const std::vector<Tensor> inputs{filled({4, 8}, DType::f32, 2)};
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(function.call(on_device(inputs)).has_value());
    EXPECT_EQ(function.serialize().data(), function.artifact().bytes().data());
    const auto again = function.artifact().encode_again();
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(*again == function.serialize());
}

TEST_F(OnDevice, ThreadsThatShareAFunctionDoNotDisturbOneAnother) {
    // Several kernels with workspace between them.
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {64, 300});
        ValueId h = x;
        for (int i = 0; i < 3; ++i)
            h = b.call(
                "tanh",
                {b.call("linear", {h, b.constant("w" + std::to_string(i),
                                                 filled({300, 300}, DType::f32, static_cast<std::uint64_t>(i)))})});
        b.output(b.call("softmax.int", {h, Sym(0)}));
    });
    const lyo::Function function = live(graph, target_);
    std::vector<std::thread> threads;
    std::vector<std::string> problems(8);
    for (std::size_t t = 0; t < problems.size(); ++t)
        threads.emplace_back([&, t] {
            const std::vector<Tensor> inputs{filled({64, 300}, DType::f32, 100 + t)};
            const auto expected = lyo::interpret(graph, inputs);
            const auto there = on_device(inputs);
            for (int i = 0; i < 20 && problems[t].empty(); ++i) {
                const auto got = function.call(there);
                if (!got) {
                    problems[t] = got.error().to_string();
                    break;
                }
                const auto host = lyo::copy_to_cpu(got->front());
                if (!host) problems[t] = host.error().to_string();
                for (std::int64_t k = 0; host && k < host->numel(); ++k)
                    if (std::fabs(host->at(k) - expected->front().at(k)) > 1e-4)
                        problems[t] = "element " + std::to_string(k) + " differs";
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST_F(OnDevice, StreamsOfTheCallerMayTakeTurns) {
    const auto graph = built([](lyo::Builder& b) {
        ValueId h = b.input("x", DType::f32, {128, 256});
        for (int i = 0; i < 3; ++i)
            h = b.call(
                "softmax.int",
                {b.call("matmul", {h, b.constant("w", filled({256, 256}, DType::f32, static_cast<std::uint64_t>(i)))}),
                 Sym(0)});
        b.output(h);
    });
    const lyo::Function function = live(graph, target_);
    std::vector<std::vector<Tensor>> inputs, expected;
    std::vector<cudaStream_t> streams(4);
    for (std::size_t i = 0; i < streams.size(); ++i) {
        ASSERT_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
        const std::vector<Tensor> host{filled({128, 256}, DType::f32, 40 + i)};
        const auto answers = lyo::interpret(graph, host);
        ASSERT_TRUE(answers.has_value());
        expected.push_back(*answers);
        inputs.push_back(on_device(host));
    }
    std::vector<std::vector<Tensor>> results(40);
    for (std::size_t call = 0; call < results.size(); ++call) {
        const std::size_t i = call % 4;
        const auto got = function.call(inputs[i], lyo::Stream{streams[i]});
        ASSERT_TRUE(got.has_value()) << got.error().to_string();
        results[call] = *got;
    }
    for (cudaStream_t stream : streams) ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (std::size_t call = 0; call < results.size(); ++call)
        ASSERT_NO_FATAL_FAILURE(expect_same(expected[call % 4], results[call], 2000, "call " + std::to_string(call)));
    results.clear();  // the outputs go in the order of their streams, which must still be there
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

TEST_F(OnDevice, ConstantsOfEverySizeArriveWhole) {
    for (const std::int64_t n : {1, 1000, 300'000, 1'048'577, 9'000'001}) {
        const auto graph = built([&](lyo::Builder& b) {
            const ValueId x = b.input("x", DType::f32, {1});
            b.output(b.call("add.Tensor", {b.constant("c", filled({n}, DType::f32, 3)), x}));
            b.output(b.call("add.Tensor", {b.constant("d", filled({7}, DType::f32, 4)), x}));
        });
        ASSERT_NO_FATAL_FAILURE(check(graph, target_, {filled({1}, DType::f32, 5)}));
    }
}

TEST_F(OnDevice, LoadingAndUnloadingKeepsNoDeviceMemory) {
    const auto graph = built([](lyo::Builder& b) {
        const ValueId x = b.input("x", DType::f32, {64, 1024});
        b.output(b.call("softmax.int",
                        {b.call("matmul", {x, b.constant("w", filled({1024, 1024}, DType::f32, 1))}), Sym(0)}));
    });
    const auto bytes = lyo::compile(graph, {{target_}, false});
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value());
    const std::vector<Tensor> inputs = on_device({filled({64, 1024}, DType::f32, 2)});
    const auto once = [&] {
        const auto function = lyo::hydrate(*artifact, lyo::Device::cuda(0));
        ASSERT_TRUE(function.has_value()) << function.error().to_string();
        const auto other = lyo::hydrate(*artifact, lyo::Device::cuda(0));  // two live ones at a time
        ASSERT_TRUE(other.has_value());
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(function->call(inputs).has_value() && other->call(inputs).has_value());
        ASSERT_TRUE(lyo::synchronize(lyo::Device::cuda(0)).has_value());
    };
    const auto free_bytes = [] {
        std::size_t available = 0, total = 0;
        EXPECT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
        return available;
    };
    for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(once());
    const std::size_t before = free_bytes();
    for (int i = 0; i < 40; ++i) ASSERT_NO_FATAL_FAILURE(once());
    const std::size_t after = free_bytes();
    // 40 times 8 MiB of constants would show.
    EXPECT_LT(before - std::min(before, after), std::size_t{64} << 20);
}

TEST_F(OnDevice, AnArtifactForAnotherArchitectureIsRefusedAndSaysWhatThereIs) {
    const auto graph = built([](lyo::Builder& b) { b.output(b.call("exp", {b.input("x", DType::f32, {4})})); });
    const std::string other = target_ == "cuda:sm_120" ? "cuda:sm_90" : "cuda:sm_120";
    const auto bytes = lyo::compile(graph, {{other}, false});
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value());
    const auto function = lyo::hydrate(*artifact, lyo::Device::cuda(0));
    ASSERT_FALSE(function.has_value());
    EXPECT_EQ(function.error().code, lyo::ErrorCode::no_image);
    EXPECT_NE(function.error().what.find(other), std::string::npos);
}

TEST_F(OnDevice, PtxRunsWhereItIsAllowedTo) {
    const auto graph = built([](lyo::Builder& b) { b.output(b.call("exp", {b.input("x", DType::f32, {4})})); });
    const auto bytes = lyo::compile(graph, {{"cuda:ptx"}, false});
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto artifact = lyo::Artifact::check(*bytes);
    ASSERT_TRUE(artifact.has_value());
    EXPECT_FALSE(lyo::hydrate(*artifact, lyo::Device::cuda(0), {.allow_jit = false}).has_value());
    const auto function = lyo::hydrate(*artifact, lyo::Device::cuda(0));
    ASSERT_TRUE(function.has_value()) << function.error().to_string();
    EXPECT_TRUE(function->call(on_device({filled({4}, DType::f32, 1)})).has_value());
}

TEST(ChooseArguments, AnExactCubinComesBeforeAnOlderOneBeforePtx) {
    const std::vector<std::string> targets{"cpu", "cuda:ptx", "cuda:sm_80", "cuda:sm_86", "cuda:sm_90a"};
    const auto choice = [&](int major, int minor, bool jit = true) {
        return lyo::choose_cuda_target(targets, major, minor, jit).value_or("none");
    };
    EXPECT_EQ(choice(8, 0), "cuda:sm_80");
    EXPECT_EQ(choice(8, 6), "cuda:sm_86");
    EXPECT_EQ(choice(8, 9), "cuda:sm_86");
    EXPECT_EQ(choice(9, 0), "cuda:sm_90a");
    EXPECT_EQ(choice(12, 0), "cuda:ptx");
    EXPECT_EQ(choice(12, 0, false), "none");
    EXPECT_EQ(choice(7, 5, false), "none");
}

}  // namespace
