// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html: "\x93NUMPY", version, header length, a Python
// dictionary as text, the elements.
module lyo.importer;

import lyo.prelude;
import lyo.base;
import :npy;
import :support;

namespace lyo {
namespace {

constexpr ErrorCode bad = ErrorCode::bad_archive;
constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t max_header = std::size_t{1} << 16;

struct Type {
    std::string_view descr;
    DType dtype;
};
constexpr Type types[] = {{"|b1", DType::boolean}, {"|u1", DType::u8},  {"|i1", DType::i8},
                          {"<i2", DType::i16},     {"<i4", DType::i32}, {"<i8", DType::i64},
                          {"<f2", DType::f16},     {"<f4", DType::f32}, {"<f8", DType::f64}};

/// Reads the dictionary's few forms: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderReader {
  public:
    explicit HeaderReader(std::string_view text) : text_(text) {}

    std::string_view descr;
    bool fortran = false;
    Dims shape;

    Result<> run() {
        bool seen[3] = {};
        if (!take('{')) return bad_form("{");
        while (!take('}')) {
            std::string_view key;
            if (!quoted(key) || !take(':')) return bad_form("a key");
            const std::size_t which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
            if (which == 3 || seen[which])
                return fail(bad, "header", "key ", key, which == 3 ? " is not known" : " comes twice");
            seen[which] = true;
            if (which == 0 && !quoted(descr))
                return fail(ErrorCode::unsupported_argument, "header", "descr is not a plain element type");
            if (which == 1 && !boolean(fortran)) return bad_form("True or False");
            if (which == 2)
                if (auto ok = read_shape(); !ok) return ok;
            if (!take(',')) {
                if (!take('}')) return bad_form("}");
                break;
            }
        }
        if (!seen[0] || !seen[1] || !seen[2]) return fail(bad, "header", "descr, fortran_order or shape is missing");
        if (!rest_is_blank()) return bad_form("spaces and a line end");
        return {};
    }

  private:
    std::unexpected<Error> bad_form(std::string_view wanted) const {
        return fail(bad, "header", "expected ", wanted, " at byte ", at_, " of the header's text");
    }
    void skip() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    bool take(char c) {
        skip();
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool quoted(std::string_view& out) {
        skip();
        if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
        const auto end = text_.find(text_[at_], at_ + 1);
        if (end == std::string_view::npos) return false;
        out = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return true;
    }
    bool boolean(bool& out) {
        skip();
        for (const std::string_view word : {"True", "False"})
            if (text_.substr(at_).starts_with(word)) {
                out = word == "True";
                at_ += word.size();
                return true;
            }
        return false;
    }
    Result<> read_shape() {
        if (!take('(')) return bad_form("(");
        while (!take(')')) {
            skip();
            std::int64_t size = 0;
            const char* first = text_.data() + at_;
            const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), size);
            if (error != std::errc{} || size < 0) return bad_form("a size");
            if (shape.size() == max_rank) return fail(bad, "header", "more than ", max_rank, " dimensions");
            shape.push_back(size);
            at_ += static_cast<std::size_t>(end - first);
            if (!take(',')) {
                if (!take(')')) return bad_form(")");
                break;
            }
        }
        return {};
    }
    bool rest_is_blank() {
        skip();
        return at_ == text_.size() || (text_[at_] == '\n' && at_ + 1 == text_.size());
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

Result<Tensor> read_tensor(const Bytes& file) {
    constexpr std::size_t version_at = 6, v1_header = 10, v2_header = 12;
    if (file.size() < v1_header || file.text().substr(0, magic.size()) != magic)
        return fail(bad, "", "not a .npy file: its first bytes are not NumPy's magic");
    const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file.span()[i]); };
    const std::size_t major = byte(version_at);
    if (major < 1 || major > 3 || byte(version_at + 1) != 0)
        return mismatch(bad, "", "version", "1.0, 2.0 or 3.0", cat(major, ".", byte(version_at + 1)));
    const std::size_t start = major == 1 ? v1_header : v2_header;
    if (file.size() < start) return mismatch(ErrorCode::truncated, "", "bytes", cat("at least ", start), file.size());
    std::size_t length = byte(8) | byte(9) << 8;
    if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
    if (length > max_header || length > file.size() - start)
        return mismatch(bad, "header", "length", cat("at most ", std::min(max_header, file.size() - start)), length);
    HeaderReader header(file.text().substr(start, length));
    if (auto ok = header.run(); !ok) return std::unexpected(ok.error());
    const auto type = std::find_if(std::begin(types), std::end(types), [&](const Type& t) {
        // One-byte types may name any byte order.
        return t.descr == header.descr || (t.descr[0] == '|' && header.descr.size() == 3 && header.descr[0] != '>' &&
                                           header.descr.substr(1) == t.descr.substr(1));
    });
    if (type == std::end(types))
        return fail(ErrorCode::unsupported_argument, "header", "lyo has no dtype for element type ", header.descr);
    const Bytes data = file.slice(start + length, file.size() - start - length);
    const auto size = byte_size(header.shape, type->dtype);
    if (!size || *size != data.size())
        return mismatch(bad, "", cat("bytes of data for shape ", to_string(header.shape)),
                        size ? std::to_string(*size) : std::string("beyond 64 bits"), data.size());
    Dims strides = contiguous_strides(header.shape);
    if (header.fortran) {
        std::int64_t step = 1;
        for (std::size_t d = 0; d < header.shape.size(); ++d) {
            strides[d] = step;
            step *= std::max<std::int64_t>(header.shape[d], 1);
        }
    }
    return view_or_copy(data, header.shape, strides, type->dtype);
}

Result<Bytes> write_tensor(const Tensor& tensor) {
    const auto type =
        std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.dtype == tensor.dtype(); });
    if (type == std::end(types))
        return fail(ErrorCode::unsupported_argument, "", "NumPy has no element type for ", to_string(tensor.dtype()));
    if (tensor.device() != Device::cpu())
        return mismatch(ErrorCode::wrong_device, "", "device", "cpu", tensor.device().to_string());
    const auto compact = tensor.contiguous();
    if (!compact) return std::unexpected(compact.error());
    std::string sizes;
    for (std::size_t d = 0; d < tensor.rank(); ++d)
        sizes += cat(d > 0 ? " " : "", tensor.shape()[d], d + 1 < tensor.rank() || tensor.rank() == 1 ? "," : "");
    std::string header = cat("{'descr': '", type->descr, "', 'fortran_order': False, 'shape': (", sizes, "), }");
    constexpr std::size_t prefix = 10, alignment = 64;
    header.resize((prefix + header.size() + 1 + alignment - 1) / alignment * alignment - prefix - 1, ' ');
    header += '\n';
    const auto bytes = static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
    return Bytes::make(prefix + header.size() + bytes, [&](std::span<std::byte> out) -> Result<> {
        const char start[] = {'\x93',
                              'N',
                              'U',
                              'M',
                              'P',
                              'Y',
                              1,
                              0,
                              static_cast<char>(header.size() & 0xff),
                              static_cast<char>(header.size() >> 8)};
        std::memcpy(out.data(), start, prefix);
        std::memcpy(out.data() + prefix, header.data(), header.size());
        if (bytes > 0) std::memcpy(out.data() + prefix + header.size(), compact->data(), bytes);
        return {};
    });
}

}  // namespace

Result<Tensor> read_npy(const Bytes& file) {
    return no_throw(bad, [&] { return read_tensor(file); });
}
Result<Bytes> write_npy(const Tensor& tensor) {
    return no_throw(ErrorCode::invalid_argument, [&] { return write_tensor(tensor); });
}

}  // namespace lyo
