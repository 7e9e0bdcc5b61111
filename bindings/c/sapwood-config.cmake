# find_package(sapwood) gives the targets sapwood::sapwood, the shared library, and sapwood::static,
# and the path of the program of communication processes in sapwood_PROGRAM. Lies in LIBDIR/cmake/sapwood; its place may be moved as a
# whole.
get_filename_component(_sapwood_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(_sapwood_prefix "${_sapwood_lib}")
while(NOT EXISTS "${_sapwood_prefix}/include/sapwood.h")
  get_filename_component(_sapwood_above "${_sapwood_prefix}" DIRECTORY)
  if(_sapwood_above STREQUAL _sapwood_prefix)
    set(sapwood_FOUND FALSE)
    set(sapwood_NOT_FOUND_MESSAGE "there is no include/sapwood.h above ${_sapwood_lib}")
    return()
  endif()
  set(_sapwood_prefix "${_sapwood_above}")
endwhile()
if(NOT TARGET sapwood::sapwood)
  add_library(sapwood::sapwood SHARED IMPORTED)
  set_target_properties(sapwood::sapwood PROPERTIES
    IMPORTED_LOCATION "${_sapwood_lib}/libsapwood.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_sapwood_prefix}/include")
  add_library(sapwood::static STATIC IMPORTED)
  set_target_properties(sapwood::static PROPERTIES
    IMPORTED_LOCATION "${_sapwood_lib}/libsapwood.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C
    INTERFACE_LINK_LIBRARIES "pthread;dl;m;gcc_s"
    INTERFACE_INCLUDE_DIRECTORIES "${_sapwood_prefix}/include")
endif()
set(sapwood_PROGRAM "${_sapwood_prefix}/bin/sapwood-node")
unset(_sapwood_lib)
unset(_sapwood_prefix)
unset(_sapwood_above)
