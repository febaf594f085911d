module lyo.fuzz;

import lyo.prelude;
import lyo.base;
import lyo.artifact;

namespace lyo::fuzz {
namespace {

constexpr std::size_t header_size = 56, entry_size = 56;
// Where an entry's fields are.
constexpr std::size_t kind_at = 0, tag_at = 4, offset_at = 8, length_at = 16, digest_at = 24;

std::size_t entry(std::size_t section, std::size_t field) { return header_size + section * entry_size + field; }

class Cases {
  public:
    /// A change of the finished file, its digests repaired or not.
    void bytes(std::string name, ErrorCode code, std::string expected, bool repair,
               const std::function<void(Buffer&)>& change) {
        Buffer file = seal(small_parts());
        change(file);
        if (repair) reseal(file);
        out.push_back({std::move(name), std::move(file), code, std::move(expected)});
    }
    /// A change of the list of sections.
    void sections(std::string name, ErrorCode code, std::string expected,
                  const std::function<void(std::vector<RawSection>&)>& change) {
        std::vector<RawSection> raw = sections_of(small_parts());
        change(raw);
        out.push_back({std::move(name), assemble(raw), code, std::move(expected)});
    }
    std::vector<Hostile> out;
};

}  // namespace

std::vector<Hostile> hostile_files() {
    using enum ErrorCode;
    Cases c;
    c.bytes("header-empty", truncated, "header: bytes: expected at least 56, got 0", false,
            [](Buffer& f) { f.clear(); });
    c.bytes("header-short", truncated, "header: bytes: expected at least 56, got 55", false,
            [](Buffer& f) { f.resize(55); });
    c.bytes("header-magic", bad_magic, "header: not a lyo artifact", true, [](Buffer& f) { f[0] = std::byte{9}; });
    c.bytes("header-version", unsupported_version, "header: format version: expected 1, got 2", true,
            [](Buffer& f) { set(f, 8, 2, 4); });
    c.bytes("header-many-sections", bad_header, "header: section count: expected at most 64, got 4294967295", true,
            [](Buffer& f) { set(f, 12, 0xffffffff, 4); });
    c.bytes("header-length-small", bad_header, "header: length of the file", true,
            [](Buffer& f) { set(f, 16, f.size() - 1, 8); });
    c.bytes("header-length-large", truncated, "header: length of the file", true,
            [](Buffer& f) { set(f, 16, ~std::uint64_t{0}, 8); });
    c.bytes("header-table-beyond-file", truncated, "section table: bytes: expected 3640", true, [](Buffer& f) {
        f.resize(200);
        set(f, 12, 64, 4);
        set(f, 16, f.size(), 8);
    });
    c.bytes("header-root-digest", bad_digest, "header: root digest", false, [](Buffer& f) { f[24] ^= std::byte{1}; });
    c.bytes("file-truncated", truncated, "header: length of the file", false, [](Buffer& f) { f.pop_back(); });
    c.bytes("file-trailing-byte", bad_section, "section table: 1 bytes follow the last section", true, [](Buffer& f) {
        f.push_back(std::byte{0});
        set(f, 16, f.size(), 8);
    });
    c.bytes("file-no-sections", bad_section, "section table: there is no manifest", false,
            [](Buffer& f) { f = assemble({}); });

    c.bytes("table-unknown-kind", bad_section, "section of kind 8: this version has no such section", true,
            [](Buffer& f) { set(f, entry(4, kind_at), 8, 4); });
    c.bytes("table-kind-0", bad_section, "section of kind 0: this version has no such section", true,
            [](Buffer& f) { set(f, entry(0, kind_at), 0, 4); });
    c.bytes("table-tag", bad_section, "section manifest: tag: expected 0, got 7", true,
            [](Buffer& f) { set(f, entry(0, tag_at), 7, 4); });
    c.bytes("table-image-tag", bad_section, "manifest.targets: tags of image sections: expected [0], got [1]", true,
            [](Buffer& f) { set(f, entry(2, tag_at), 1, 4); });
    c.bytes("table-offset-in-table", bad_section, "section manifest: offset", true,
            [](Buffer& f) { set(f, entry(0, offset_at), 0, 8); });
    c.bytes("table-offset-unaligned", bad_section, "section functions: offset", true,
            [](Buffer& f) { set(f, entry(1, offset_at), get(f, entry(1, offset_at), 8) + 1, 8); });
    c.bytes("table-offset-beyond-file", bad_section, "section functions: offset", true,
            [](Buffer& f) { set(f, entry(1, offset_at), std::uint64_t{1} << 40, 8); });
    c.bytes("table-overlap", bad_section, "section functions: offset", true,
            [](Buffer& f) { set(f, entry(1, offset_at), get(f, entry(0, offset_at), 8), 8); });
    c.bytes("table-length-beyond-file", bad_section, "section debug: end: expected at most", true,
            [](Buffer& f) { set(f, entry(4, length_at), f.size(), 8); });
    c.bytes("table-length-wraps", bad_section, "section debug: end: expected at most", true,
            [](Buffer& f) { set(f, entry(4, length_at), ~std::uint64_t{0} - 100, 8); });
    c.bytes("table-length-then-wrap", bad_section, "section functions: end: expected at most", true,
            [](Buffer& f) { set(f, entry(1, length_at), ~std::uint64_t{0} - get(f, entry(1, offset_at), 8), 8); });
    c.bytes("padding-not-zero", bad_section, "section functions: padding byte", true,
            [](Buffer& f) { f[get(f, entry(0, offset_at), 8) + get(f, entry(0, length_at), 8)] = std::byte{1}; });
    c.bytes("section-digest", bad_digest, "functions: digest: expected", false, [](Buffer& f) {
        f[entry(1, digest_at)] ^= std::byte{1};
        // Only the root is repaired.
        for (std::size_t i = 0; i < 32; ++i) f[24 + i] = std::byte{0};
        const Digest root = sha256(std::span<const std::byte>(f).first(entry(5, 0)));
        std::memcpy(f.data() + 24, root.bytes.data(), 32);
    });

    c.sections("section-twice", bad_section, "section manifest: occurs twice",
               [](auto& s) { s.insert(s.begin(), s.front()); });
    c.sections("section-misordered", bad_section, "section manifest: out of order: it follows section functions",
               [](auto& s) { std::swap(s[0], s[1]); });
    c.sections("section-image-twice", bad_section, "manifest.targets: tags of image sections: expected [0], got [0, 2]",
               [](auto& s) {
                   s.insert(s.begin() + 3, s[2]);
                   s[3].tag = 2;
               });
    c.sections("section-no-image", bad_section, "manifest.targets: tags of image sections: expected [0], got []",
               [](auto& s) { s.erase(s.begin() + 2); });
    c.sections("section-no-functions", bad_section, "section table: there is no functions section",
               [](auto& s) { s.erase(s.begin() + 1); });
    c.sections("section-no-constants", bad_section, "section table: there is no constants section",
               [](auto& s) { s.erase(s.begin() + 3); });
    c.sections("constants-leaf-wrong", bad_digest, "constants: the manifest's leaves do not give the section's digest",
               [](auto& s) { s[0].content.back() ^= std::byte{1}; });
    c.sections("constants-padding", bad_value, "functions.constants[1]: padding before it is not zero", [](auto& s) {
        s[3].content[9] = std::byte{1};
        Parts parts = small_parts();
        parts.manifest.constant_leaves = digest_leaves(s[3].content);
        s[0].content = encode(parts.manifest);
    });
    c.sections("constants-longer", bad_value, "constants: length: expected 80, got 81", [](auto& s) {
        s[3].content.push_back(std::byte{0});
        Parts parts = small_parts();
        parts.manifest.constant_leaves = digest_leaves(s[3].content);
        s[0].content = encode(parts.manifest);
    });
    // A digest that is right for a list of leaves of another length.
    for (const std::size_t leaves : {0, 2}) {
        std::vector<RawSection> raw = sections_of(small_parts());
        Parts parts = small_parts();
        parts.manifest.constant_leaves.resize(leaves);
        raw[0].content = encode(parts.manifest);
        Buffer file = assemble(raw);
        const Digest digest = digest_root(parts.manifest.constant_leaves);
        std::memcpy(file.data() + entry(3, digest_at), digest.bytes.data(), 32);
        std::memset(file.data() + 24, 0, 32);
        const Digest root = sha256(std::span<const std::byte>(file).first(entry(5, 0)));
        std::memcpy(file.data() + 24, root.bytes.data(), 32);
        c.out.push_back({cat("constants-", leaves, "-leaves"), std::move(file), bad_value,
                         cat("manifest.constant_leaves: count: expected 1, got ", leaves)});
    }
    return c.out;
}

std::vector<Hostile> hostile_encodings() {
    using enum ErrorCode;
    Cases c;
    const auto content = [&](std::string name, std::size_t section, ErrorCode code, std::string expected,
                             std::initializer_list<unsigned> bytes) {
        Buffer data;
        for (const unsigned b : bytes) data.push_back(static_cast<std::byte>(b));
        c.sections(std::move(name), code, std::move(expected), [&](auto& s) { s[section].content = data; });
    };
    constexpr std::size_t manifest = 0, functions = 1, image = 2, debug = 4;
    content("encoding-empty-section", manifest, truncated, "manifest: producer: the section ends here", {});
    content("encoding-long-form", manifest, bad_encoding, "manifest: producer: integer not in its shortest form",
            {0x80, 0x00});
    content("encoding-beyond-64-bits", image, bad_encoding, "image 0: programs: integer beyond 64 bits",
            {0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02});
    content("encoding-endless", image, bad_encoding, "image 0: programs: integer beyond 64 bits",
            {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
    content("encoding-beyond-32-bits", manifest, bad_encoding,
            "manifest: abi: integer: expected at most 4294967295, got 4294967296", {0, 0x80, 0x80, 0x80, 0x80, 0x10});
    content("encoding-text-beyond-section", manifest, truncated, "manifest: producer: needs 2 more bytes, 1 are left",
            {2, 'a'});
    content("encoding-count-beyond-section", image, bad_encoding, "image 0: programs: integer: expected at most 4",
            {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0, 0, 0});
    content("encoding-digest-cut", manifest, bad_encoding,
            "manifest: constant_leaves: integer: expected at most 0, got 1", {0, 1, 0, 1, 0xaa});
    content("encoding-left-over", debug, bad_encoding, "debug: 1 bytes are left over at byte 1", {0, 0});
    content("encoding-alternative", image, bad_encoding,
            "image 0: programs[0].steps[0]: alternative: expected below 2, got 2", {1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0});
    content("encoding-boolean", image, bad_encoding,
            "image 0: programs[0].steps[0].phases[0].outer: boolean: expected 0 or 1, got 2",
            {1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 0});
    content("encoding-enumeration", functions, bad_encoding,
            "functions[0].exprs[0].op: enumeration: expected below 8, got 8", {1, 0, 0, 1, 8, 0, 0, 0, 0, 0, 0, 0});
    content("encoding-dtype", functions, bad_encoding, "constants[0].dtype: enumeration: expected below 10, got 10",
            {0, 1, 0, 10, 0, 0});
    content("encoding-16-bit-register", image, bad_encoding,
            "phases[0].instrs[0].dst: integer: expected at most 65535, got 65536",
            {1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 9, 0, 0, 0, 0x80, 0x80, 4, 0, 0, 0, 0});
    constexpr unsigned not_utf8[][4] = {{0x80, 0, 0, 0},          {0xc1, 0x80, 0, 0},       {0xe0, 0x9f, 0x80, 0},
                                        {0xed, 0xa0, 0x80, 0},    {0xf0, 0x8f, 0x80, 0x80}, {0xf4, 0x90, 0x80, 0x80},
                                        {0xf5, 0x80, 0x80, 0x80}, {'a', 'b', 'c', 0xc2},    {0xe2, 0x82, 0, 0}};
    for (const auto& t : not_utf8)
        content(cat("encoding-not-utf8-", t[0], "-", t[1]), debug, bad_encoding, "debug: graph: text is not UTF-8",
                {4, t[0], t[1], t[2], t[3]});
    return c.out;
}

}  // namespace lyo::fuzz
