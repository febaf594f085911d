// `import lyo;`: everything public, nothing of its own.
export module lyo;

export import lyo.base;
export import lyo.artifact;
export import lyo.graph;
export import lyo.importer;
export import lyo.compiler;
export import lyo.kernel;
export import lyo.hydration;
export import lyo.cache;
export import lyo.aot;
