// What is in the cache, how it came there, and how it gets elsewhere.
module lyo.cli;

import lyo.prelude;
import lyo;

namespace lyo::cli {
namespace {

/// The cache, which must be one. Errors: invalid_argument.
Result<Cache> some_cache(const std::string& address, const Console& console) {
    auto cache = open_cache(address, console);
    if (!cache) return std::unexpected(cache.error());
    if (!*cache) return fail(ErrorCode::invalid_argument, "--cache", "the cache is off: expected a folder, got none");
    return std::move(**cache);
}

/// The key that begins so, as `ls` prints them. Errors: invalid_argument (none, or several, do).
Result<Digest> find_key(const LocalStore& store, const std::string& text) {
    if (text.size() == 64) return parse_digest(text);
    const auto entries = store.list();
    if (!entries) return std::unexpected(entries.error());
    std::optional<Digest> found;
    for (const LocalEntry& entry : *entries) {
        if (!entry.key.hex().starts_with(text)) continue;
        if (found) return fail(ErrorCode::invalid_argument, text, "more than one key begins so");
        found = entry.key;
    }
    if (!found) return fail(ErrorCode::invalid_argument, text, "no key begins so");
    return *found;
}

std::string value_of(const CacheKey& key, std::string_view name) {
    for (const KeyPart& part : key.parts())
        if (part.name == name) return part.value;
    return "";
}

/// Digests shortened: they are for telling apart, not for copying.
std::string shown(const std::string& value) {
    if (value.empty()) return "nothing";
    std::string out;
    for (std::size_t i = 0; i < value.size();) {
        const std::size_t end = std::min(value.find(' ', i), value.size());
        const std::string_view word = std::string_view(value).substr(i, end - i);
        out += cat(i > 0 ? " " : "", word.size() == 64 ? word.substr(0, 12) : word);
        i = end + 1;
    }
    return out;
}

Result<CacheKey> key_of(const CacheArgs& args) {
    const auto graph = import_pt2_file(args.model);
    if (!graph) return std::unexpected(graph.error());
    auto key = cache_key(*graph, options_of(args));
    if (!key) return std::unexpected(std::move(key.error()).in(args.model));
    return key;
}

bool is_server(const std::string& place) { return place.find("://") != std::string::npos; }

/// Every entry of the local store in one file, sorted by key.
Result<std::uint64_t> push_to_file(const Cache& cache, const std::string& path) {
    const auto entries = cache.local().list();
    if (!entries) return std::unexpected(entries.error());
    std::vector<Bytes> sealed;
    for (const LocalEntry& entry : *entries) {
        const auto checked = cache.local().get(entry.key);
        if (!checked) return std::unexpected(checked.error());
        if (!*checked) continue;
        auto bytes = seal_entry((*checked)->key, (*checked)->value);
        if (!bytes) return std::unexpected(bytes.error());
        sealed.push_back(std::move(*bytes));
    }
    const auto archive = EntryArchive::make(sealed);
    if (!archive) return std::unexpected(archive.error());
    if (auto ok = write_file(path, *archive); !ok) return std::unexpected(ok.error());
    return sealed.size();
}

Result<std::uint64_t> pull_from_file(const Cache& cache, const std::string& path) {
    auto bytes = load_file(path);
    if (!bytes) return std::unexpected(bytes.error());
    const auto archive = EntryArchive::open(std::move(*bytes));
    if (!archive) return std::unexpected(Error(archive.error()).in(path));
    // Nothing is taken from an archive that is damaged anywhere.
    for (std::size_t i = 0; i < archive->size(); ++i)
        if (const auto entry = archive->entry(i); !entry)
            return std::unexpected(Error(entry.error()).in(cat(path, ", entry ", i)));
    const auto there = cache.local().list();
    if (!there) return std::unexpected(there.error());
    std::set<Digest> known;
    for (const LocalEntry& entry : *there) known.insert(entry.key);
    std::uint64_t copied = 0;
    for (std::size_t i = 0; i < archive->size(); ++i) {
        if (known.contains(archive->key(i))) continue;
        if (auto ok = cache.local().put_sealed(archive->key(i), archive->sealed(i)); !ok)
            return std::unexpected(ok.error());
        ++copied;
    }
    return copied;
}

int move_entries(const CacheArgs& args, const Console& console, bool push) {
    const std::string address =
        is_server(args.other) ? cat(args.cache, args.cache.empty() ? "" : ",", args.other) : args.cache;
    const auto cache = some_cache(address, console);
    if (!cache) return console.fail(cache.error());
    const auto copied = is_server(args.other) ? (push ? cache->push() : cache->pull())
                        : push                ? push_to_file(*cache, args.other)
                                              : pull_from_file(*cache, args.other);
    if (!copied) return console.fail(copied.error());
    if (console.json)
        console.print(cat("{\"copied\": ", *copied, "}"));
    else
        console.print(
            cat(*copied, *copied == 1 ? " entry " : " entries ", push ? "pushed to " : "pulled from ", args.other));
    return done;
}

}  // namespace

Result<std::optional<Cache>> open_cache(const std::string& address, const Console& console) {
    auto options = parse_cache(address);
    if (!options) return std::unexpected(options.error());
    if (!*options) return std::optional<Cache>();
    (*options)->report = [console](const Error& error) { console.note(cat("lyo: warning: ", error.to_string())); };
    auto cache = Cache::open(std::move(**options));
    if (!cache) return std::unexpected(cache.error());
    return std::optional<Cache>(std::move(*cache));
}

int cache_path(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    console.print(cache->local().path());
    return done;
}

int cache_ls(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto entries = cache->local().list();
    if (!entries) return console.fail(entries.error());
    std::string json = "[";
    for (const LocalEntry& entry : *entries) {
        const auto head = cache->local().head(entry.key);
        const std::string targets = head ? value_of(head->key, "targets") : "";
        if (!console.json) {
            console.print(cat(entry.key.hex(), " ", entry.bytes, " bytes ",
                              !head             ? "damaged"
                              : targets.empty() ? "?"
                                                : targets));
            continue;
        }
        json += cat(json.size() > 1 ? ", " : "", "{\"key\": ", json_text(entry.key.hex()), ", \"bytes\": ", entry.bytes,
                    ", \"used_ns\": ", entry.used_ns, ", \"parts\": {");
        bool first = true;
        if (head)
            for (const KeyPart& part : head->key.parts())
                json += cat(std::exchange(first, false) ? "" : ", ", json_text(part.name), ": ", json_text(part.value));
        json += "}}";
    }
    if (console.json) console.print(json + "]");
    return done;
}

int cache_stat(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto usage = cache->local().usage();
    if (!usage) return console.fail(usage.error());
    if (!args.prometheus.empty()) {
        const std::string text = to_prometheus(usage->totals, usage->entries, usage->bytes);
        if (auto ok = write_file(args.prometheus, std::as_bytes(std::span(text))); !ok) return console.fail(ok.error());
    }
    const std::vector<std::pair<std::string_view, std::uint64_t>> sizes = {{"entries", usage->entries},
                                                                           {"bytes", usage->bytes},
                                                                           {"max_bytes", usage->max_bytes},
                                                                           {"damaged", usage->damaged},
                                                                           {"damaged_bytes", usage->damaged_bytes}};
    std::string json = cat("{\"path\": ", json_text(cache->local().path()));
    if (!console.json) console.print(cat("path ", cache->local().path()));
    const auto say = [&](std::string_view name, std::uint64_t value) {
        if (console.json)
            json += cat(", ", json_text(name), ": ", value);
        else
            console.print(cat(name, " ", value));
    };
    for (const auto& [name, value] : sizes) say(name, value);
    for (std::size_t i = 0; i < counter_count; ++i) say(counter_names[i], usage->totals[i]);
    if (console.json) console.print(json + "}");
    return done;
}

int cache_gc(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto usage = cache->local().usage();
    if (!usage) return console.fail(usage.error());
    const std::uint64_t limit =
        args.max_bytes.value_or(usage->max_bytes == 0 ? std::numeric_limits<std::uint64_t>::max() : usage->max_bytes);
    const auto removed = cache->local().collect(limit);
    if (!removed) return console.fail(removed.error());
    console.print(console.json ? cat("{\"removed\": ", *removed, "}")
                               : cat(*removed, *removed == 1 ? " entry removed" : " entries removed"));
    return done;
}

int cache_get(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto key = find_key(cache->local(), args.key);
    if (!key) return console.fail(key.error());
    const auto entry = cache->local().get(*key);
    if (!entry) return console.fail(entry.error());
    if (!*entry) {
        console.fail({ErrorCode::file, "the cache has no such entry", key->hex()});
        return no;
    }
    if (auto ok = write_file(args.file, (*entry)->value); !ok) return console.fail(ok.error());
    return done;
}

int cache_put(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto artifact = Artifact::read(args.file, {.verify = Verify::eager});
    if (!artifact) return console.fail(artifact.error());
    CacheArgs as_compiled = args;
    as_compiled.targets = artifact->manifest().targets;
    const auto key = key_of(as_compiled);
    if (!key) return console.fail(key.error());
    if (auto ok = cache->put(*key, artifact->bytes()); !ok) return console.fail(ok.error());
    console.print(key->digest().hex());
    return done;
}

int cache_rm(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto key = find_key(cache->local(), args.key);
    if (!key) return console.fail(key.error());
    const auto removed = cache->local().remove(*key);
    if (!removed) return console.fail(removed.error());
    if (!*removed) console.fail({ErrorCode::file, "the cache has no such entry", key->hex()});
    return *removed ? done : no;
}

int cache_push(const CacheArgs& args, const Console& console) { return move_entries(args, console, true); }
int cache_pull(const CacheArgs& args, const Console& console) { return move_entries(args, console, false); }

int cache_why(const CacheArgs& args, const Console& console) {
    const auto cache = some_cache(args.cache, console);
    if (!cache) return console.fail(cache.error());
    const auto key = key_of(args);
    if (!key) return console.fail(key.error());
    const auto entries = cache->local().list();
    if (!entries) return console.fail(entries.error());
    // The nearest entry: the one that differs in the fewest parts; of several the youngest.
    std::optional<std::vector<KeyDifference>> nearest;
    LocalEntry which;
    for (const LocalEntry& entry : *entries) {
        const auto head = cache->local().head(entry.key);
        if (!head) continue;
        auto difference = differences(*key, head->key);
        if (nearest && std::pair(difference.size(), -entry.used_ns) >= std::pair(nearest->size(), -which.used_ns))
            continue;
        nearest = std::move(difference);
        which = entry;
    }
    const bool hit = nearest && nearest->empty();
    if (console.json) {
        std::string json = cat("{\"key\": ", json_text(key->digest().hex()), ", \"hit\": ", hit ? "true" : "false");
        if (nearest && !hit) {
            json += cat(", \"nearest\": ", json_text(which.key.hex()), ", \"differences\": [");
            for (std::size_t i = 0; i < nearest->size(); ++i)
                json += cat(i > 0 ? ", " : "", "{\"part\": ", json_text((*nearest)[i].name),
                            ", \"wanted\": ", json_text((*nearest)[i].wanted),
                            ", \"found\": ", json_text((*nearest)[i].found), "}");
            json += "]";
        }
        console.print(json + "}");
    } else if (hit) {
        console.print(cat("hit: ", key->digest().hex()));
    } else if (!nearest) {
        console.print(cat("miss: ", key->digest().hex(), ": the cache is empty"));
    } else {
        console.print(cat("miss: ", key->digest().hex(), ": the nearest entry is ", which.key.hex()));
        for (const KeyDifference& d : *nearest)
            console.print(cat("  ", d.name, ": expected ", shown(d.wanted), ", the entry has ", shown(d.found)));
    }
    return hit ? done : no;
}

}  // namespace lyo::cli
