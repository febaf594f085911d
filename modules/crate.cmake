# lyo_crate(NAME [INTERFACE f.cppm ...] [INTERNAL f.cppm ...] [SOURCES f.cpp ...] [HEADERS include/...]
#           [LINK targets...] [PRIVATE targets...])
#
# One folder, one named module, one static library lyo_NAME (alias lyo::NAME), installed with its interface units.
#   INTERFACE  public interface units: what importers and host projects see
#   INTERNAL   internal partitions: imported by this crate's own .cpp files only, never installed
#   LINK       crates whose modules the interfaces import (public); the arrows of the architecture
#   PRIVATE    what only the bodies need; modules among them must not appear in an interface
function(lyo_crate NAME)
  cmake_parse_arguments(A "" "" "INTERFACE;INTERNAL;SOURCES;HEADERS;LINK;PRIVATE" ${ARGN})
  set(t lyo_${NAME})
  add_library(${t} STATIC)
  add_library(lyo::${NAME} ALIAS ${t})
  set_target_properties(${t} PROPERTIES EXPORT_NAME ${NAME} CXX_SCAN_FOR_MODULES ON)
  target_compile_features(${t} PUBLIC cxx_std_23)
  target_sources(${t} PUBLIC FILE_SET CXX_MODULES BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR} FILES ${A_INTERFACE})
  if(A_INTERNAL)
    target_sources(${t} PRIVATE FILE_SET internal TYPE CXX_MODULES BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR}
                                FILES ${A_INTERNAL})
  endif()
  if(A_HEADERS)
    target_sources(${t} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR}/include FILES ${A_HEADERS})
  endif()
  target_sources(${t} PRIVATE ${A_SOURCES})
  # What the linked crates link is linked by name, too: in a host's build CMake 3.31 lets an interface unit import only
  # from crates that its own crate names.
  set(links ${A_LINK})
  foreach(link IN LISTS A_LINK)
    get_property(further GLOBAL PROPERTY lyo_links_of_${link})
    list(APPEND links ${further})
  endforeach()
  list(REMOVE_DUPLICATES links)
  set_property(GLOBAL PROPERTY lyo_links_of_lyo::${NAME} ${links})
  target_link_libraries(${t} PUBLIC ${links})
  foreach(p IN LISTS A_PRIVATE)
    target_link_libraries(${t} PRIVATE ${p})
  endforeach()
  install(TARGETS ${t} EXPORT lyo-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          FILE_SET CXX_MODULES DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lyo/modules/${NAME}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()
