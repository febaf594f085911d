// lyo.cache: keys, and stores of checked entries: a local folder and what lies behind it. It knows bytes and their
// digests; not what is in them, nor how it is made.
export module lyo.cache;

export import :key;
export import :entry;
export import :counters;
export import :store;
export import :local;
export import :layered;
export import :archive;
export import :address;
