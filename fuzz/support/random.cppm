// Numbers that are the same on every machine for the same seed.
export module lyo.fuzz:random;

import lyo.prelude;

namespace lyo::fuzz {

/// SplitMix64.
export class Random {
  public:
    explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /// In [0, count); `count` is not zero.
    std::size_t below(std::size_t count) noexcept { return static_cast<std::size_t>(next() % count); }
    bool one_in(std::size_t n) noexcept { return below(n) == 0; }
    /// In [low, high].
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low) + 1));
    }
    template <class Container>
    auto& pick(Container&& from) noexcept {
        return from[below(std::size(from))];
    }

  private:
    std::uint64_t state_;
};

}  // namespace lyo::fuzz
