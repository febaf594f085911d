module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :state;
import :codec;

namespace lyo {
namespace {

void put(std::span<std::byte> out, std::size_t at, std::uint64_t value, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<std::byte>(value >> (8 * i));
}

/// A section's content is one buffer (metadata), or the constants laid out at their offsets.
struct Plan {
    Section section;
    std::vector<std::byte> content;
};

Result<> copy_constants(std::span<std::byte> out, const FunctionTable& functions,
                        std::span<const std::span<const std::byte>> constants) {
    for (std::size_t i = 0; i < constants.size(); ++i)
        if (!constants[i].empty())
            std::memcpy(out.data() + functions.constants[i].offset, constants[i].data(), constants[i].size());
    return {};
}

/// Writes the file around the constants' bytes, which `fill` puts in place.
Result<Bytes> assemble(Manifest manifest, const FunctionTable& functions, std::span<const Image> images,
                       std::span<const DeviceImage> device_images,
                       std::span<const std::span<const std::byte>> device_code, const std::optional<Debug>& debug,
                       std::uint64_t constants_length, const std::function<Result<>(std::span<std::byte>)>& fill) {
    std::vector<Plan> plans;
    const auto add = [&](format::SectionKind kind, std::uint32_t tag, std::vector<std::byte> content) {
        const std::uint64_t size = content.size();
        plans.push_back({{kind, tag, 0, size, {}}, std::move(content)});
    };
    // The leaves' number is known before their values, so the manifest's size is final.
    manifest.constant_leaves.resize((constants_length + digest_chunk - 1) / digest_chunk);
    add(format::SectionKind::manifest, 0, codec::encode(manifest));
    add(format::SectionKind::functions, 0, codec::encode(functions));
    // An image for "cpu", launches and code for every other target; all of a kind stand together.
    std::vector<std::uint32_t> device_tags;
    for (std::uint32_t tag = 0; tag < manifest.targets.size(); ++tag) {
        if (manifest.targets[tag] != "cpu")
            device_tags.push_back(tag);
        else if (!images.empty())
            add(format::SectionKind::image, tag, codec::encode(images[0]));
    }
    add(format::SectionKind::constants, 0, {});
    plans.back().section.length = constants_length;
    if (debug) add(format::SectionKind::debug, 0, codec::encode(*debug));
    for (std::size_t i = 0; i < device_tags.size(); ++i)
        add(format::SectionKind::launches, device_tags[i], codec::encode(device_images[i]));
    for (std::size_t i = 0; i < device_tags.size(); ++i)
        add(format::SectionKind::code, device_tags[i], {device_code[i].begin(), device_code[i].end()});

    const std::size_t table_end = format::header_size + plans.size() * format::entry_size;
    std::uint64_t end = table_end;
    for (Plan& plan : plans) {
        const std::uint64_t alignment = plan.section.kind == format::SectionKind::constants
                                            ? format::constants_alignment
                                            : format::section_alignment;
        const auto start = checked_align(end, alignment);
        const auto stop = start ? checked_add(*start, plan.section.length) : std::nullopt;
        if (!stop) return fail(ErrorCode::bad_value, "artifact", "longer than 64 bits can say");
        plan.section.offset = *start;
        end = *stop;
    }

    return Bytes::make(end, [&](std::span<std::byte> out) -> Result<> {
        for (Plan& plan : plans) {
            const auto place = out.subspan(plan.section.offset, plan.section.length);
            if (plan.section.kind == format::SectionKind::constants) {
                if (auto filled = fill(place); !filled) return filled;
                manifest.constant_leaves = digest_leaves(place);
                plan.section.digest = digest_root(manifest.constant_leaves);
            }
        }
        plans[0].content = codec::encode(manifest);
        for (std::size_t i = 0; i < plans.size(); ++i) {
            Plan& plan = plans[i];
            if (plan.section.kind != format::SectionKind::constants) {
                std::copy(plan.content.begin(), plan.content.end(),
                          out.begin() + static_cast<std::ptrdiff_t>(plan.section.offset));
                plan.section.digest = tree_digest(plan.content);
            }
            const std::size_t at = format::header_size + i * format::entry_size;
            put(out, at, static_cast<std::uint32_t>(plan.section.kind), 4);
            put(out, at + 4, plan.section.tag, 4);
            put(out, at + 8, plan.section.offset, 8);
            put(out, at + 16, plan.section.length, 8);
            std::memcpy(out.data() + at + 24, plan.section.digest.bytes.data(), 32);
        }
        std::memcpy(out.data(), format::magic.data(), format::magic.size());
        put(out, 8, format::version, 4);
        put(out, 12, plans.size(), 4);
        put(out, 16, end, 8);
        const Digest root = sha256(std::span<const std::byte>(out.first(table_end)));
        std::memcpy(out.data() + 24, root.bytes.data(), 32);
        return {};
    });
}

}  // namespace

Result<Bytes> Artifact::encode(ArtifactContents contents) try {
    FunctionTable& functions = contents.functions;
    if (contents.constants.size() != functions.constants.size())
        return mismatch(ErrorCode::bad_value, "constants", "count", functions.constants.size(),
                        contents.constants.size());
    const bool cpu = std::find(contents.manifest.targets.begin(), contents.manifest.targets.end(), "cpu") !=
                     contents.manifest.targets.end();
    const std::size_t others = contents.manifest.targets.size() - (cpu ? 1 : 0);
    if (contents.images.size() != (cpu ? 1u : 0u) || contents.device_images.size() != others ||
        contents.device_code.size() != others)
        return fail(ErrorCode::bad_value, "manifest.targets", "do not fit the images that are given");
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < functions.constants.size(); ++i) {
        Constant& constant = functions.constants[i];
        const auto size = byte_size(constant);
        if (!size || *size != contents.constants[i].size())
            return mismatch(ErrorCode::bad_value, cat("constants[", i, "]"), "bytes", size.value_or(0),
                            contents.constants[i].size());
        const auto start = checked_align(end, format::constant_alignment);
        const auto stop = start ? checked_add(*start, *size) : std::nullopt;
        if (!stop) return fail(ErrorCode::bad_value, "constants", "longer than 64 bits can say");
        constant.offset = *start;
        end = *stop;
    }
    auto bytes = assemble(contents.manifest, functions, contents.images, contents.device_images, contents.device_code,
                          contents.debug, end,
                          [&](std::span<std::byte> out) { return copy_constants(out, functions, contents.constants); });
    if (!bytes) return bytes;
    // The writer's output goes through the reader's door: what would not load is never given out.
    if (auto readable = check(*bytes, {Verify::trusted}); !readable) return std::unexpected(readable.error());
    return bytes;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "artifact", "no memory to encode it");
}

Result<Bytes> Artifact::encode_again() const try {
    const std::vector<std::span<const std::byte>> code(state_->device_code.begin(), state_->device_code.end());
    return assemble(manifest(), functions(), state_->images, state_->device_images, code, debug(),
                    state_->constants.size(), [&](std::span<std::byte> out) -> Result<> {
                        for (std::size_t i = 0; i < functions().constants.size(); ++i) {
                            const Bytes data = constant(i);
                            if (!data.empty())
                                std::memcpy(out.data() + functions().constants[i].offset, data.data(), data.size());
                        }
                        return {};
                    });
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "artifact", "no memory to encode it");
}

}  // namespace lyo
