module lyo.hydration;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo {
namespace {

/// splitmix64: a stream of numbers that is the same everywhere.
class Stream {
  public:
    explicit Stream(std::uint64_t seed) noexcept : state_(seed) {}
    std::uint64_t next() noexcept {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t count) noexcept { return static_cast<std::size_t>(next() % count); }

  private:
    std::uint64_t state_;
};

/// Looks for values of the symbols: the preferred one for all, then other values for all, then changes of one symbol at
/// a time that bring the guards nearer to holding, from several beginnings.
class SizeSearch {
    static constexpr std::size_t patience = 48;

  public:
    SizeSearch(const FunctionSpec& spec, std::uint64_t seed, std::uint64_t max_elements)
        : spec_(spec), stream_(seed), max_elements_(max_elements), values_(spec.exprs.size()) {
        // Whatever a guard compares a size with is often a constant of the table.
        const std::int64_t preferred = 2 + static_cast<std::int64_t>((seed + 2) % 3);
        candidates_ = {preferred, 2, 3, 4, 1, 0, 5, 6, 7, 8, 9, 10, 12, 16, 32, 64, 128, 256};
        for (std::size_t i = 0; i < spec.exprs.size() && candidates_.size() < 64; ++i)
            if (const Expr& e = spec.exprs[i]; e.op == ExprOp::constant && e.value > 0) candidates_.push_back(e.value);
    }

    /// Values of all expressions. Errors: guard_failed, limit_exceeded.
    Result<std::vector<std::int64_t>> find() {
        // Evaluating costs as much as the function has expressions: a hostile one gets fewer attempts.
        const std::size_t cost = spec_.exprs.size() + spec_.guards.size() + spec_.inputs.size() + 1;
        std::size_t attempts = std::clamp<std::size_t>((std::size_t{1} << 20) / cost, 4, 1024);
        std::vector<std::int64_t> best, now(spec_.symbols.size());
        double nearest = std::numeric_limits<double>::infinity();
        const auto tries = [&](const std::vector<std::int64_t>& symbols) {
            const double distance = violation(symbols);
            if (best.empty() || distance <= nearest) {
                best = symbols;
                nearest = distance;
            }
            return distance == 0;
        };
        for (const std::int64_t candidate : candidates_) {
            if (attempts-- == 0) break;
            for (std::size_t s = 0; s < now.size(); ++s) now[s] = clamp(s, candidate);
            if (tries(now)) return values_;
            if (now.empty()) return refused();
        }
        for (std::size_t steps = 0; attempts-- > 0; ++steps) {
            if (steps == patience) {  // nothing nearer is one change away: from somewhere else, then
                for (std::size_t s = 0; s < now.size(); ++s)
                    now[s] = clamp(s, candidates_[stream_.below(candidates_.size())]);
                nearest = std::numeric_limits<double>::infinity();
                steps = 0;
                if (tries(now)) return values_;
                continue;
            }
            now = best;
            const std::size_t s = stream_.below(now.size());
            switch (stream_.below(4)) {
                case 0:
                    now[s] = clamp(s, checked_add<std::int64_t>(now[s], 1).value_or(now[s]));
                    break;
                case 1:
                    now[s] = clamp(s, now[s] - 1);
                    break;
                case 2:
                    now[s] = clamp(s, now[stream_.below(now.size())]);
                    break;
                default:
                    now[s] = clamp(s, candidates_[stream_.below(candidates_.size())]);
                    break;
            }
            if (tries(now)) return values_;
        }
        return refused();
    }

  private:
    std::int64_t clamp(std::size_t symbol, std::int64_t value) const noexcept {
        return std::clamp(value, spec_.symbols[symbol].min, spec_.symbols[symbol].max);
    }

    /// 0 when everything holds; `values_` are then the expressions' values.
    double violation(const std::vector<std::int64_t>& symbols) {
        constexpr double hopeless = 1e30;
        if (!evaluate(spec_.exprs, symbols, values_)) return hopeless;
        double out = 0;
        for (const Guard& guard : spec_.guards) {
            const double gap = static_cast<double>(values_[guard.left]) - static_cast<double>(values_[guard.right]);
            const bool holds = guard.kind == GuardKind::equal ? values_[guard.left] == values_[guard.right]
                                                              : values_[guard.left] <= values_[guard.right];
            // Two different numbers of 2^53 and more may be one double.
            if (!holds) out += std::max(std::abs(gap), 1.0);
        }
        std::uint64_t elements = 0;
        for (const TensorSpec& input : spec_.inputs) {
            Dims shape;
            for (const std::uint32_t e : input.shape) shape.push_back(values_[e]);
            const auto count = element_count(shape);
            if (!count) return hopeless;
            elements += std::min<std::uint64_t>(static_cast<std::uint64_t>(*count), std::uint64_t{1} << 62);
            elements = std::min(elements, std::uint64_t{1} << 62);
        }
        if (elements > max_elements_) {
            too_large_ = too_large_ || out == 0;
            out += static_cast<double>(elements - max_elements_);
        }
        return out;
    }

    std::unexpected<Error> refused() const {
        if (too_large_)
            return fail(ErrorCode::limit_exceeded, spec_.name, "the sizes found for its inputs give more than ",
                        max_elements_, " elements");
        return fail(ErrorCode::guard_failed, spec_.name, "no sizes were found that satisfy its guards");
    }

    const FunctionSpec& spec_;
    Stream stream_;
    std::uint64_t max_elements_;
    std::vector<std::int64_t> values_;
    std::vector<std::int64_t> candidates_;
    bool too_large_ = false;
};

void fill(const Tensor& tensor, Stream stream) {
    auto* at = static_cast<std::byte*>(tensor.mutable_data());
    const std::size_t step = size_of(tensor.dtype());
    for (std::int64_t i = 0; i < tensor.numel(); ++i, at += step) {
        const std::uint64_t bits = stream.next() >> 32;
        if (is_float(tensor.dtype()))
            store_double(at, tensor.dtype(), (static_cast<double>(bits % 129) - 64) / 64);
        else
            store_int(at, tensor.dtype(), static_cast<std::int64_t>(bits & 1));
    }
}

}  // namespace

Result<std::vector<Tensor>> sample_inputs(const FunctionSpec& spec, std::uint64_t seed,
                                          std::uint64_t max_elements) try {
    const auto sizes = SizeSearch(spec, seed, max_elements).find();
    if (!sizes) return std::unexpected(sizes.error());
    std::vector<Tensor> out;
    Stream seeds(seed);
    for (const TensorSpec& input : spec.inputs) {
        Dims shape;
        for (const std::uint32_t e : input.shape) shape.push_back((*sizes)[e]);
        auto tensor = Tensor::empty(shape, input.dtype);
        if (!tensor) return std::unexpected(std::move(tensor.error()).in(input.name));
        const std::uint64_t stream = seeds.next();
        if (seed == 0 && tensor->numel() > 0)
            std::memset(tensor->mutable_data(), 0, static_cast<std::size_t>(tensor->numel()) * size_of(input.dtype));
        else if (seed != 0)
            fill(*tensor, Stream(stream));
        out.push_back(std::move(*tensor));
    }
    return out;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, spec.name, "no memory for inputs");
}

}  // namespace lyo
