// May this host run it, then: what is bound to what, and when it goes live.
module lyo.hydration;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.kernel;
import :guard;
import :live;

namespace lyo {

Result<Function> hydrate(const Artifact& artifact, Device device, const HydrateOptions& options) try {
    std::string targets;
    for (const std::string& target : artifact.manifest().targets) targets += (targets.empty() ? "" : ", ") + target;
    if (device.type != Device::Type::cpu)
        return fail(ErrorCode::no_device, device.to_string(),
                    "this build runs functions on cpu only; the artifact has: ", targets);
    const Image* image = artifact.image("cpu");
    if (image == nullptr)
        return mismatch(ErrorCode::no_image, "hydrate", "an image for cpu", "cpu",
                        targets.empty() ? "no image at all" : targets);

    auto state = std::make_shared<Function::State>(artifact);
    state->device = device;
    std::vector<Bytes> constants;
    for (std::size_t i = 0; i < artifact.functions().constants.size(); ++i) constants.push_back(artifact.constant(i));
    const auto& functions = artifact.functions().functions;
    for (std::size_t i = 0; i < functions.size(); ++i) {
        const FunctionSpec& spec = functions[i];
        const std::string& wanted = options.function.empty() ? functions[0].name : options.function;
        if (spec.name != wanted) continue;
        auto guards = Guards::make(spec, device);
        if (!guards) return std::unexpected(guards.error());
        state->specialisations.push_back(std::make_unique<Specialisation>(
            std::move(*guards), CpuProgram(image->programs[i], spec, constants, options.limits)));
    }
    if (state->specialisations.empty())
        return fail(ErrorCode::invalid_argument, "hydrate",
                    functions.empty() ? std::string("the artifact has no function")
                                      : cat("no function is named ", options.function));
    // A plan without symbols can be resolved, and held against its memory, before anybody calls it.
    for (const auto& specialisation : state->specialisations) {
        if (!specialisation->program.function().symbols.empty()) continue;
        auto workspace = std::make_unique<LiveWorkspace>();
        if (auto ok = workspace->cpu.prepare(specialisation->program, {}); !ok)
            return std::unexpected(std::move(ok.error()).in(specialisation->program.function().name));
        specialisation->give_back(std::move(workspace));
    }
    return Function(std::move(state));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "hydrate", "no memory for the function");
}

}  // namespace lyo
