// Which image runs where: needs neither driver nor device.
module lyo.kernel;

import lyo.prelude;
import lyo.base;

namespace lyo {

Result<std::string> choose_cuda_target(std::span<const std::string> targets, int major, int minor, bool allow_jit) {
    constexpr std::string_view prefix = "cuda:sm_", ptx = "cuda:ptx";
    std::string list;
    std::optional<std::string> best;
    int best_minor = -1;
    bool has_ptx = false;
    for (const std::string& target : targets) {
        list += cat(list.empty() ? "" : ", ", target);
        has_ptx = has_ptx || target == ptx;
        if (!target.starts_with(prefix)) continue;
        int number = 0;
        const char* last = target.data() + target.size();
        const auto [end, error] = std::from_chars(target.data() + prefix.size(), last, number);
        if (error != std::errc{} || number / 10 != major) continue;
        const int its_minor = number % 10;
        // "sm_90a" runs on that very architecture only, "sm_100f" within its family.
        const bool exact_only = end != last && *end == 'a';
        if (exact_only ? its_minor != minor : its_minor > minor) continue;
        if (its_minor > best_minor) {
            best = target;
            best_minor = its_minor;
        }
    }
    if (best) return *best;
    if (has_ptx && allow_jit) return std::string(ptx);
    return fail(ErrorCode::no_image, "hydrate", "the device is sm_", major, minor, "; the artifact has ",
                list.empty() ? "no image" : list, has_ptx ? ", and compiling PTX is forbidden" : "");
}

}  // namespace lyo
