// lyo.hydration: a validated artifact comes alive: `hydrate` gives a Function that can be called, and that gives back,
// at any time, the bytes it came from. It parses nothing.
export module lyo.hydration;

export import :function;
export import :sample;
