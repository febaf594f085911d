// lyo.artifact: the file format: its schema, the one codec that reads, writes and prints it, validation, digests. It
// does not know how to run anything. FORMAT.md beside this file is the specification.
export module lyo.artifact;

export import :format;
export import :schema;
export import :artifact;
