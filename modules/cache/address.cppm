// How a cache is named on a command line and in the environment.
export module lyo.cache:address;

import lyo.prelude;
import lyo.base;
import :layered;

namespace lyo {

/// "none" (nullopt), or up to two places separated by a comma: a folder, and a server behind it (redis://HOST:PORT). A
/// server alone stands behind the default folder; empty means $LYO_CACHE, or the default folder where that is unset, or
/// nullopt where there is no home to put it in. $LYO_CACHE_MAX_BYTES is the local store's limit. Errors:
/// invalid_argument.
export [[nodiscard]] Result<std::optional<CacheOptions>> parse_cache(std::string_view address);

}  // namespace lyo
