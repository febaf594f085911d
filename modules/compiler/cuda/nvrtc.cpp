// NVRTC, opened at run time: the one place that knows it. Its few functions are declared here, so no toolkit is needed
// to build. Source and options alone decide the output: no file is read, no line information is made.
module lyo.compiler;

import lyo.prelude;
import lyo.base;
import :cuda;

namespace lyo::cuda {
namespace {

using Handle = struct _nvrtcProgram*;

struct Nvrtc {
    int (*version)(int*, int*) = nullptr;
    int (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
    int (*destroy)(Handle*) = nullptr;
    int (*compile)(Handle, int, const char* const*) = nullptr;
    int (*log_size)(Handle, std::size_t*) = nullptr;
    int (*log)(Handle, char*) = nullptr;
    int (*ptx_size)(Handle, std::size_t*) = nullptr;
    int (*ptx)(Handle, char*) = nullptr;
    int (*cubin_size)(Handle, std::size_t*) = nullptr;
    int (*cubin)(Handle, char*) = nullptr;
    bool complete = false;

    Nvrtc() {
        const SharedLibrary library(
            {"libnvrtc.so.13", "libnvrtc.so", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"});
        complete = library.is_open();
        const auto find = [&](auto& function, const char* name) {
            complete = library.find(function, name) && complete;
        };
        find(version, "nvrtcVersion");
        find(create, "nvrtcCreateProgram");
        find(destroy, "nvrtcDestroyProgram");
        find(compile, "nvrtcCompileProgram");
        find(log_size, "nvrtcGetProgramLogSize");
        find(log, "nvrtcGetProgramLog");
        find(ptx_size, "nvrtcGetPTXSize");
        find(ptx, "nvrtcGetPTX");
        find(cubin_size, "nvrtcGetCUBINSize");
        find(cubin, "nvrtcGetCUBIN");
    }
};

const Nvrtc& nvrtc() {
    static const Nvrtc instance;
    return instance;
}

constexpr std::string_view ptx_target = "cuda:ptx", sm_prefix = "cuda:sm_";
/// PTX is made for the oldest architecture whose instructions the kernels use; newer ones can run it.
constexpr std::string_view ptx_architecture = "compute_80";

std::unexpected<Error> not_there(std::string_view target) {
    return fail(ErrorCode::no_image, target,
                "NVRTC (libnvrtc.so of the CUDA toolkit) cannot be opened on this machine");
}

}  // namespace

Result<std::string> nvrtc_version() {
    int major = 0, minor = 0;
    if (!nvrtc().complete || nvrtc().version(&major, &minor) != 0) return not_there("nvrtc");
    return cat(major, ".", minor);
}

bool is_target(std::string_view target) noexcept {
    if (target == ptx_target) return true;
    if (!target.starts_with(sm_prefix)) return false;
    const std::string_view number = target.substr(sm_prefix.size());
    return number.size() >= 2 && number.size() <= 4 && std::all_of(number.begin(), number.end(), [](char c) {
               return (c >= '0' && c <= '9') || c == 'a' || c == 'f';
           });
}

Result<std::vector<std::byte>> assemble(const std::string& source, std::string_view target) {
    const Nvrtc& n = nvrtc();
    if (!n.complete) return not_there(target);
    Handle program = nullptr;
    if (n.create(&program, source.c_str(), "lyo.cu", 0, nullptr, nullptr) != 0)
        return fail(ErrorCode::out_of_memory, target, "NVRTC cannot make a program");
    struct Guard {
        const Nvrtc& n;
        Handle& program;
        ~Guard() { n.destroy(&program); }
    } const guard{n, program};
    const bool ptx = target == ptx_target;
    const std::string architecture =
        cat("--gpu-architecture=", ptx ? std::string(ptx_architecture) : cat("sm_", target.substr(sm_prefix.size())));
    const char* const options[] = {architecture.c_str(), "--std=c++17", "--extra-device-vectorization",
                                   "--no-source-include"};
    if (n.compile(program, static_cast<int>(std::size(options)), options) != 0) {
        std::size_t size = 0;
        n.log_size(program, &size);
        std::string log(size, '\0');
        if (size > 0) n.log(program, log.data());
        constexpr std::size_t shown = 2000;
        if (log.size() > shown) log.resize(shown);
        while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
        return fail(log.find("invalid value for --gpu-architecture") != std::string::npos ? ErrorCode::invalid_argument
                                                                                          : ErrorCode::bad_value,
                    target, "NVRTC: ", log);
    }
    std::size_t size = 0;
    if ((ptx ? n.ptx_size : n.cubin_size)(program, &size) != 0 || size == 0)
        return fail(ErrorCode::no_image, target, "NVRTC made no code");
    std::vector<std::byte> code(size);  // PTX is counted and written with its NUL
    if ((ptx ? n.ptx : n.cubin)(program, reinterpret_cast<char*>(code.data())) != 0)
        return fail(ErrorCode::no_image, target, "NVRTC does not give its code");
    return code;
}

}  // namespace lyo::cuda
