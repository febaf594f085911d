// lyo.fuzz: what the fuzz targets and the tests of hostile input share: a second writer of the format, made from
// FORMAT.md and free of checks, a generator of valid artifacts, mutators that repair digests, and the oracles. No
// fuzzing engine in here.
export module lyo.fuzz;

export import :random;
export import :parts;
export import :generate;
export import :hostile;
export import :mutate;
export import :oracle;
