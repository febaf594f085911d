// Parameters, buffers and constants of an archive: a JSON table beside files of raw little-endian bytes.
module lyo.importer:payload;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import :json;
import :pt2;
import :support;

namespace lyo {

/// torch's export schema numbers dtypes in its own way. Errors: unsupported_argument (complex and quantised types).
Result<DType> dtype_of_number(std::int64_t number);
/// {"as_int": 3}: a size that must be a number. Errors: bad_model.
Result<std::int64_t> constant_size(const Json& json);

class PayloadTable {
  public:
    /// `text` is {"config": {name: {"path_name", "use_pickle", "tensor_meta"}}}; files lie in `folder`. Errors:
    /// bad_model.
    static Result<PayloadTable> parse(std::string_view text, std::string_view folder, const ImportOptions& options);
    bool contains(std::string_view name) const { return entries_.contains(name); }
    /// The tensor of that name. Errors: bad_model (its strides reach beyond its file), unsupported_argument (a pickle),
    /// limit_exceeded, those of `read`.
    Result<Tensor> load(std::string_view name, const PayloadReader& read, Budget& budget) const;

  private:
    struct Entry {
        std::string path;
        bool pickled = false;
        DType dtype = DType::f32;
        Dims shape, strides;
        std::int64_t offset = 0;
    };
    static Result<Entry> entry(const Json& json, std::string_view folder);
    std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace lyo
