# What makes an error in memory harder to exploit: flags for our own objects and for the shared
# library. tests/abi/check_hardening.py looks at the result.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
option(SYNCBLOB_HARDENING "Stack protector, checked calls of the C library, CET, full RELRO" ON)

# Calls of the C library that know how large their buffers are: by glibc, where it is optimised, and
# not under sanitizers, which know better.
function(find_fortification out)
  set(${out} "" PARENT_SCOPE)
  if(CMAKE_C_FLAGS MATCHES "-fsanitize")
    return()
  endif()
  foreach(level 3 2)
    set(flags -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
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
  file(STRINGS ${PROJECT_SOURCE_DIR}/c/hardening.txt flags REGEX "^-")
  find_fortification(options)
  set(CMAKE_REQUIRED_FLAGS -Werror) # clang only warns of a flag for another processor
  foreach(flag IN LISTS flags)
    string(MAKE_C_IDENTIFIER "SYNCBLOB_HAS${flag}" has)
    check_c_compiler_flag(${flag} ${has})
    if(${has})
      list(APPEND options ${flag})
    endif()
  endforeach()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE ${options})
  endforeach()
endfunction()

# All addresses resolved at load time and read-only from then on, no code that is written.
function(harden_library target)
  set(options relro now noexecstack text)
  if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize") # whose run time the program brings
    list(APPEND options defs)
  endif()
  if(SYNCBLOB_HAS_fcf_protection_full)
    # Some distributions' crti.o does not say so: its _init would be jumped to without being a
    # target of jumps. Constructors are called by DT_INIT_ARRAY, so nothing needs it.
    check_linker_flag(C "LINKER:-z,ibt,-z,shstk" SYNCBLOB_LINKS_CET)
    if(SYNCBLOB_LINKS_CET)
      list(APPEND options ibt shstk)
      target_link_options(${target} PRIVATE LINKER:-init,0 LINKER:-fini,0)
    endif()
  endif()
  list(TRANSFORM options PREPEND "LINKER:-z,")
  target_link_options(${target} PRIVATE ${options})
endfunction()
