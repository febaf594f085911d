# Writes OUT, a .cpp with the digest of everything that decides what the compiler makes of a graph, whenever one of FILES
# changes. -DROOT: names are digested relative to it, so that every checkout of the same sources has the same digest.
string(REPLACE "|" ";" files "${FILES}")
list(SORT files)
set(text "")
foreach(file IN LISTS files)
  file(SHA256 ${file} digest)
  file(RELATIVE_PATH name ${ROOT} ${file})
  string(APPEND text "${digest} ${name}\n")
endforeach()
string(SHA256 fingerprint "${text}")
file(WRITE ${OUT} "module lyo.compiler;

import lyo.prelude;

namespace lyo::detail {
std::string_view compiler_fingerprint() noexcept { return \"${fingerprint}\"; }
}  // namespace lyo::detail
")
