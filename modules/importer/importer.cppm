// lyo.importer: outside formats into lyo's terms: torch.export archives to graphs, safetensors and npy files to tensors
// and back. It reads and checks; it executes nothing, and no pickle is ever opened.
export module lyo.importer;

export import :pt2;
export import :npy;
export import :safetensors;
