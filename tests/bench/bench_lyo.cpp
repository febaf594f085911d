// What loading, calling and saving cost on the CPU. The artifact is the file that LYO_BENCH_ARTIFACT names
// (seed_mlp.lyo is the one that figures are given for), else a small one made here.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

import lyo.base;
import lyo.artifact;
import lyo.kernel;
import lyo.hydration;
import lyo.fuzz;

namespace {

namespace fs = std::filesystem;
using lyo::Artifact;
using lyo::Bytes;
using lyo::fuzz::Buffer;

template <class T>
T value_or_exit(lyo::Result<T> result) {
    if (!result) std::fprintf(stderr, "bench_lyo: %s\n", result.error().to_string().c_str()), std::exit(1);
    return std::move(*result);
}

/// A file in the temporary folder, gone with the process.
class TemporaryFile {
  public:
    explicit TemporaryFile(const char* name) : path_(fs::temp_directory_path() / (std::string("lyo_bench_") + name)) {}
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        std::error_code ignored;
        fs::remove(path_, ignored);
    }
    std::string path() const { return path_.string(); }

  private:
    fs::path path_;
};

/// The artifact's file.
const std::string& artifact_path() {
    static const TemporaryFile made("small.lyo");
    static const std::string path = [] {
        if (const char* given = std::getenv("LYO_BENCH_ARTIFACT")) return std::string(given);
        const Buffer file = lyo::fuzz::seal(lyo::fuzz::small_parts());
        if (const auto ok = lyo::write_file(made.path(), file); !ok)
            std::fprintf(stderr, "bench_lyo: %s\n", ok.error().to_string().c_str()), std::exit(1);
        return made.path();
    }();
    return path;
}

lyo::Function live() {
    return value_or_exit(lyo::hydrate(value_or_exit(Artifact::read(artifact_path())), lyo::Device::cpu()));
}

void Open(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(Artifact::read(artifact_path())));
}
BENCHMARK(Open);

void OpenValidateHydrate(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(live());
}
BENCHMARK(OpenValidateHydrate);

void ValidateHydrateFromMemory(benchmark::State& state) {
    const Bytes bytes = value_or_exit(lyo::read_file(artifact_path()));
    for (auto _ : state)
        benchmark::DoNotOptimize(
            value_or_exit(lyo::hydrate(value_or_exit(Artifact::check(bytes)), lyo::Device::cpu())));
}
BENCHMARK(ValidateHydrateFromMemory);

void Call(benchmark::State& state) {
    const lyo::Function function = live();
    const auto inputs = value_or_exit(lyo::sample_inputs(function.spec(), 1, std::uint64_t{1} << 30));
    for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(function.call(inputs)));
}
BENCHMARK(Call);

void CallInto(benchmark::State& state) {
    const lyo::Function function = live();
    const auto inputs = value_or_exit(lyo::sample_inputs(function.spec(), 1, std::uint64_t{1} << 30));
    const auto outputs = value_or_exit(function.call(inputs));
    for (auto _ : state) {
        const auto ok = function.call_into(inputs, outputs);
        if (!ok) return state.SkipWithError(ok.error().to_string().c_str());
        benchmark::ClobberMemory();
    }
}
BENCHMARK(CallInto);

void Serialize(benchmark::State& state) {
    const lyo::Function function = live();
    for (auto _ : state) {
        const Bytes bytes = function.serialize();
        benchmark::DoNotOptimize(bytes.data());
    }
}
BENCHMARK(Serialize);

/// An artifact whose one constant is a GiB of zeros, as a sparse file: only its head is written.
void write_large(const std::string& path) {
    constexpr std::uint64_t size = std::uint64_t{1} << 30;
    lyo::fuzz::Parts parts;
    parts.manifest = {"bench", lyo::format::abi_version, {}, {}};
    parts.functions.constants = {{"weights", lyo::DType::f32, {size / 4}, 0}};
    auto sections = lyo::fuzz::sections_of(parts);
    parts.manifest.constant_leaves.assign(size / lyo::digest_chunk, lyo::sha256(Buffer(lyo::digest_chunk)));
    sections[0].content = lyo::fuzz::encode(parts.manifest);
    Buffer head = lyo::fuzz::assemble(sections);
    // The constants are the third and last section: their length and digest, the file's length, the root digest.
    const std::size_t entry = 56 + 2 * 56, table_end = 56 + 3 * 56;
    const std::uint64_t total = lyo::fuzz::get(head, entry + 8, 8) + size;
    lyo::fuzz::set(head, entry + 16, size, 8);
    const lyo::Digest digest = lyo::digest_root(parts.manifest.constant_leaves);
    std::memcpy(head.data() + entry + 24, digest.bytes.data(), 32);
    lyo::fuzz::set(head, 16, total, 8);
    std::memset(head.data() + 24, 0, 32);
    const lyo::Digest root = lyo::sha256(std::span<const std::byte>(head).first(table_end));
    std::memcpy(head.data() + 24, root.bytes.data(), 32);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(head.data()), static_cast<std::streamsize>(head.size()));
    fs::resize_file(path, total);
}

void OpenOneGiBLazily(benchmark::State& state) {
    if (fs::space(fs::temp_directory_path()).available < std::uint64_t{1100} << 20)
        return state.SkipWithError("the temporary folder has less than 1.1 GB left");
    const TemporaryFile file("large.lyo");
    write_large(file.path());
    for (auto _ : state) benchmark::DoNotOptimize(value_or_exit(Artifact::read(file.path(), {lyo::Verify::lazy})));
}
BENCHMARK(OpenOneGiBLazily);

std::vector<Bytes> corpus(const char* name) {
    std::vector<Bytes> out;
    for (const auto& entry : fs::directory_iterator(std::string(LYO_CORPUS) + "/" + name))
        out.push_back(value_or_exit(lyo::read_file(entry.path().string())));
    return out;
}

/// What a fuzz target does with its corpus, without engine and sanitizers: items are executions.
void FuzzLoad(benchmark::State& state) {
    const auto inputs = corpus("load");
    for (auto _ : state)
        for (const Bytes& input : inputs) benchmark::DoNotOptimize(lyo::fuzz::check_load(input));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(inputs.size()));
}
BENCHMARK(FuzzLoad);

void FuzzRoundtrip(benchmark::State& state) {
    const auto inputs = corpus("roundtrip");
    for (auto _ : state)
        for (const Bytes& input : inputs) benchmark::DoNotOptimize(lyo::fuzz::check_roundtrip(input));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(inputs.size()));
}
BENCHMARK(FuzzRoundtrip);

}  // namespace

BENCHMARK_MAIN();
