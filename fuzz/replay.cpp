// The main of a fuzz target where no fuzzing engine is linked: runs every file that the arguments name, folders whole,
// and says how many there were. None at all is a failure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void run(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file) throw fs::filesystem_error("cannot read", path, std::make_error_code(std::errc::io_error));
    // Exactly as large as the input, so that a sanitizer sees the first byte read behind it.
    const auto exact = std::make_unique<std::uint8_t[]>(content.size());
    if (!content.empty()) std::memcpy(exact.get(), content.data(), content.size());
    std::fprintf(stderr, "%s\n", path.c_str());
    LLVMFuzzerTestOneInput(exact.get(), content.size());
}

}  // namespace

int main(int argc, char** argv) try {
    std::vector<fs::path> paths;
    for (int i = 1; i < argc; ++i) {
        if (!fs::is_directory(argv[i])) {
            paths.emplace_back(argv[i]);
            continue;
        }
        for (const auto& entry : fs::recursive_directory_iterator(argv[i]))
            if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) run(path);
    std::printf("%zu inputs ran\n", paths.size());
    return paths.empty() ? 1 : 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
}
