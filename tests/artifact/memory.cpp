#include "memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live{0}, peak{0}, calls{0};

void* take(std::size_t size, std::size_t alignment) noexcept {
    void* p = alignment <= alignof(std::max_align_t)
                  ? std::malloc(size)
                  : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (p == nullptr) return nullptr;
    const std::size_t now = live.fetch_add(malloc_usable_size(p)) + malloc_usable_size(p);
    std::size_t seen = peak.load();
    while (seen < now && !peak.compare_exchange_weak(seen, now)) {
    }
    ++calls;
    return p;
}

void* take_or_throw(std::size_t size, std::size_t alignment) {
    if (void* p = take(size, alignment)) return p;
    throw std::bad_alloc();
}

void drop(void* p) noexcept {
    if (p != nullptr) live -= malloc_usable_size(p);
    std::free(p);
}

}  // namespace

namespace lyo_test {

void reset_memory() noexcept {
    peak = live.load();
    calls = 0;
}
Memory memory() noexcept { return {live, peak, calls}; }

}  // namespace lyo_test

void* operator new(std::size_t size) { return take_or_throw(size, 1); }
void* operator new[](std::size_t size) { return take_or_throw(size, 1); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size, 1); }
void* operator new(std::size_t size, std::align_val_t a) { return take_or_throw(size, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { drop(p); }
void operator delete[](void* p) noexcept { drop(p); }
void operator delete(void* p, std::size_t) noexcept { drop(p); }
void operator delete[](void* p, std::size_t) noexcept { drop(p); }
void operator delete(void* p, std::align_val_t) noexcept { drop(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { drop(p); }
