# cpack -G DEB makes packages with Debian's names: libsyncblobN and libsyncblob-dev; syncblob-tools
# with SYNCBLOB_BUILD_CLI; and a pair libsyncblob-NAMEN, libsyncblob-NAME-dev for testing,
# conformance, comm and, if its option is on, for mpi, opencl and net. cpack -G TGZ makes one
# archive. For packages, configure with CMAKE_INSTALL_PREFIX=/usr and CMAKE_BUILD_TYPE=Release.
include(GNUInstallDirs)
get_directory_property(SYNCBLOB_OPENBLAS_RUN_PATH DIRECTORY ${PROJECT_SOURCE_DIR}/c
                       DEFINITION SYNCBLOB_OPENBLAS_RUN_PATH)
set(CPACK_PACKAGE_NAME syncblob)
set(CPACK_PACKAGE_VENDOR "The syncblob developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
# A packager must set a working address.
if(NOT CPACK_PACKAGE_CONTACT)
  set(CPACK_PACKAGE_CONTACT "The syncblob developers <syncblob@example.org>")
endif()

# --- Debian: a package for each group of components -----------------------------

set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/debian/cpack.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(debian_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")

# The run path contains the serial OpenBLAS, so the package depends on that build of OpenBLAS.
set(debian_openblas "")
if(SYNCBLOB_OPENBLAS_RUN_PATH MATCHES "/openblas-serial$")
  set(debian_openblas "libopenblas0-serial")
endif()

# debian_package(GROUP NAME SECTION DEPENDS SUMMARY TEXT COMPONENT...)
set(CPACK_COMPONENTS_ALL "")
macro(debian_package group name section depends summary text)
  string(TOUPPER ${group} GROUP)
  set(CPACK_DEBIAN_${GROUP}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${GROUP}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${GROUP}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${GROUP}_DESCRIPTION "${summary}\n${text}")
  foreach(component IN ITEMS ${ARGN} debian_${group})
    string(TOUPPER ${component} COMPONENT)
    set(CPACK_COMPONENT_${COMPONENT}_GROUP ${group})
    list(APPEND CPACK_COMPONENTS_ALL ${component})
  endforeach()
endmacro()

set(about "Arrays with data and diff in host memory, on a device, or in both, which
are copied only when a call needs the other side; and Caffe's files
(caffemodel, solverstate, binaryproto), read safely and written back byte
for byte.")
set(development_depends "")
if(BUILD_SHARED_LIBS)
  get_target_property(soversion syncblob SOVERSION)
  set(library_package libsyncblob${soversion})
  debian_package(library ${library_package} libs "${debian_openblas}"
    "Caffe's Blob and SyncedMemory - shared library" "${about}" Runtime)
  list(APPEND development_depends "${library_package} (= ${debian_version})")
endif()
if(SYNCBLOB_PROTOBUF_C)
  list(APPEND development_depends "libprotobuf-c-dev")
endif()
if(SYNCBLOB_OPENBLAS)
  list(APPEND development_depends "libopenblas-serial-dev | libopenblas-dev")
endif()
list(JOIN development_depends ", " development_depends)
debian_package(development libsyncblob-dev libdevel "${development_depends}"
  "Caffe's Blob and SyncedMemory - development files" "${about}
.
This package has the headers, the static library, and the files by which
CMake and pkg-config find them." Development Static)
if(SYNCBLOB_BUILD_CLI)
  debian_package(tools syncblob-tools science ""
    "look into Caffe's model files and convert them"
    "The command syncblob lists layers and blobs of Caffe's files, verifies
untrusted files, compares files, shows mean images and filters as pictures,
and converts between Caffe's formats, safetensors and NumPy's formats." Tools)
endif()
# Adds the packages of a library that add_library_over added. If `below` is -OTHER, the library uses
# libsyncblob-OTHER, else the core. ARGN lists further packages that a program needs to link the library.
macro(debian_package_over name below summary text)
  string(TOUPPER ${name} NAME)
  component_of(${name} component)
  set(package libsyncblob-${name}${soversion})
  debian_package(${name} ${package} libs "libsyncblob${below}${soversion} (= ${debian_version})"
    "Caffe's Blob and SyncedMemory - ${summary}" "${text}" ${component})
  set(depends "${package} (= ${debian_version})" "libsyncblob${below}-dev (= ${debian_version})"
      ${ARGN})
  list(JOIN depends ", " depends)
  debian_package(${name}_development libsyncblob-${name}-dev libdevel "${depends}"
    "Caffe's Blob and SyncedMemory - ${summary}, development files" "${text}
.
This package has the header, the static library, and the files by which CMake
and pkg-config find them." ${component}Development)
  set(CPACK_DEBIAN_${NAME}_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/triggers)
endmacro()
if(BUILD_SHARED_LIBS)
  # dpkg-shlibdeps finds our own libraries in these folders: no installed package has them.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/c
      ${PROJECT_BINARY_DIR}/c/comm)
  debian_package_over(testing "" "failures for tests" "Tests of a program plant failures in the simulated device: it runs out of
memory, a copy fails late, the device is lost.")
  debian_package_over(conformance "" "the test of backends" "Authors of a backend, a table of functions that makes an accelerator usable,
test it claim by claim with the program syncblob-conformance.")
  debian_package_over(comm "" "communicators" "Ranks, which are processes or threads with a device each, sum the diffs of a
training step while the rest of the step is still being computed: over NCCL, or
over the program's own transport.")
  if(SYNCBLOB_MPI)
    debian_package_over(mpi -comm "communicators over MPI" "Ranks of MPI sum the diffs of a training step while the rest of the step is
still being computed. The library is built for this distribution's default
MPI." mpi-default-dev)
  endif()
  if(SYNCBLOB_OPENCL)
    debian_package_over(opencl "" "OpenCL devices" "Blobs on a device of OpenCL 2.0 or newer: a GPU, a processor, or any other whose
driver is installed." ocl-icd-opencl-dev)
  endif()
  if(SYNCBLOB_NET)
    debian_package_over(net "" "nets and ONNX" "Nets that prototxts and caffemodels describe, layer by layer, with the shapes of
all blobs, and the same nets as ONNX files.")
  endif()
endif()
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/triggers)

include(${CMAKE_CURRENT_LIST_DIR}/debian/documents.cmake)
include(CPack)
