// lyo.compiler: graph to artifact bytes. Decompose, group into kernels, lower to plans, plan memory, write. It never
// runs anything, and its only output is bytes: what was just compiled is loaded the way a file is.
export module lyo.compiler;

export import :compile;
