module lyo.importer;

import lyo.prelude;
import lyo.base;
import lyo.graph;
import :archive;
import :json;
import :payload;
import :program;
import :pt2;
import :support;

namespace lyo {
namespace {

constexpr std::string_view weights_folder = "data/weights/", constants_folder = "data/constants/";

/// "data/weights/model_weights_config.json", whatever the model's name; empty where there is none.
std::string config_of(const Archive& archive, std::string_view folder, std::string_view suffix) {
    for (const std::string& path : archive.list(folder))
        if (path.ends_with(suffix)) return path;
    return {};
}

Result<std::string> text_of(const Archive& archive, std::string_view path, Budget& budget) {
    auto bytes = archive.read(path, budget);
    if (!bytes) return std::unexpected(bytes.error());
    return std::string(bytes->text());
}

Result<Graph> import_parts(std::string_view model, std::string_view weights, std::string_view constants,
                           const PayloadReader& read, const ImportOptions& options, Budget budget) {
    const auto json = parse_json(model, options.max_json_bytes, options.max_json_depth);
    if (!json) return std::unexpected(Error(json.error()).in("models/model.json"));
    const auto weight_table = PayloadTable::parse(weights, weights_folder, options);
    if (!weight_table) return std::unexpected(Error(weight_table.error()).in("weights config"));
    const auto constant_table = PayloadTable::parse(constants, constants_folder, options);
    if (!constant_table) return std::unexpected(Error(constant_table.error()).in("constants config"));
    auto graph = ProgramImporter(*json, *weight_table, *constant_table, read, budget).run();
    if (!graph) return std::unexpected(std::move(graph.error()).in("models/model.json"));
    return graph;
}

}  // namespace

Result<Graph> import_exported_program(std::string_view model, std::string_view weights, std::string_view constants,
                                      const PayloadReader& read, const ImportOptions& options) {
    return no_throw(ErrorCode::bad_model, [&] {
        return import_parts(model, weights, constants, read, options, Budget{options.max_total_bytes});
    });
}

Result<Graph> import_pt2(const Bytes& bytes, const ImportOptions& options) {
    return no_throw(ErrorCode::bad_archive, [&]() -> Result<Graph> {
        auto archive = Archive::open(bytes);
        if (!archive) return std::unexpected(archive.error());
        const auto by_ratio = checked_mul(static_cast<std::uint64_t>(bytes.size()), options.max_ratio);
        Budget budget{std::min(options.max_total_bytes, by_ratio.value_or(options.max_total_bytes))};
        std::string path;
        for (const std::string& candidate : archive->list("models/")) {
            if (!candidate.ends_with(".json")) continue;
            if (!path.empty())
                return fail(ErrorCode::bad_archive, "models", "holds several models: ", path, " and ", candidate);
            path = candidate;
        }
        if (path.empty())
            return fail(ErrorCode::bad_archive, "models", "holds no model: this is no archive of torch.export.save");
        if (archive->contains("byteorder")) {
            const auto order = text_of(*archive, "byteorder", budget);
            if (!order) return std::unexpected(order.error());
            if (*order != "little") return mismatch(ErrorCode::bad_archive, "byteorder", "order", "little", *order);
        }
        const auto model = text_of(*archive, path, budget);
        if (!model) return std::unexpected(model.error());
        constexpr std::string_view empty_table = R"({"config": {}})";
        std::string tables[2] = {std::string(empty_table), std::string(empty_table)};
        const std::string configs[2] = {config_of(*archive, weights_folder, "_weights_config.json"),
                                        config_of(*archive, constants_folder, "_constants_config.json")};
        for (int i = 0; i < 2; ++i) {
            if (configs[i].empty()) continue;
            auto text = text_of(*archive, configs[i], budget);
            if (!text) return std::unexpected(text.error());
            tables[i] = std::move(*text);
        }
        const PayloadReader read = [&](std::string_view entry) { return archive->read(entry, budget); };
        return import_parts(*model, tables[0], tables[1], read, options, budget);
    });
}

Result<Graph> import_pt2_file(const std::string& path, const ImportOptions& options) {
    auto bytes = read_file(path);
    if (!bytes) return std::unexpected(bytes.error());
    auto graph = import_pt2(*bytes, options);
    if (!graph) return std::unexpected(std::move(graph.error()).in(path));
    return graph;
}

}  // namespace lyo
