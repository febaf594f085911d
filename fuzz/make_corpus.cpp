// Writes the checked-in corpora: make_corpus DIR. The same bytes on every machine, so that they can be reviewed as this
// program. With --check it compares instead: whatever differs, lacks or is left over, except findings (issue-*), fails.
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

import lyo.base;
import lyo.artifact;
import lyo.fuzz;

namespace lyo::fuzz {
/// Seeds for the importer, by their paths below the corpora's folder.
std::map<std::string, Buffer> importer_seeds();
}  // namespace lyo::fuzz

namespace {

namespace fs = std::filesystem;
using lyo::fuzz::Buffer;
using Corpus = std::map<std::string, Buffer>;

constexpr std::size_t max_file = std::size_t{32} << 10;

std::string numbered(std::string_view name, std::size_t n) {
    char text[16];
    std::snprintf(text, sizeof text, "-%03zu", n);
    return std::string(name) + text;
}

void add_valid(Corpus& corpus) {
    lyo::fuzz::Parts nothing;
    nothing.manifest = {"lyo.fuzz", lyo::format::abi_version, {}, {}};
    corpus["load/seed-nothing"] = corpus["roundtrip/seed-nothing"] = lyo::fuzz::seal(nothing);
    corpus["load/seed-small"] = corpus["roundtrip/seed-small"] = lyo::fuzz::seal(lyo::fuzz::small_parts());
    corpus["load/seed-device"] = corpus["roundtrip/seed-device"] = lyo::fuzz::seal(lyo::fuzz::device_parts());
    for (std::size_t n = 0, kept = 0; kept < 80; ++n) {
        lyo::fuzz::Random random(n);
        Buffer file = lyo::fuzz::seal(lyo::fuzz::generate(random));
        if (file.size() > max_file) continue;
        if (kept % 4 == 0) corpus[numbered("load/seed-generated", kept / 4)] = file;
        corpus[numbered("roundtrip/seed-generated", kept)] = std::move(file);
        ++kept;
    }
}

void add_hostile(Corpus& corpus) {
    for (auto& hostile : lyo::fuzz::hostile()) corpus["load/hostile-" + hostile.name] = std::move(hostile.file);
    // Files that load, but whose plan does not fit its sizes, or that ask for more than a call may take.
    const auto runs_badly = [&](const char* name, auto change) {
        lyo::fuzz::Parts parts = lyo::fuzz::small_parts();
        change(parts, *std::get_if<lyo::Loop>(&parts.images[0].programs[0].steps[1]));
        corpus[std::string("roundtrip/hostile-") + name] = lyo::fuzz::seal(parts);
    };
    runs_badly("view-beyond-end", [](auto&, auto& loop) { loop.operands[1].strides[1] = 2; });
    runs_badly("view-before-start", [](auto& parts, auto& loop) {
        parts.images[0].programs[0].exprs[0].value = -1;
        loop.operands[1].offset = 0;
    });
    runs_badly("view-wraps", [](auto& parts, auto& loop) {
        parts.images[0].programs[0].exprs[1].value = std::numeric_limits<std::int64_t>::max();
        loop.operands[1].strides[1] = 1;
    });
    runs_badly("slot-huge",
               [](auto& parts, auto&) { parts.images[0].programs[0].exprs[4].value = std::int64_t{1} << 50; });
    runs_badly("slot-negative", [](auto& parts, auto&) { parts.images[0].programs[0].exprs[4].value = -8; });
    runs_badly("slot-small", [](auto& parts, auto&) { parts.images[0].programs[0].exprs[4].value = 4; });
    runs_badly("output-huge", [](auto& parts, auto&) {
        parts.functions.functions[0].exprs.push_back({lyo::ExprOp::constant, std::int64_t{1} << 40, 0, 0});
        parts.functions.functions[0].outputs.push_back({"huge", lyo::DType::f64, {3}});
    });
    runs_badly("output-negative", [](auto& parts, auto&) {
        parts.functions.functions[0].exprs.push_back({lyo::ExprOp::constant, -1, 0, 0});
        parts.functions.functions[0].outputs.push_back({"negative", lyo::DType::f64, {3}});
    });
    runs_badly("extent-huge", [](auto& parts, auto& loop) {
        parts.images[0].programs[0].exprs[5] = {lyo::ExprOp::constant, std::int64_t{1} << 40, 0, 0};
        loop.extents[1] = 5;
    });
    runs_badly("division-by-zero",
               [](auto& parts, auto&) { parts.images[0].programs[0].exprs[5] = {lyo::ExprOp::floor_div, 0, 3, 0}; });
    runs_badly("symbol-undetermined", [](auto& parts, auto&) { parts.functions.functions[0].inputs[0].shape[0] = 1; });
    runs_badly("guards-contradict", [](auto& parts, auto&) {
        parts.functions.functions[0].guards = {{lyo::GuardKind::at_most, 0, 1}, {lyo::GuardKind::at_most, 2, 0}};
    });
    // Sizes that double from entry to entry: walking them as a tree would take for ever.
    runs_badly("exprs-doubling", [](auto& parts, auto&) {
        auto& f = parts.functions.functions[0];
        for (std::uint32_t i = 3; i < 70; ++i) f.exprs.push_back({lyo::ExprOp::max, 0, i - 1, i - 1});
        f.inputs.push_back({"w", lyo::DType::f32, {69}});
    });
    runs_badly("exprs-doubling-sums", [](auto& parts, auto&) {
        auto& f = parts.functions.functions[0];
        f.exprs.push_back({lyo::ExprOp::constant, 0, 0, 0});
        for (std::uint32_t i = 4; i < 70; ++i) f.exprs.push_back({lyo::ExprOp::add, 0, i - 1, i - 1});
        f.inputs.push_back({"w", lyo::DType::f32, {69}});
    });
}

/// What mutation makes of the seeds, as far as it is small.
void add_mutated(Corpus& corpus) {
    const Corpus seeds = corpus;
    lyo::fuzz::Random random(1);
    for (const char* folder : {"load", "roundtrip"}) {
        std::size_t kept = 0;
        for (const auto& [path, file] : seeds) {
            if (!path.starts_with(std::string(folder) + "/seed-") || kept == 40) continue;
            Buffer mutated = lyo::fuzz::mutate(file, random, max_file);
            if (!mutated.empty()) corpus[numbered(std::string(folder) + "/mutated", kept++)] = std::move(mutated);
        }
    }
}

Buffer read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto bytes = std::as_bytes(std::span(content));
    return Buffer(bytes.begin(), bytes.end());
}

int check(const Corpus& corpus, const fs::path& root) {
    int wrong = 0;
    const auto report = [&](const std::string& path, const char* what) {
        std::fprintf(stderr, "%s: %s\n", path.c_str(), what);
        ++wrong;
    };
    for (const auto& [path, content] : corpus) {
        if (!fs::exists(root / path))
            report(path, "is not there");
        else if (read(root / path) != content)
            report(path, "differs from what this program makes");
    }
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        const std::string path = entry.path().lexically_relative(root).generic_string();
        if (entry.is_regular_file() && !corpus.contains(path) &&
            !entry.path().filename().string().starts_with("issue-"))
            report(path, "is not made by this program");
    }
    return wrong == 0 ? 0 : 1;
}

int write(const Corpus& corpus, const fs::path& root) {
    for (const auto& [path, content] : corpus) {
        fs::create_directories((root / path).parent_path());
        std::ofstream file(root / path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
        if (!file.flush()) return std::fprintf(stderr, "cannot write %s\n", path.c_str()), 3;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    const bool checks = argc == 3 && std::string_view(argv[1]) == "--check";
    if (argc != 2 && !checks) return std::fprintf(stderr, "usage: make_corpus [--check] DIR\n"), 2;
    Corpus corpus;
    add_valid(corpus);
    add_hostile(corpus);
    add_mutated(corpus);
    corpus.merge(lyo::fuzz::importer_seeds());
    for (const auto& [path, content] : corpus)
        if (content.size() > max_file) return std::fprintf(stderr, "%s has more than 32 KiB\n", path.c_str()), 1;
    return checks ? check(corpus, argv[2]) : write(corpus, argv[1]);
} catch (const fs::filesystem_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
}
