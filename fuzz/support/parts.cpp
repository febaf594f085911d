module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {
namespace {

constexpr std::size_t header_size = 56, entry_size = 56, root_at = 24;

/// One member function a type, in the order of FORMAT.md.
struct Writer {
    Buffer bytes;

    void put_unsigned(std::uint64_t value) {
        while (value > 127) {
            bytes.push_back(static_cast<std::byte>((value & 127) + 128));
            value /= 128;
        }
        bytes.push_back(static_cast<std::byte>(value));
    }
    void put_signed(std::int64_t value) {
        const auto bits = static_cast<std::uint64_t>(value);
        put_unsigned((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
    }
    template <class Enum>
    void put_byte(Enum value) {
        bytes.push_back(static_cast<std::byte>(value));
    }
    void put(std::string_view text) {
        put_unsigned(text.size());
        for (const char c : text) put_byte(c);
    }
    void put(std::uint32_t value) { put_unsigned(value); }
    void put(const std::string& text) { put(std::string_view(text)); }
    void put(const Digest& digest) {
        for (const std::uint8_t b : digest.bytes) put_byte(b);
    }
    void put(std::uint64_t value) { put_unsigned(value); }

    template <class Item>
    void put_list(const std::vector<Item>& items) {
        put_unsigned(items.size());
        for (const Item& item : items) put(item);
    }

    void put(const Expr& e) {
        put_byte(e.op);
        put_signed(e.value);
        put(e.a);
        put(e.b);
    }
    void put(const Symbol& s) {
        put(s.name);
        put_signed(s.min);
        put_signed(s.max);
    }
    void put(const TensorSpec& t) {
        put(t.name);
        put_byte(t.dtype);
        put_list(t.shape);
    }
    void put(const Guard& g) {
        put_byte(g.kind);
        put(g.left);
        put(g.right);
    }
    void put(const Constant& c) {
        put(c.name);
        put_byte(c.dtype);
        put_list(c.shape);
        put_unsigned(c.offset);
    }
    void put(const FunctionSpec& f) {
        put(f.name);
        put_list(f.symbols);
        put_list(f.exprs);
        put_list(f.inputs);
        put_list(f.outputs);
        put_list(f.guards);
    }
    void put(const Operand& o) {
        put_byte(o.kind);
        put_byte(o.dtype);
        put_byte(o.space);
        put(o.index);
        put(o.offset);
        put_list(o.strides);
    }
    void put(const Instr& i) {
        put_byte(i.op);
        put_byte(i.cls);
        put_byte(i.from);
        put_byte(i.to);
        for (const std::uint16_t field : {i.dst, i.a, i.b, i.c}) put_unsigned(field);
    }
    void put(const Phase& p) {
        put_byte(p.outer ? 1 : 0);
        put_list(p.instrs);
    }
    void put(const Loop& l) {
        put_list(l.extents);
        put(l.outer_rank);
        put_list(l.operands);
        put_list(l.constants);
        put_list(l.phases);
    }
    void put(const Gemm& g) {
        put_list(g.batch);
        put(g.m);
        put(g.n);
        put(g.k);
        put(g.a);
        put(g.b);
        put(g.epilogue);
    }
    void put(const Step& step) {
        put_byte(step.index());
        if (const auto* loop = std::get_if<Loop>(&step)) put(*loop);
        if (const auto* gemm = std::get_if<Gemm>(&step)) put(*gemm);
    }
    void put(const Program& p) {
        put_list(p.exprs);
        put_list(p.slots);
        put_list(p.steps);
    }
    void put(const lyo::Buffer& b) {
        put_byte(b.space);
        put(b.index);
        put(b.offset);
    }
    void put(const Launch& l) {
        put(l.kernel);
        put(l.blocks);
        put(l.threads);
        put_list(l.buffers);
        put_list(l.words);
    }
    void put(const Product& p) {
        put_byte(p.dtype);
        put_byte(p.result);
        for (const lyo::Buffer* b : {&p.a, &p.b, &p.c}) put(*b);
        for (const std::uint32_t e : {p.batch, p.m, p.n, p.k, p.a_batch, p.a_m, p.a_k, p.b_batch, p.b_k, p.b_n}) put(e);
    }
    void put(const DeviceStep& step) {
        put_byte(step.index());
        if (const auto* launch = std::get_if<Launch>(&step)) put(*launch);
        if (const auto* product = std::get_if<Product>(&step)) put(*product);
    }
    void put(const DeviceProgram& p) {
        put_list(p.exprs);
        put_list(p.slots);
        put_list(p.steps);
    }
};

std::uint64_t align(std::uint64_t value, std::uint64_t to) noexcept { return (value + to - 1) / to * to; }

/// The part of the file that an entry names, or nothing where it names no part of it.
std::span<std::byte> part(std::span<std::byte> file, const Section& s) noexcept {
    if (s.offset > file.size() || s.length > file.size() - s.offset) return {};
    return file.subspan(s.offset, s.length);
}

}  // namespace

Buffer encode(const Manifest& m) {
    Writer to;
    to.put(m.producer);
    to.put(m.abi);
    to.put_list(m.targets);
    to.put_list(m.constant_leaves);
    return to.bytes;
}
Buffer encode(const FunctionTable& t) {
    Writer to;
    to.put_list(t.functions);
    to.put_list(t.constants);
    return to.bytes;
}
Buffer encode(const Image& image) {
    Writer to;
    to.put_list(image.programs);
    return to.bytes;
}
Buffer encode(const DeviceImage& image) {
    Writer to;
    to.put_list(image.programs);
    return to.bytes;
}
Buffer encode(const Debug& debug) {
    Writer to;
    to.put(debug.graph);
    return to.bytes;
}

Parts take_apart(const Artifact& artifact) {
    Parts parts;
    parts.manifest = artifact.manifest();
    parts.functions = artifact.functions();
    parts.debug = artifact.debug();
    const auto copy = [](const Bytes& bytes) { return Buffer(bytes.span().begin(), bytes.span().end()); };
    for (const std::string& target : parts.manifest.targets) {
        if (target == "cpu") {
            parts.images.push_back(*artifact.image(target));
        } else {
            parts.device_images.push_back(*artifact.device_image(target));
            parts.device_code.push_back(copy(artifact.device_code(target)));
        }
    }
    for (std::size_t i = 0; i < parts.functions.constants.size(); ++i)
        parts.constants.push_back(copy(artifact.constant(i)));
    return parts;
}

ArtifactContents contents_of(const Parts& parts) {
    ArtifactContents contents{parts.manifest, parts.functions, parts.images, parts.device_images, {}, parts.debug, {}};
    for (const Buffer& code : parts.device_code) contents.device_code.emplace_back(code);
    for (const Buffer& data : parts.constants) contents.constants.emplace_back(data);
    return contents;
}

std::vector<RawSection> sections_of(Parts parts) {
    Buffer constants;
    for (std::size_t i = 0; i < parts.constants.size(); ++i) {
        constants.resize(align(constants.size(), 64));
        if (i < parts.functions.constants.size()) parts.functions.constants[i].offset = constants.size();
        constants.insert(constants.end(), parts.constants[i].begin(), parts.constants[i].end());
    }
    parts.manifest.constant_leaves = digest_leaves(constants);
    std::vector<RawSection> out;
    out.push_back({1, 0, encode(parts.manifest), {}, {}});
    out.push_back({2, 0, encode(parts.functions), {}, {}});
    // Each kind's sections have, in order, the indices of the targets that call for one, as far as there are targets.
    std::vector<std::uint32_t> cpu, others;
    for (std::uint32_t i = 0; i < parts.manifest.targets.size(); ++i)
        (parts.manifest.targets[i] == "cpu" ? cpu : others).push_back(i);
    const auto add = [&](std::uint32_t kind, const auto& items, const std::vector<std::uint32_t>& tags) {
        for (std::uint32_t i = 0; i < items.size(); ++i) {
            RawSection& section =
                out.emplace_back(kind, i < tags.size() ? tags[i] : i, Buffer(), std::nullopt, std::nullopt);
            if constexpr (requires { encode(items[i]); })
                section.content = encode(items[i]);
            else
                section.content = items[i];
        }
    };
    add(3, parts.images, cpu);
    out.push_back({4, 0, std::move(constants), {}, {}});
    if (parts.debug) out.push_back({5, 0, encode(*parts.debug), {}, {}});
    add(6, parts.device_images, others);
    add(7, parts.device_code, others);
    return out;
}

Buffer assemble(std::span<const RawSection> sections) {
    Buffer file(header_size + sections.size() * entry_size);
    constexpr std::uint8_t magic[] = {0x89, 0x4c, 0x59, 0x4f, 0x0d, 0x0a, 0x1a, 0x0a};
    std::memcpy(file.data(), magic, sizeof magic);
    set(file, 8, 1, 4);
    set(file, 12, sections.size(), 4);
    for (std::size_t i = 0; i < sections.size(); ++i) {
        const RawSection& s = sections[i];
        const std::uint64_t start = align(file.size(), s.kind == 4 ? 4096 : 64);
        file.resize(start);
        file.insert(file.end(), s.content.begin(), s.content.end());
        const std::size_t at = header_size + i * entry_size;
        set(file, at, s.kind, 4);
        set(file, at + 4, s.tag, 4);
        set(file, at + 8, s.offset.value_or(start), 8);
        set(file, at + 16, s.length.value_or(s.content.size()), 8);
        const Digest digest = tree_digest(s.content);
        std::memcpy(file.data() + at + 24, digest.bytes.data(), 32);
    }
    set(file, 16, file.size(), 8);
    const Digest root = sha256(std::span<const std::byte>(file).first(header_size + sections.size() * entry_size));
    std::memcpy(file.data() + root_at, root.bytes.data(), 32);
    return file;
}

Buffer seal(const Parts& parts) { return assemble(sections_of(parts)); }

std::uint64_t get(std::span<const std::byte> file, std::size_t at, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value += std::to_integer<std::uint64_t>(file[at + i]) << (8 * i);
    return value;
}

void set(std::span<std::byte> file, std::size_t at, std::uint64_t value, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<std::byte>(value >> (8 * i));
}

std::vector<Section> table_of(std::span<const std::byte> file) {
    std::vector<Section> out;
    if (file.size() < header_size) return out;
    const auto count = std::min<std::uint64_t>(get(file, 12, 4), (file.size() - header_size) / entry_size);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = header_size + i * entry_size;
        Section& s = out.emplace_back();
        s.kind = static_cast<format::SectionKind>(get(file, at, 4));
        s.tag = static_cast<std::uint32_t>(get(file, at + 4, 4));
        s.offset = get(file, at + 8, 8);
        s.length = get(file, at + 16, 8);
        std::memcpy(s.digest.bytes.data(), file.data() + at + 24, 32);
    }
    return out;
}

void reseal(std::span<std::byte> file) {
    const std::vector<Section> table = table_of(file);
    const auto section = [&](format::SectionKind kind) -> std::span<std::byte> {
        for (const Section& s : table)
            if (s.kind == kind) return part(file, s);
        return {};
    };
    // The leaves are the manifest's last field; they are repaired where their number is right.
    const std::vector<Digest> leaves = digest_leaves(section(format::SectionKind::constants));
    const std::span<std::byte> manifest = section(format::SectionKind::manifest);
    const std::size_t size = leaves.size() * 32;
    if (leaves.size() < 128 && manifest.size() > size &&
        manifest[manifest.size() - size - 1] == static_cast<std::byte>(leaves.size()) && size > 0)
        std::memcpy(manifest.data() + manifest.size() - size, leaves.data(), size);
    for (std::size_t i = 0; i < table.size(); ++i) {
        const std::span<std::byte> bytes = part(file, table[i]);
        if (bytes.size() != table[i].length) continue;
        const Digest digest = tree_digest(bytes);
        std::memcpy(file.data() + header_size + i * entry_size + 24, digest.bytes.data(), 32);
    }
    if (file.size() < header_size) return;
    const std::size_t end = header_size + table.size() * entry_size;
    std::memset(file.data() + root_at, 0, 32);
    const Digest root = sha256(std::span<const std::byte>(file).first(end));
    std::memcpy(file.data() + root_at, root.bytes.data(), 32);
}

Bytes exactly(std::span<const std::byte> data) {
    auto copy = std::make_shared<std::unique_ptr<std::byte[]>>(std::make_unique<std::byte[]>(data.size()));
    std::byte* at = copy->get();
    if (!data.empty()) std::memcpy(at, data.data(), data.size());
    return Bytes::share(std::move(copy), {at, data.size()});
}

}  // namespace lyo::fuzz
