# Functions that set the exports of shared libraries, and that add libraries over the core.

# Exports the names of a version script (`map`), without versions. Links gcc's run time and thread
# library statically, so that programs do not need these libraries' DLLs.
function(export_for_windows target map)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${map})
  file(STRINGS ${map} exports REGEX "^ +(sb|syncblob)_[a-z0-9_]+;")
  list(TRANSFORM exports REPLACE ";" "")
  list(JOIN exports "\n" exports)
  file(CONFIGURE OUTPUT ${target}.def CONTENT "EXPORTS\n@exports@\n" @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${target}.def)
  target_link_options(${target} PRIVATE $<$<C_COMPILER_ID:GNU>:-static>)
endfunction()

# Exports only the names of the version script `map`, and makes calls within the library direct.
function(finish_shared_library target map)
  if(WIN32)
    export_for_windows(${target} ${map})
    return()
  elseif(APPLE) # no symbol versions; SB_API in the headers selects the exports
    return()
  endif()
  if(NOT SYNCBLOB_ZIG) # zig's linker has no such option
    target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
  endif()
  target_link_options(${target} PRIVATE "LINKER:--version-script=${map}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  if(SYNCBLOB_WERROR AND CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_link_options(${target} PRIVATE -Werror=odr -Werror=lto-type-mismatch)
  endif()
  if(SYNCBLOB_HARDENING)
    harden_library(${target})
  endif()
endfunction()

# Adds one library for add_library_over; `kind` is SHARED or STATIC.
function(add_kind target kind below)
  add_library(${target} ${kind} ${over_SOURCES})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${below} ${over_LINK}
    PRIVATE $<BUILD_INTERFACE:syncblob_language> ${syncblob_system})
  target_compile_options(${target} PRIVATE
    $<$<C_COMPILER_ID:GNU>:-ffat-lto-objects> ${over_OPTIONS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME syncblob-${name}
    VERSION ${PROJECT_VERSION} SOVERSION ${syncblob_abi})
  if(SYNCBLOB_HARDENING)
    harden_objects(${target})
  endif()
  if(kind STREQUAL "SHARED")
    finish_shared_library(${target} ${CMAKE_CURRENT_SOURCE_DIR}/libsyncblob-${name}.map)
  else()
    target_compile_definitions(${target} PRIVATE SB__STATIC)
  endif()
  if(NOT PROJECT_IS_TOP_LEVEL AND NOT SYNCBLOB_INSTALL) # built only on request
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# add_library_over(BELOW NAME SOURCES FILE... [LINK LIBRARY...] [OPTIONS FLAG...]): adds the library
# libsyncblob-NAME of the current folder. The library uses the public headers of the target BELOW:
# syncblob, or another target that this function added. The folder has include/syncblob,
# libsyncblob-NAME.map and syncblob-NAME.pc.in. BUILD_SHARED_LIBS selects whether the target
# syncblob_NAME is shared or static, as for syncblob. The target syncblob_NAME_static is static and
# uses syncblob_static. Both libraries are installed as the components Name and NameDevelopment.
function(add_library_over below name)
  cmake_parse_arguments(PARSE_ARGV 2 over "" "" "SOURCES;LINK;OPTIONS")
  if(BUILD_SHARED_LIBS)
    add_kind(syncblob_${name} SHARED ${below})
    add_kind(syncblob_${name}_static STATIC ${below}_static)
    if(NOT PROJECT_IS_TOP_LEVEL)
      set_target_properties(syncblob_${name}_static PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  else()
    add_kind(syncblob_${name} STATIC ${below})
    add_library(syncblob_${name}_static ALIAS syncblob_${name})
  endif()
  add_library(syncblob::${name} ALIAS syncblob_${name})
  if(SYNCBLOB_INSTALL)
    install_over(${name})
  endif()
endfunction()

# Sets `out` to the installed component of the library libsyncblob-NAME, such as Testing for testing.
function(component_of name out)
  string(SUBSTRING ${name} 0 1 initial)
  string(SUBSTRING ${name} 1 -1 rest)
  string(TOUPPER ${initial} initial)
  set(${out} ${initial}${rest} PARENT_SCOPE)
endfunction()

function(install_over name)
  component_of(${name} component)
  if(BUILD_SHARED_LIBS)
    install_library(syncblob_${name} ${name}-shared ${component} ${component}Development)
  endif()
  if(PROJECT_IS_TOP_LEVEL OR NOT BUILD_SHARED_LIBS)
    get_target_property(static_library syncblob_${name}_static NAME)
    install_library(${static_library} ${name}-static ${component} ${component}Development)
  endif()
  install(DIRECTORY include/syncblob DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          COMPONENT ${component}Development)
  configure_file(syncblob-${name}.pc.in syncblob-${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/syncblob-${name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component}Development)
endfunction()
