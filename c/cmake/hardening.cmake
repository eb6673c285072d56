# Flags that make memory errors harder to exploit, for our objects and for the shared library.
# tests/project/abi/check_hardening.py checks the result.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
option(SYNCBLOB_HARDENING "Stack protector, checked calls of the C library, CET, full RELRO" ON)

# Sets `out` to ON if any variable or property with flags for this folder enables sanitizers.
function(find_sanitizers out)
  get_directory_property(flags COMPILE_OPTIONS)
  list(APPEND flags ${CMAKE_C_FLAGS})
  foreach(configuration IN LISTS CMAKE_BUILD_TYPE CMAKE_CONFIGURATION_TYPES)
    string(TOUPPER ${configuration} configuration)
    list(APPEND flags ${CMAKE_C_FLAGS_${configuration}})
  endforeach()
  set(${out} OFF PARENT_SCOPE)
  if(flags MATCHES "-fsanitize")
    set(${out} ON PARENT_SCOPE)
  endif()
endfunction()

# Sets `out` to the flags for glibc's checks of buffer sizes (_FORTIFY_SOURCE), which need optimised
# code. If a sanitizer is on, `out` is empty, because the sanitizer's own checks are better.
function(find_fortification out)
  set(${out} "" PARENT_SCOPE)
  find_sanitizers(sanitized)
  if(sanitized)
    return()
  endif()
  foreach(level 3 2)
    set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
    check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }"
                            SYNCBLOB_HAS_FORTIFY_${level})
    if(SYNCBLOB_HAS_FORTIFY_${level})
      set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
      set(${out} "$<${optimised}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(harden_objects)
  if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 14)
    # Without these options clang would also warn about the user's linker flags.
    set(CMAKE_C_FLAGS "--start-no-unused-arguments ${CMAKE_C_FLAGS} --end-no-unused-arguments")
  endif()
  if(WIN32) # the flags would need a DLL beside the program
    message(STATUS "Hardening: this build uses no flag of c/hardening.txt")
    return()
  endif()
  file(STRINGS ${PROJECT_SOURCE_DIR}/c/hardening.txt flags REGEX "^-")
  find_fortification(options)
  set(left_out "")
  if(NOT options)
    set(left_out " -D_FORTIFY_SOURCE")
  endif()
  set(CMAKE_REQUIRED_FLAGS -Werror) # clang only warns of flags for other processors
  foreach(flag IN LISTS flags)
    string(MAKE_C_IDENTIFIER "SYNCBLOB_HAS${flag}" has)
    check_c_compiler_flag(${flag} ${has})
    if(${has})
      list(APPEND options ${flag})
    else()
      string(APPEND left_out " ${flag}")
    endif()
  endforeach()
  if(left_out)
    message(STATUS "Hardening: the compiler or this build does not support${left_out}")
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE ${options})
  endforeach()
endfunction()

# Sets link options: the loader resolves all addresses when it loads the library and makes them
# read-only; no code is writable.
function(harden_library target)
  set(options relro now noexecstack text)
  find_sanitizers(sanitized)
  if(NOT sanitized) # the sanitizers' symbols are defined only in the program
    list(APPEND options defs)
  endif()
  if(SYNCBLOB_HAS_fcf_protection_full)
    # In some distributions crti.o is not marked for CET, because its _init is not a valid target of
    # an indirect jump. The library does not need _init, since DT_INIT_ARRAY runs constructors.
    check_linker_flag(C "LINKER:-z,ibt,-z,shstk" SYNCBLOB_LINKS_CET)
    if(SYNCBLOB_LINKS_CET)
      list(APPEND options ibt shstk)
      target_link_options(${target} PRIVATE LINKER:-init,0 LINKER:-fini,0)
    endif()
  endif()
  if(SYNCBLOB_ZIG) # zig's linker refuses text relocations without an option
    list(REMOVE_ITEM options text)
  endif()
  list(TRANSFORM options PREPEND "LINKER:-z,")
  target_link_options(${target} PRIVATE ${options})
endfunction()
