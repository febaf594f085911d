// A fresh folder for one test, removed with everything in it at the end. Include before any import.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace test {

class Folder {
  public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "lyo-test-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

    /// Regular files in a part of it.
    std::size_t files(const std::string& part = "") const {
        std::size_t count = 0;
        std::error_code missing;
        for (auto at = std::filesystem::recursive_directory_iterator(path_ + "/" + part, missing);
             at != std::filesystem::recursive_directory_iterator(); ++at)
            count += at->is_regular_file() ? 1 : 0;
        return count;
    }

  private:
    std::string path_;
};

}  // namespace test
