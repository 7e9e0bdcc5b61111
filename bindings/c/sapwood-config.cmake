# find_package(sapwood) gives the target sapwood::sapwood. Lies in PREFIX/lib/cmake/sapwood.
get_filename_component(_sapwood_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET sapwood::sapwood)
  add_library(sapwood::sapwood SHARED IMPORTED)
  set_target_properties(sapwood::sapwood PROPERTIES
    IMPORTED_LOCATION "${_sapwood_prefix}/lib/libsapwood.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_sapwood_prefix}/include")
endif()
unset(_sapwood_prefix)
