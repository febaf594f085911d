// May this host run it, then: what is bound to what, and when it goes live.
module lyo.hydration;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import :guard;
import :live;

namespace lyo {

namespace {

std::string joined(std::span<const std::string> targets) {
    std::string out;
    for (const std::string& target : targets) out += (out.empty() ? "" : ", ") + target;
    return out.empty() ? "no image at all" : out;
}

/// Indices of the functions of the wanted name, in order. Errors: invalid_argument.
Result<std::vector<std::size_t>> wanted_functions(const Artifact& artifact, const HydrateOptions& options) {
    const auto& functions = artifact.functions().functions;
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < functions.size(); ++i)
        if (functions[i].name == (options.function.empty() ? functions[0].name : options.function)) out.push_back(i);
    if (out.empty())
        return fail(ErrorCode::invalid_argument, "hydrate",
                    functions.empty() ? std::string("the artifact has no function")
                                      : cat("no function is named ", options.function));
    return out;
}

std::vector<Bytes> constants_of(const Artifact& artifact) {
    std::vector<Bytes> out;
    for (std::size_t i = 0; i < artifact.functions().constants.size(); ++i) out.push_back(artifact.constant(i));
    return out;
}

/// A plan without symbols can be resolved, and held against its memory, before anybody calls it.
template <class S>
Result<> warm(const S& specialisation) {
    if (!specialisation.program.function().symbols.empty()) return {};
    auto live = std::make_unique<typename S::LiveType>();
    if (auto ok = live->workspace.prepare(specialisation.program, {}); !ok)
        return std::unexpected(std::move(ok.error()).in(specialisation.program.function().name));
    specialisation.pool.give_back(std::move(live));
    return {};
}

Result<> hydrate_cpu(Function::State& state, std::span<const std::size_t> wanted, const HydrateOptions& options) {
    const Artifact& artifact = state.artifact;
    const Image* image = artifact.image("cpu");
    if (image == nullptr)
        return mismatch(ErrorCode::no_image, "hydrate", "an image for cpu", "cpu", joined(artifact.manifest().targets));
    const std::vector<Bytes> constants = constants_of(artifact);
    for (const std::size_t i : wanted) {
        const FunctionSpec& spec = artifact.functions().functions[i];
        auto guards = Guards::make(spec, state.device);
        if (!guards) return std::unexpected(guards.error());
        state.cpu.push_back(std::make_unique<CpuSpecialisation>(
            std::move(*guards), CpuProgram(image->programs[i], spec, constants, options.limits)));
        if (auto ok = warm(*state.cpu.back()); !ok) return ok;
    }
    return {};
}

Result<> hydrate_cuda(Function::State& state, std::span<const std::size_t> wanted, const HydrateOptions& options) {
    const Artifact& artifact = state.artifact;
    // Whether it can run is decided before anything is loaded.
    const auto devices = cuda_devices();
    if (!devices) {
        Error error = devices.error();
        error.what += cat("; the artifact has ", joined(artifact.manifest().targets));
        return std::unexpected(std::move(error));
    }
    const auto device = std::find_if(devices->begin(), devices->end(),
                                     [&](const CudaDevice& d) { return d.index == state.device.index; });
    if (device == devices->end())
        return fail(ErrorCode::no_device, state.device.to_string(), "this machine has ", devices->size(),
                    devices->size() == 1 ? " CUDA device" : " CUDA devices");
    auto target = choose_cuda_target(artifact.manifest().targets, device->major, device->minor, options.allow_jit);
    if (!target) return std::unexpected(target.error());
    state.cuda.target = std::move(*target);
    // Digests are checked while the constants are on their way: nothing runs before both are done.
    Result<> verified;
    std::jthread verifier;
    if (!artifact.constants_verified()) try {
            verifier = std::jthread([&] { verified = artifact.verify_constants(); });
        } catch (const std::exception&) {
            verified = artifact.verify_constants();  // no thread is to be had
        }
    auto image = CudaImage::load(state.device, artifact.device_code(state.cuda.target), constants_of(artifact));
    if (verifier.joinable()) verifier.join();
    if (!verified) return verified;
    if (!image) return std::unexpected(image.error());
    const DeviceImage& plans = *artifact.device_image(state.cuda.target);
    for (const std::size_t i : wanted) {
        const FunctionSpec& spec = artifact.functions().functions[i];
        auto guards = Guards::make(spec, state.device);
        if (!guards) return std::unexpected(guards.error());
        auto program = CudaProgram::make(plans.programs[i], spec, *image, options.limits);
        if (!program) return std::unexpected(program.error());
        state.cuda.specialisations.push_back(
            std::make_unique<CudaSpecialisation>(std::move(*guards), std::move(*program)));
        if (auto ok = warm(*state.cuda.specialisations.back()); !ok) return ok;
    }
    return {};
}

}  // namespace

Result<Function> hydrate(const Artifact& artifact, Device device, const HydrateOptions& options) try {
    const auto wanted = wanted_functions(artifact, options);
    if (!wanted) return std::unexpected(wanted.error());
    auto state = std::make_shared<Function::State>(artifact);
    state->device = device;
    state->spec = &state->artifact.functions().functions[wanted->front()];
    const bool cpu = device.type == Device::Type::cpu;
    if (auto ok = cpu ? hydrate_cpu(*state, *wanted, options) : hydrate_cuda(*state, *wanted, options); !ok)
        return std::unexpected(ok.error());
    return Function(std::move(state));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "hydrate", "no memory for the function");
}

}  // namespace lyo
