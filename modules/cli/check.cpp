module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

struct Tolerance {
    double rtol = 0, atol = 0;
};
/// torch.testing.assert_close's defaults.
Tolerance tolerance_of(DType dtype) noexcept {
    switch (dtype) {
        case DType::f16:
            return {1e-3, 1e-5};
        case DType::bf16:
            return {1.6e-2, 1e-5};
        case DType::f32:
            return {1.3e-6, 1e-5};
        case DType::f64:
            return {1e-7, 1e-7};
        default:
            return {};
    }
}

struct Comparison {
    std::string problem;  ///< of shape or dtype
    double absolute = 0, relative = 0;
    std::int64_t wrong = 0, first_wrong = -1;
    bool pass() const noexcept { return problem.empty() && wrong == 0; }
};

Comparison compare(const Tensor& got, const Tensor& wanted, Tolerance tolerance) {
    Comparison out;
    if (got.dtype() != wanted.dtype()) {
        out.problem = cat("dtype: expected ", to_string(wanted.dtype()), ", got ", to_string(got.dtype()));
    } else if (got.shape() != wanted.shape()) {
        out.problem = cat("shape: expected ", to_string(wanted.shape()), ", got ", to_string(got.shape()));
    }
    if (!out.problem.empty()) return out;
    for (std::int64_t i = 0; i < got.numel(); ++i) {
        bool right = false;
        if (is_float(got.dtype())) {
            const double a = got.at(i), b = wanted.at(i);
            if (a == b || (std::isnan(a) && std::isnan(b))) continue;
            const double difference = std::fabs(a - b);
            // A NaN or an infinity on one side only is as wrong as can be.
            const bool finite = std::isfinite(a) && std::isfinite(b);
            out.absolute = std::max(out.absolute, finite ? difference : std::numeric_limits<double>::infinity());
            out.relative = std::max(
                out.relative, finite && b != 0 ? difference / std::fabs(b) : std::numeric_limits<double>::infinity());
            right = finite && difference <= tolerance.atol + tolerance.rtol * std::fabs(b);
        } else {
            const auto size = static_cast<std::int64_t>(size_of(got.dtype()));
            const auto at = [&](const Tensor& t) {
                return load_int(static_cast<const std::byte*>(t.data()) + i * size, t.dtype());
            };
            const std::int64_t a = at(got), b = at(wanted);
            if (a == b) continue;
            const double difference = std::fabs(static_cast<double>(a) - static_cast<double>(b));
            out.absolute = std::max(out.absolute, difference);
            out.relative = std::max(out.relative, difference / std::max(1.0, std::fabs(static_cast<double>(b))));
            right = difference <= tolerance.atol + tolerance.rtol * std::fabs(static_cast<double>(b));
        }
        if (!right) {
            if (out.wrong++ == 0) out.first_wrong = i;
        }
    }
    return out;
}

/// The tensors named "input.0", "input.1", ... and "output.0", ...; by their numbers.
struct Recorded {
    std::map<std::size_t, Tensor> inputs, outputs;
};
Result<Recorded> read_recorded(const std::string& path, const FunctionSpec& spec) {
    const auto bytes = read_file(path);
    if (!bytes) return std::unexpected(bytes.error());
    const auto tensors = read_safetensors(*bytes);
    if (!tensors) return std::unexpected(Error(tensors.error()).in(path));
    Recorded out;
    for (const NamedTensor& t : *tensors) {
        const bool input = t.name.starts_with("input."), output = t.name.starts_with("output.");
        const std::string_view number =
            std::string_view(t.name).substr(std::min(t.name.size(), input ? std::size_t{6} : std::size_t{7}));
        std::size_t index = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
        if ((!input && !output) || number.empty() || error != std::errc{} || end != number.data() + number.size())
            return mismatch(ErrorCode::bad_archive, path, "name of a tensor", "input.N or output.N", t.name);
        const std::size_t count = input ? spec.inputs.size() : spec.outputs.size();
        if (index >= count)
            return mismatch(ErrorCode::guard_failed, path, input ? "inputs" : "outputs", count,
                            cat("one named ", t.name));
        // "input.0" and "input.00" are two names and one number.
        if (!(input ? out.inputs : out.outputs).emplace(index, t.tensor).second)
            return fail(ErrorCode::bad_archive, path, t.name, " is there twice");
    }
    for (std::size_t i = 0; i < spec.inputs.size(); ++i)
        if (!out.inputs.contains(i))
            return fail(ErrorCode::guard_failed, path, "holds no input.", i, " (", spec.inputs[i].name, ")");
    if (out.outputs.empty() && !spec.outputs.empty())
        return fail(ErrorCode::guard_failed, path, "holds no output to compare with");
    return out;
}

/// "1,-5,0" as numbers.
std::optional<Dims> parse_dims(std::string_view text) {
    Dims out;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        std::int64_t value = 0;
        const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
        if (error != std::errc{} || stop != text.data() + end || out.size() == max_rank) return std::nullopt;
        out.push_back(value);
        at = end + 1;
    }
    return out;
}

/// The same elements at strides of 0 or more, in memory that just holds them.
Result<Tensor> lay_out(const Tensor& from, const Dims& strides) {
    std::int64_t extent = 1;
    for (std::size_t d = 0; d < from.rank(); ++d) {
        const auto reach = checked_mul(std::max<std::int64_t>(from.shape()[d] - 1, 0), strides[d]);
        const auto sum = reach ? checked_add(extent, *reach) : std::nullopt;
        if (strides[d] < 0 || !sum)
            return fail(ErrorCode::invalid_argument, "--strides", "strides must be at least 0 and fit memory");
        extent = *sum;
    }
    auto memory = Tensor::empty({extent}, from.dtype());
    if (!memory || from.numel() == 0) return memory ? Result<Tensor>(from) : std::unexpected(memory.error());
    const std::size_t size = size_of(from.dtype());
    auto* to = static_cast<std::byte*>(memory->mutable_data());
    std::memset(to, 0, static_cast<std::size_t>(extent) * size);
    for (std::int64_t i = 0; i < from.numel(); ++i) {
        std::int64_t at = 0, rest = i;
        for (std::size_t d = from.rank(); d-- > 0; rest /= from.shape()[d]) at += rest % from.shape()[d] * strides[d];
        std::memcpy(to + static_cast<std::size_t>(at) * size,
                    static_cast<const std::byte*>(from.data()) + static_cast<std::size_t>(i) * size, size);
    }
    auto owner = std::make_shared<Tensor>(*memory);
    return Tensor::share(owner, memory->data(), from.shape(), strides, from.dtype(), Device::cpu());
}

Result<> apply_strides(std::span<const std::string> options, std::vector<Tensor>& inputs) {
    for (const std::string& option : options) {
        const auto equals = option.find('=');
        std::size_t index = 0;
        const char* end = option.data() + std::min(equals, option.size());
        const auto [stop, error] = std::from_chars(option.data(), end, index);
        const auto strides =
            equals == std::string::npos ? std::nullopt : parse_dims(std::string_view(option).substr(equals + 1));
        if (error != std::errc{} || stop != end || index >= inputs.size() || !strides ||
            strides->size() != inputs[index].rank())
            return mismatch(ErrorCode::invalid_argument, "--strides", "form",
                            "INPUT=S0,S1,... with a stride a dimension", option);
        auto laid_out = lay_out(inputs[index], *strides);
        if (!laid_out) return std::unexpected(laid_out.error());
        inputs[index] = std::move(*laid_out);
    }
    return {};
}

}  // namespace

int check(const CheckArgs& args, const Console& console) {
    const auto function = open_function(args.artifact, args);
    if (!function) return console.fail(function.error());
    auto recorded = read_recorded(args.io, function->spec());
    if (!recorded) return console.fail(recorded.error());
    std::vector<Tensor> inputs;
    for (auto& [index, tensor] : recorded->inputs) inputs.push_back(tensor);
    if (const auto ok = apply_strides(args.strides, inputs); !ok) return console.fail(ok.error());
    const auto outputs = call_from_cpu(*function, inputs);
    if (!outputs) return console.fail(Error(outputs.error()).in(args.artifact));

    bool pass = true;
    std::string json = cat("{\"artifact\": ", json_text(function->artifact().id().hex()),
                           ", \"device\": ", json_text(function->device().to_string()), ", \"outputs\": [");
    for (const auto& [index, wanted] : recorded->outputs) {
        Tolerance tolerance = tolerance_of(wanted.dtype());
        if (args.rtol) tolerance.rtol = *args.rtol;
        if (args.atol) tolerance.atol = *args.atol;
        const Comparison c = compare((*outputs)[index], wanted, tolerance);
        pass = pass && c.pass();
        const std::string& name = function->spec().outputs[index].name;
        if (console.json) {
            json +=
                cat(json.ends_with('[') ? "" : ", ", "{\"name\": ", json_text(name), ", \"index\": ", index,
                    ", \"max_abs_error\": ", json_number(c.absolute), ", \"max_rel_error\": ", json_number(c.relative),
                    ", \"wrong\": ", c.wrong, c.problem.empty() ? "" : cat(", \"problem\": ", json_text(c.problem)),
                    ", \"pass\": ", c.pass() ? "true" : "false", "}");
            continue;
        }
        std::string line = cat("output.", index, " ", name, ": ");
        if (!c.problem.empty())
            line += c.problem;
        else
            line += cat("max abs error ", short_number(c.absolute), ", max rel error ", short_number(c.relative));
        if (c.wrong > 0)
            line += cat(", ", c.wrong, " of ", wanted.numel(), " elements differ, the first at ", c.first_wrong);
        console.print(line + (c.pass() ? ": pass" : ": fail"));
    }
    if (console.json) console.print(cat(json, "], \"pass\": ", pass ? "true" : "false", "}"));
    return pass ? done : no;
}

}  // namespace lyo::cli
