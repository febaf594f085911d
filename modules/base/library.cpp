module;
#include <dlfcn.h>

module lyo.base;

import lyo.prelude;

namespace lyo {

SharedLibrary::SharedLibrary(std::initializer_list<const char*> names) noexcept {
    for (const char* name : names)
        if (handle_ == nullptr) handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void* SharedLibrary::symbol(const char* name) const noexcept {
    return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace lyo
