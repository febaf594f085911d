// The commands of the program `lyo`, and what they share.
export module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

enum Exit : int { done = 0, no = 1, usage = 2, machine = 3 };
/// The exit status that an error stands for.
Exit status_of(ErrorCode code) noexcept;

/// Where a command says things.
struct Console {
    bool quiet = false;
    bool json = false;
    /// A result, to standard output.
    void print(std::string_view line) const;
    /// Anything else, to standard error, unless quiet.
    void note(std::string_view line) const;
    /// The error in one line on standard error; gives its exit status.
    int fail(const Error& error) const;
};
/// False when standard output could not take everything: a full disk, a closed pipe.
bool flush_output() noexcept;

/// "0.000123", "1.5e-07": short and readable.
std::string short_number(double value);
/// A number as JSON: infinities and NaN, which it lacks, as strings.
std::string json_number(double value);

struct DeviceArgs {
    std::string device = "cpu";
};
/// The artifact, live on the device. Errors: those of reading and hydrating.
Result<Function> open_function(const std::string& path, const DeviceArgs& args);
/// A function of one call on the device for inputs that are on the CPU; outputs come back to the CPU.
Result<std::vector<Tensor>> call_from_cpu(const Function& function, std::span<const Tensor> inputs);
/// Inputs made up for the function, of moderate size.
Result<std::vector<Tensor>> made_up_inputs(const Function& function, std::uint64_t seed);

struct CompileArgs {
    std::string model, out, cache;
    std::vector<std::string> targets;
    bool no_debug = false;
};
CompileOptions options_of(const CompileArgs& args);
int compile(const CompileArgs& args, const Console& console);

/// The cache of that address (see parse_cache); what goes wrong without costing the result is noted. Errors:
/// invalid_argument.
Result<std::optional<Cache>> open_cache(const std::string& address, const Console& console);

struct CacheArgs : CompileArgs {
    std::string key, file, other, prometheus;
    std::optional<std::uint64_t> max_bytes;
};
/// Commands below `lyo cache`. `model`, `targets` and `no_debug` say what is compiled, as in `compile`.
using CacheCommand = int (*)(const CacheArgs& args, const Console& console);
int cache_path(const CacheArgs& args, const Console& console);
int cache_ls(const CacheArgs& args, const Console& console);
int cache_stat(const CacheArgs& args, const Console& console);
int cache_gc(const CacheArgs& args, const Console& console);
int cache_get(const CacheArgs& args, const Console& console);
int cache_put(const CacheArgs& args, const Console& console);
int cache_rm(const CacheArgs& args, const Console& console);
int cache_push(const CacheArgs& args, const Console& console);
int cache_pull(const CacheArgs& args, const Console& console);
int cache_why(const CacheArgs& args, const Console& console);

struct CheckArgs : DeviceArgs {
    std::string artifact, io;
    std::optional<double> rtol, atol;
    std::vector<std::string> strides;  ///< "0=1,5": input 0 is laid out with these strides
};
int check(const CheckArgs& args, const Console& console);

struct RunArgs : DeviceArgs {
    std::string artifact, out;
    std::vector<std::string> in;
};
int run(const RunArgs& args, const Console& console);

struct RoundtripArgs : DeviceArgs {
    std::string artifact, out;
};
int roundtrip(const RoundtripArgs& args, const Console& console);

struct VerifyArgs {
    std::string artifact, pubkey;
};
int verify(const VerifyArgs& args, const Console& console);

struct InspectArgs {
    std::string artifact, html;
};
int inspect(const InspectArgs& args, const Console& console);
/// One self-contained page.
std::string to_html(const Artifact& artifact, std::string_view name);
/// "f32[s0, 4]".
std::string type_text(const TensorSpec& spec, const FunctionSpec& function);
std::string expr_text(const FunctionSpec& function, std::uint32_t expr);

struct DiffArgs {
    std::string a, b;
};
int diff(const DiffArgs& args, const Console& console);

struct BenchArgs : DeviceArgs {
    std::string artifact;
    double seconds = 1;
};
int bench(const BenchArgs& args, const Console& console);

struct DoctorArgs {
    std::string artifact;
    bool ops = false, no_jit = false;
};
int doctor(const DoctorArgs& args, const Console& console);

/// Reads the command line and runs its command.
export int main(int argc, char** argv);

}  // namespace lyo::cli
