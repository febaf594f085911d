module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :state;
import :codec;

namespace lyo {
namespace {

Bytes part(const Bytes& file, const Section& section) noexcept { return file.slice(section.offset, section.length); }

/// Digest, then decode, one metadata section.
template <class T>
Result<T> read_section(const Bytes& file, const Section& section, std::string_view name) {
    if (section.length > format::max_metadata)
        return mismatch(ErrorCode::bad_section, name, "length", cat("at most ", format::max_metadata), section.length);
    const Bytes bytes = part(file, section);
    if (const Digest digest = tree_digest(bytes); digest != section.digest)
        return mismatch(ErrorCode::bad_digest, name, "digest", section.digest.hex(), digest.hex());
    auto value = codec::decode<T>(bytes);
    if (!value) return std::unexpected(std::move(value.error()).in(name));
    return value;
}

/// A device's code, which is used where it is.
Result<Bytes> read_code(const Bytes& file, const Section& section) {
    const std::string name = cat("code ", section.tag);
    if (section.length > format::max_code)
        return mismatch(ErrorCode::bad_section, name, "length", cat("at most ", format::max_code), section.length);
    Bytes code = part(file, section);
    if (const Digest digest = tree_digest(code); digest != section.digest)
        return mismatch(ErrorCode::bad_digest, name, "digest", section.digest.hex(), digest.hex());
    return code;
}

/// The sections that the manifest's targets call for, and no others: an image for "cpu", launches and code for others.
Result<> check_targets(const Manifest& manifest, std::span<const Section> sections) {
    using format::SectionKind;
    for (std::size_t i = 1; i < manifest.targets.size(); ++i)
        if (!(manifest.targets[i - 1] < manifest.targets[i]))
            return fail(ErrorCode::bad_value, cat("manifest.targets[", i, "]"), "targets are not sorted and distinct");
    for (const SectionKind kind : {SectionKind::image, SectionKind::launches, SectionKind::code}) {
        std::vector<std::uint32_t> needed, given;
        for (std::uint32_t tag = 0; tag < manifest.targets.size(); ++tag)
            if ((manifest.targets[tag] == "cpu") == (kind == SectionKind::image)) needed.push_back(tag);
        for (const Section& section : sections)
            if (section.kind == kind) given.push_back(section.tag);
        if (needed == given) continue;
        const auto list = [](const std::vector<std::uint32_t>& tags) {
            std::string out = "[";
            for (const std::uint32_t tag : tags) out += cat(out.size() > 1 ? ", " : "", tag);
            return out + "]";
        };
        return mismatch(ErrorCode::bad_section, "manifest.targets",
                        cat("tags of ", format::to_string(kind), " sections"), list(needed), list(given));
    }
    return {};
}

/// The index of the first leaf that differs, or none.
std::optional<std::size_t> first_bad_leaf(std::span<const std::byte> data, std::span<const Digest> leaves) {
    const std::size_t workers =
        leaves.size() < 32 ? 1 : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
    std::atomic<std::size_t> next{0}, bad{leaves.size()};
    const auto work = [&] {
        for (std::size_t i = next++; i < leaves.size(); i = next++) {
            const auto chunk = data.subspan(i * digest_chunk, std::min(digest_chunk, data.size() - i * digest_chunk));
            if (sha256(chunk) == leaves[i]) continue;
            std::size_t seen = bad.load();
            while (i < seen && !bad.compare_exchange_weak(seen, i)) {
            }
        }
    };
    {
        std::vector<std::jthread> threads;
        try {
            for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(work);
        } catch (const std::exception&) {
            // No more threads: those that there are do it.
        }
        work();
    }
    if (bad.load() == leaves.size()) return std::nullopt;
    return bad.load();
}

}  // namespace

Result<Artifact> Artifact::read(const std::string& path, const LoadOptions& options) {
    auto bytes = load_file(path);
    if (!bytes) return std::unexpected(bytes.error());
    auto artifact = check(std::move(*bytes), options);
    if (!artifact) return std::unexpected(std::move(artifact.error()).in(path));
    return artifact;
}

Result<Artifact> Artifact::check(Bytes bytes, const LoadOptions& options) try {
    auto state = std::make_shared<State>();
    state->bytes = std::move(bytes);
    const Bytes& file = state->bytes;
    auto sections = read_table(file, state->id);
    if (!sections) return std::unexpected(sections.error());
    state->sections = std::move(*sections);

    const Section* constants = nullptr;
    bool manifest = false, functions = false;
    for (const Section& section : state->sections) {
        switch (section.kind) {
            case format::SectionKind::manifest: {
                auto value = read_section<Manifest>(file, section, "manifest");
                if (!value) return std::unexpected(value.error());
                state->manifest = std::move(*value);
                manifest = true;
                break;
            }
            case format::SectionKind::functions: {
                auto value = read_section<FunctionTable>(file, section, "functions");
                if (!value) return std::unexpected(value.error());
                state->functions = std::move(*value);
                functions = true;
                break;
            }
            case format::SectionKind::image: {
                auto value = read_section<Image>(file, section, cat("image ", section.tag));
                if (!value) return std::unexpected(value.error());
                state->images.push_back(std::move(*value));
                break;
            }
            case format::SectionKind::launches: {
                auto value = read_section<DeviceImage>(file, section, cat("launches ", section.tag));
                if (!value) return std::unexpected(value.error());
                state->device_images.push_back(std::move(*value));
                break;
            }
            case format::SectionKind::code: {
                auto code = read_code(file, section);
                if (!code) return std::unexpected(code.error());
                state->device_code.push_back(std::move(*code));
                break;
            }
            case format::SectionKind::constants:
                constants = &section;
                break;
            case format::SectionKind::debug: {
                auto value = read_section<Debug>(file, section, "debug");
                if (!value) return std::unexpected(value.error());
                state->debug = std::move(*value);
                break;
            }
        }
    }
    if (!manifest) return fail(ErrorCode::bad_section, "section table", "there is no manifest");
    if (!functions) return fail(ErrorCode::bad_section, "section table", "there is no functions section");
    if (constants == nullptr) return fail(ErrorCode::bad_section, "section table", "there is no constants section");
    if (auto ok = check_targets(state->manifest, state->sections); !ok) return std::unexpected(ok.error());
    if (digest_root(state->manifest.constant_leaves) != constants->digest)
        return fail(ErrorCode::bad_digest, "constants", "the manifest's leaves do not give the section's digest");
    state->constants = part(file, *constants);
    if (auto valid = validate(state->manifest, state->functions, state->images, state->device_images,
                              state->device_code, state->constants);
        !valid)
        return std::unexpected(valid.error());
    state->trusted = options.verify == Verify::trusted;
    Artifact artifact(std::move(state));
    const bool eager = options.verify == Verify::eager ||
                       (options.verify == Verify::automatic && constants->length <= options.eager_limit);
    if (eager)
        if (auto verified = artifact.verify_constants(); !verified) return std::unexpected(verified.error());
    return artifact;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "artifact", "no memory to decode its metadata");
}

Result<> Artifact::verify_constants() const try {
    if (state_->trusted || state_->verified.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(state_->verify_mutex);
    if (state_->verified.load(std::memory_order_relaxed)) return {};
    if (!state_->verify_error) {
        if (const auto bad = first_bad_leaf(state_->constants, state_->manifest.constant_leaves))
            state_->verify_error = Error{ErrorCode::bad_digest,
                                         cat("the digest of bytes ", *bad * digest_chunk, " to ",
                                             std::min((*bad + 1) * digest_chunk, state_->constants.size()), " differs"),
                                         "constants"};
    }
    if (state_->verify_error) return std::unexpected(*state_->verify_error);
    state_->verified.store(true, std::memory_order_release);
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "constants", "no memory to verify them");
}

bool Artifact::constants_verified() const noexcept { return state_->verified.load(std::memory_order_acquire); }
const Bytes& Artifact::bytes() const noexcept { return state_->bytes; }
const Digest& Artifact::id() const noexcept { return state_->id; }
const Manifest& Artifact::manifest() const noexcept { return state_->manifest; }
const FunctionTable& Artifact::functions() const noexcept { return state_->functions; }
std::span<const Section> Artifact::sections() const noexcept { return state_->sections; }
const std::optional<Debug>& Artifact::debug() const noexcept { return state_->debug; }

const Image* Artifact::image(std::string_view target) const noexcept {
    return target != "cpu" || state_->images.empty() ? nullptr : state_->images.data();
}

std::optional<std::size_t> Artifact::State::device_index(std::string_view target) const noexcept {
    std::size_t index = 0;
    for (const std::string& t : manifest.targets) {
        if (t == "cpu") continue;
        if (t == target) return index;
        ++index;
    }
    return std::nullopt;
}

const DeviceImage* Artifact::device_image(std::string_view target) const noexcept {
    const auto i = state_->device_index(target);
    return i ? &state_->device_images[*i] : nullptr;
}

Bytes Artifact::device_code(std::string_view target) const noexcept {
    const auto i = state_->device_index(target);
    return i ? state_->device_code[*i] : Bytes();
}

Bytes Artifact::constant(std::size_t index) const noexcept {
    const Constant& c = state_->functions.constants[index];
    return state_->constants.slice(c.offset, byte_size(c).value_or(0));
}

std::string Artifact::to_json() const {
    std::string out = cat("{\n\"id\": ", json_text(id().hex()), ",\n\"bytes\": ", bytes().size(),
                          ",\n\"format_version\": ", format::version, ",\n\"sections\": [");
    for (const Section& s : sections())
        out += cat(&s == sections().data() ? "" : ",", "\n  {\"kind\": ", json_text(format::to_string(s.kind)),
                   ", \"tag\": ", s.tag, ", \"offset\": ", s.offset, ", \"length\": ", s.length,
                   ", \"digest\": ", json_text(s.digest.hex()), "}");
    out += "\n],\n\"manifest\": ";
    codec::print(out, manifest(), 0);
    out += ",\n\"functions\": ";
    codec::print(out, functions(), 0);
    out += ",\n\"images\": ";
    codec::print(out, state_->images, 0);
    out += ",\n\"launches\": ";
    codec::print(out, state_->device_images, 0);
    if (debug()) {
        out += ",\n\"debug\": ";
        codec::print(out, *debug(), 0);
    }
    return out + "\n}\n";
}

}  // namespace lyo
