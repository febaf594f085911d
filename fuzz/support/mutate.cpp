module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import lyo.inner;

namespace lyo::fuzz {
namespace {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;

/// Counts the places of a value that can be changed, and changes the one with a given number.
class Walk {
  public:
    Walk(Random& random, std::size_t target) : r_(random), target_(target) {}
    std::size_t places() const noexcept { return at_; }

    template <class T>
    void operator()(T& value) {
        if constexpr (std::is_same_v<T, Digest>) {
            return;
        } else if constexpr (std::is_same_v<T, std::string>) {
            if (here()) change_text(value);
        } else if constexpr (std::is_same_v<T, bool>) {
            if (here()) value = !value;
        } else if constexpr (std::is_enum_v<T>) {
            if (here()) value = static_cast<T>(r_.below(r_.one_in(8) ? 256 : r_.one_in(2) ? 4 : scalar_op_count));
        } else if constexpr (std::is_integral_v<T>) {
            if (here()) change_number(value);
        } else if constexpr (is_vector<T>) {
            if (here()) change_list(value);
            for (auto& item : value) (*this)(item);
        } else if constexpr (is_variant<T>) {
            std::visit([this](auto& alternative) { (*this)(alternative); }, value);
        } else {
            boost::pfr::for_each_field(value, [this](auto& field) { (*this)(field); });
        }
    }

  private:
    bool here() noexcept { return at_++ == target_; }

    template <class T>
    void change_number(T& value) {
        switch (r_.below(6)) {
            case 0:
                value = static_cast<T>(static_cast<std::uint64_t>(value) + 1);
                break;
            case 1:
                value = static_cast<T>(static_cast<std::uint64_t>(value) - 1);
                break;
            case 2:
                value = 0;
                break;
            case 3:
                value = static_cast<T>(r_.below(16));
                break;
            case 4:
                value = std::numeric_limits<T>::max();
                break;
            default:
                value = static_cast<T>(r_.next() >> r_.below(64));
                break;
        }
    }
    void change_text(std::string& text) {
        if (text.empty() || r_.one_in(3))
            text.push_back(static_cast<char>(r_.below(256)));
        else if (r_.one_in(2))
            text.pop_back();
        else
            text[r_.below(text.size())] = static_cast<char>(r_.below(256));
    }
    template <class T>
    void change_list(std::vector<T>& list) {
        if (list.empty()) return void(list.emplace_back());
        const std::size_t i = r_.below(list.size()), k = r_.below(list.size());
        switch (r_.below(5)) {
            case 0:
                list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
                break;
            case 1:
                list.push_back(T(list[i]));
                break;
            case 2:
                list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), T(list[k]));
                break;
            case 3:
                list[i] = T(list[k]);
                break;
            default:
                list.clear();
                break;
        }
    }

    Random& r_;
    std::size_t target_;
    std::size_t at_ = 0;
};

template <class T>
void change_somewhere(T& value, Random& random) {
    Walk counting(random, std::numeric_limits<std::size_t>::max());
    counting(value);
    Walk changing(random, random.below(counting.places()));
    changing(value);
}

/// Bytes of the header, of the table, or of one section, digests excluded from what matters: they are repaired.
void change_bytes(Buffer& file, Random& random) {
    const std::vector<Section> table = table_of(file);
    std::size_t from = 0, size = std::min<std::size_t>(file.size(), 56 + table.size() * 56);
    if (!table.empty() && !random.one_in(4)) {
        const Section& s = random.pick(table);
        if (s.offset < file.size() && s.length > 0) {
            from = s.offset;
            size = std::min<std::uint64_t>(s.length, file.size() - from);
        }
    }
    for (std::size_t n = 1 + random.below(3); n > 0 && size > 0; --n) {
        std::byte& b = file[from + random.below(size)];
        b = random.one_in(2) ? b ^ static_cast<std::byte>(1u << random.below(8))
                             : static_cast<std::byte>(random.next());
    }
}

void change_size(Buffer& file, Random& random) {
    file.resize(random.one_in(2) ? random.below(file.size() + 1) : file.size() + random.below(128));
    if (file.size() >= 24 && random.one_in(2)) set(file, 16, file.size(), 8);
}

}  // namespace

void mutate(Parts& parts, Random& random) {
    switch (random.below(8)) {
        case 0:
            return change_somewhere(parts.manifest, random);
        case 1:
        case 2:
            return change_somewhere(parts.functions, random);
        case 3:
            if (parts.debug && random.one_in(2))
                parts.debug.reset();
            else
                parts.debug = Debug{"text"};
            return;
        case 4:
            if (parts.constants.empty()) return void(parts.constants.emplace_back(random.below(80)));
            random.pick(parts.constants).resize(random.below(200), std::byte{1});
            return;
        default:
            if (!parts.device_images.empty() && random.one_in(2)) {
                if (random.one_in(4) && !parts.device_code.empty())
                    random.pick(parts.device_code).resize(random.below(200));
                else
                    change_somewhere(parts.device_images, random);
                return;
            }
            return change_somewhere(parts.images, random);
    }
}

Buffer mutate(std::span<const std::byte> input, Random& random, std::size_t max_size) {
    Buffer out(input.begin(), input.end());
    if (random.one_in(64)) {
        out = seal(generate(random));
    } else if (random.one_in(32)) {
        change_size(out, random);
    } else {
        auto artifact = random.one_in(4) ? Result<Artifact>(fail(ErrorCode::bad_value, "", ""))
                                         : Artifact::check(Bytes::borrow(input), {Verify::trusted});
        if (artifact) {
            Parts parts = take_apart(*artifact);
            for (std::size_t n = random.one_in(4) ? 2 : 1; n > 0; --n) mutate(parts, random);
            out = seal(parts);
        } else {
            change_bytes(out, random);
        }
    }
    reseal(out);
    if (out.size() > max_size) out.clear();
    return out;
}

}  // namespace lyo::fuzz
