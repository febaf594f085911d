// torch.export's .pt2 archives: a zip with one top folder, in which models/model.json is the graph (torch's export
// schema, major version 8) and data/ holds weights as raw bytes with JSON tables beside them.
export module lyo.importer:pt2;

import lyo.prelude;
import lyo.base;
import lyo.graph;

namespace lyo {

/// Bounds on what an archive may make the importer do.
export struct ImportOptions {
    /// Bytes unpacked from one archive, and made of tensors that are not row-major there, together.
    std::uint64_t max_total_bytes = std::uint64_t{64} << 30;
    /// Times the archive's own size that those bytes may be.
    std::uint64_t max_ratio = 1000;
    /// Length of one JSON document, and how deep it nests.
    std::uint64_t max_json_bytes = std::uint64_t{1} << 30;
    std::size_t max_json_depth = 128;
};

/// The graph of a .pt2 archive. User inputs are the graph's inputs, in order; inputs that the export fixed to a
/// constant are left out. Parameters and buffers that a node or an output uses become constants. In-place operators on
/// intermediate tensors become out-of-place ones. Errors: bad_archive, bad_model, bad_graph (the archive or its model
/// is not what torch.export writes), unsupported_operator (one error that lists all of them with counts),
/// unsupported_argument (all nodes at once), limit_exceeded, out_of_memory.
export Result<Graph> import_pt2(const Bytes& archive, const ImportOptions& options = {});
/// The same for a file, which is read whole. Errors: file, too.
export Result<Graph> import_pt2_file(const std::string& path, const ImportOptions& options = {});

/// Gives the bytes of a file in the archive, by its path below the top folder: "data/weights/weight_0".
export using PayloadReader = std::function<Result<Bytes>(std::string_view path)>;
/// The graph from the parts of an archive, for callers that keep them elsewhere. `weights` and `constants` are the
/// texts of the two payload tables.
export Result<Graph> import_exported_program(std::string_view model, std::string_view weights,
                                             std::string_view constants, const PayloadReader& read,
                                             const ImportOptions& options = {});

}  // namespace lyo
