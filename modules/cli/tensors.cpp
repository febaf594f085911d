// Functions and tensors, as several commands need them.
module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {

Result<Function> open_function(const std::string& path, const DeviceArgs& args) {
    const auto device = Device::parse(args.device);
    if (!device) return std::unexpected(device.error());
    auto artifact = Artifact::read(path);
    if (!artifact) return std::unexpected(artifact.error());
    auto function = hydrate(*artifact, *device);
    if (!function) return std::unexpected(std::move(function.error()).in(path));
    return function;
}

Result<std::vector<Tensor>> call_from_cpu(const Function& function, std::span<const Tensor> inputs) {
    if (function.device().type == Device::Type::cpu) return function.call(inputs);
    std::vector<Tensor> there;
    for (const Tensor& input : inputs) {
        auto copy = copy_to_device(input, function.device());
        if (!copy) return std::unexpected(copy.error());
        there.push_back(std::move(*copy));
    }
    const auto outputs = function.call(there);
    if (!outputs) return outputs;
    std::vector<Tensor> back;
    for (const Tensor& output : *outputs) {
        auto copy = copy_to_cpu(output);
        if (!copy) return std::unexpected(copy.error());
        back.push_back(std::move(*copy));
    }
    return back;
}

Result<std::vector<Tensor>> made_up_inputs(const Function& function, std::uint64_t seed) {
    constexpr std::uint64_t max_elements = std::uint64_t{1} << 28;
    return sample_inputs(function.spec(), seed, max_elements);
}

}  // namespace lyo::cli
