module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

/// Files as named tensors: a whole safetensors file, or NAME=FILE.npy.
Result<> add_inputs(const std::string& option, std::map<std::string, Tensor>& to) {
    const auto add = [&](const std::string& name, const Tensor& tensor) -> Result<> {
        if (!to.emplace(name, tensor).second)
            return fail(ErrorCode::invalid_argument, "--in", "input ", name, " is given twice");
        return {};
    };
    const auto equals = option.find('=');
    const std::string path = equals == std::string::npos ? option : option.substr(equals + 1);
    if (path.empty() || equals == 0)
        return mismatch(ErrorCode::invalid_argument, "--in", "form", "FILE.safetensors or NAME=FILE.npy", option);
    const auto bytes = read_file(path);
    if (!bytes) return std::unexpected(bytes.error());
    if (equals != std::string::npos) {
        const auto tensor = read_npy(*bytes);
        if (!tensor) return std::unexpected(Error(tensor.error()).in(path));
        return add(option.substr(0, equals), *tensor);
    }
    const auto tensors = read_safetensors(*bytes);
    if (!tensors) return std::unexpected(Error(tensors.error()).in(path));
    for (const NamedTensor& t : *tensors) {
        if (t.name.starts_with("output.")) continue;  // recorded answers beside recorded inputs
        if (auto ok = add(t.name, t.tensor); !ok) return ok;
    }
    return {};
}

/// In the function's order, by the inputs' names or as "input.N".
Result<std::vector<Tensor>> in_order(std::map<std::string, Tensor> named, const FunctionSpec& spec) {
    std::vector<Tensor> out;
    std::string names;
    for (const TensorSpec& input : spec.inputs) names += cat(names.empty() ? "" : ", ", input.name);
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
        auto at = named.find(spec.inputs[i].name);
        if (at == named.end()) at = named.find(cat("input.", i));
        if (at == named.end())
            return fail(ErrorCode::invalid_argument, "--in", "input ", spec.inputs[i].name,
                        " is not given (the inputs are ", names, ")");
        out.push_back(at->second);
        named.erase(at);
    }
    if (!named.empty())
        return fail(ErrorCode::invalid_argument, "--in", "there is no input ", named.begin()->first,
                    " (the inputs are ", names, ")");
    return out;
}

}  // namespace

int run(const RunArgs& args, const Console& console) {
    const bool npy = args.out.ends_with(".npy");
    if (!npy && !args.out.ends_with(".safetensors"))
        return console.fail(
            {ErrorCode::invalid_argument, cat("expected FILE.safetensors or FILE.npy, got ", args.out), "--out"});
    const auto function = open_function(args.artifact, args);
    if (!function) return console.fail(function.error());
    std::map<std::string, Tensor> named;
    for (const std::string& option : args.in)
        if (const auto ok = add_inputs(option, named); !ok) return console.fail(ok.error());
    const auto inputs = in_order(std::move(named), function->spec());
    if (!inputs) return console.fail(inputs.error());
    const auto outputs = call_from_cpu(*function, *inputs);
    if (!outputs) return console.fail(Error(outputs.error()).in(args.artifact));
    const auto& specs = function->spec().outputs;
    if (npy && outputs->size() != 1)
        return console.fail({ErrorCode::invalid_argument,
                             cat("a .npy file holds one tensor, the function gives ", outputs->size()), "--out"});
    std::vector<NamedTensor> tensors;
    std::set<std::string> taken;
    for (std::size_t i = 0; i < outputs->size(); ++i) {
        // A value that is returned twice has its name twice.
        const std::string name = taken.insert(specs[i].name).second ? specs[i].name : cat("output.", i);
        tensors.push_back({name, (*outputs)[i]});
    }
    const auto bytes = npy ? write_npy(outputs->front()) : write_safetensors(tensors);
    if (!bytes) return console.fail(Error(bytes.error()).in(args.out));
    if (const auto ok = write_file(args.out, *bytes); !ok) return console.fail(ok.error());
    for (std::size_t i = 0; i < outputs->size(); ++i)
        console.note(cat(tensors[i].name, ": ", to_string((*outputs)[i].dtype()), to_string((*outputs)[i].shape())));
    return done;
}

}  // namespace lyo::cli
