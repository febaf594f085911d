module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::time_point from, Clock::time_point to) {
    return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

struct Times {
    std::string name;
    double median = 0, p10 = 0, p90 = 0;
    std::size_t samples = 0;
};

/// Runs `body` in batches long enough for the clock, for about `seconds`, at least 10 times.
template <class Body>
Result<Times> measure(std::string name, double seconds, const Body& body) {
    constexpr double batch_ns = 20'000;
    std::size_t repeat = 1;
    std::vector<double> samples;
    const auto start = Clock::now();
    constexpr std::size_t least = 10;
    for (bool calibrated = false;
         !calibrated || samples.size() < least || nanoseconds(start, Clock::now()) < seconds * 1e9;) {
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < repeat; ++i)
            if (Result<> ok = body(); !ok) return std::unexpected(ok.error());
        const double took = nanoseconds(begin, Clock::now());
        if (!calibrated && took < batch_ns && repeat < (1u << 20)) {
            repeat *= 2;
            continue;
        }
        calibrated = true;
        samples.push_back(took / static_cast<double>(repeat));
    }
    std::sort(samples.begin(), samples.end());
    const auto at = [&](double q) {
        return samples[static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1))];
    };
    return Times{std::move(name), at(0.5), at(0.1), at(0.9), samples.size()};
}

}  // namespace

int bench(const BenchArgs& args, const Console& console) {
    const auto function = open_function(args.artifact, args);
    if (!function) return console.fail(function.error());
    auto inputs = made_up_inputs(*function, 1);
    if (!inputs) return console.fail(Error(inputs.error()).in(args.artifact));
    const bool on_device = function->device().type != Device::Type::cpu;
    if (on_device)
        for (Tensor& input : *inputs) {
            auto copy = copy_to_device(input, function->device());
            if (!copy) return console.fail(Error(copy.error()).in(args.artifact));
            input = std::move(*copy);
        }
    const auto outputs = function->call(*inputs);
    if (!outputs) return console.fail(Error(outputs.error()).in(args.artifact));
    std::vector<Times> times;
    const auto add = [&](std::string name, const std::function<Result<>()>& body) -> Result<> {
        auto t = measure(std::move(name), args.seconds, body);
        if (!t) return std::unexpected(t.error());
        times.push_back(std::move(*t));
        return {};
    };
    Result<> ok = add("open, validate, hydrate", [&]() -> Result<> {
        const auto f = open_function(args.artifact, args);
        if (!f) return std::unexpected(f.error());
        return {};
    });
    if (ok)
        ok = add("call", [&]() -> Result<> {
            const auto out = function->call(*inputs);
            if (!out) return std::unexpected(out.error());
            return {};
        });
    if (ok && on_device)
        ok = add("call and wait", [&]() -> Result<> {
            const auto out = function->call(*inputs);
            if (!out) return std::unexpected(out.error());
            return synchronize(function->device());
        });
    if (ok) ok = add("call into given outputs", [&]() -> Result<> { return function->call_into(*inputs, *outputs); });
    if (ok)
        ok = add("serialize", [&]() -> Result<> {
            if (function->serialize().data() != function->artifact().bytes().data())
                return fail(ErrorCode::bad_value, "serialize", "other bytes");
            return {};
        });
    if (!ok) return console.fail(Error(ok.error()).in(args.artifact));
    std::string json = cat("{\"backend\": ", json_text(function->backend()), ", \"times_ns\": [");
    if (!console.json) console.print(cat("backend ", function->backend(), "; nanoseconds: median (p10, p90)"));
    for (const Times& t : times) {
        if (console.json)
            json += cat(json.ends_with('[') ? "" : ", ", "{\"name\": ", json_text(t.name),
                        ", \"median\": ", json_number(t.median), ", \"p10\": ", json_number(t.p10),
                        ", \"p90\": ", json_number(t.p90), ", \"samples\": ", t.samples, "}");
        else
            console.print(cat(t.name, std::string(t.name.size() < 26 ? 26 - t.name.size() : 1, ' '),
                              short_number(t.median), " (", short_number(t.p10), ", ", short_number(t.p90), ")"));
    }
    if (console.json) console.print(json + "]}");
    return done;
}

}  // namespace lyo::cli
