// Settings of a fuzz target that is linked with libFuzzer.

/// What costs more than many an input is off: long stacks of allocations, and frames on the heap, which the ordinary
/// sanitizer builds have. Impossible sizes fail as they do elsewhere.
extern "C" const char* __asan_default_options() {
    return "malloc_context_size=1:detect_stack_use_after_return=0:quarantine_size_mb=8:allocator_may_return_null=1";
}
