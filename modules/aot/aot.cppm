// lyo.aot: ahead of time, as a flow: key, look up, compile, store, dispatch. It knows models, artifacts and caches; not
// what a store or a kernel is made of.
export module lyo.aot;

export import :build;
export import :callable;
