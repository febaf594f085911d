// How functions on a CUDA device are called and live: memory of any kind, streams, threads, loading and unloading,
// images.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <thread>

#include "on_device.h"

namespace {

using namespace lyo_test;
using lyo::DType;
using lyo::Sym;
using lyo::Tensor;
using lyo::ValueId;

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
