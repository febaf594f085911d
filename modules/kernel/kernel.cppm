// lyo.kernel: backends. A backend turns a validated plan into something that runs on its device, and runs it. It knows
// artifacts' schema and memory; not graphs, not guards, not files.
export module lyo.kernel;

export import :cpu;
export import :cuda;
