# What `cmake --install` puts into a prefix beside the libraries and interface units of the crates: the CMake package `lyo`.
include(CMakePackageConfigHelpers)
set(lyo_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lyo)

# Without CXX_MODULES_DIRECTORY the targets would be installed without what makes their modules importable.
install(EXPORT lyo-targets NAMESPACE lyo:: DESTINATION ${lyo_package_dir} CXX_MODULES_DIRECTORY modules)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lyo-config.cmake.in ${PROJECT_BINARY_DIR}/lyo-config.cmake
  INSTALL_DESTINATION ${lyo_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lyo-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lyo-config.cmake ${PROJECT_BINARY_DIR}/lyo-config-version.cmake
  DESTINATION ${lyo_package_dir})
