// Shared libraries that are opened at run time, where a machine may lack them.
export module lyo.base:library;

import lyo.prelude;

namespace lyo {

/// A library that stays open for the rest of the process: what came from it may be in use anywhere.
export class SharedLibrary {
  public:
    /// The first of these names that can be opened; without one of them, nothing is found in it.
    explicit SharedLibrary(std::initializer_list<const char*> names) noexcept;
    bool is_open() const noexcept { return handle_ != nullptr; }
    /// Sets `function` to the function of that name; false, and null, where there is none.
    template <class Function>
    bool find(Function& function, const char* name) const noexcept {
        function = reinterpret_cast<Function>(symbol(name));
        return function != nullptr;
    }

  private:
    void* symbol(const char* name) const noexcept;
    void* handle_ = nullptr;
};

}  // namespace lyo
