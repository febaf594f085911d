module;
#include <cstdio>

module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

Exit status_of(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::invalid_argument:
        case ErrorCode::wrong_device:
            return usage;
        case ErrorCode::limit_exceeded:
        case ErrorCode::file:
        case ErrorCode::out_of_memory:
        case ErrorCode::no_image:
        case ErrorCode::no_device:
        case ErrorCode::device:
        case ErrorCode::remote:
            return machine;
        default:
            return no;
    }
}

namespace {

void write_line(std::FILE* stream, std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stream);
    if (!line.ends_with('\n')) std::fwrite("\n", 1, 1, stream);
}

}  // namespace

void Console::print(std::string_view line) const { write_line(stdout, line); }
void Console::note(std::string_view line) const {
    if (!quiet) write_line(stderr, line);
}
int Console::fail(const Error& error) const {
    write_line(stderr, cat("lyo: ", error.to_string()));
    return status_of(error.code);
}
bool flush_output() noexcept { return std::fflush(stdout) == 0; }

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

std::string json_number(double value) {
    if (std::isnan(value)) return "\"NaN\"";
    if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

}  // namespace lyo::cli
