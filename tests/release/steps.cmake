# Defines the steps of ./dev release, and the steps that only ./dev test --full runs, because they take
# hours or because most changes cannot break them. tests/steps/CMakeLists.txt includes this file.

# --- builds

fixture(all_least RUN build ${least})
fixture(all_tsan RUN build tsan tsan ${clang})
fixture(all_windows ON windows_packages RUN build_windows)
fixture(lto_gcc RUN build lto-gcc lto ${gcc})
fixture(lto_clang RUN build lto-clang lto ${clang} -- syncblob behaviour.blob_arithmetic behaviour.model_read behaviour.filler)
fixture(released_program LOCK cargo RUN cargo build --release --locked -p syncblob-cli)
fixture(s390x ON s390x_packages RUN build_for s390x s390x ${small})
fixture(aarch64 ON aarch64_packages RUN build_for aarch64 arm64)
fixture(musl RUN build_musl)
fixture(gpu_programs RUN build_gpu_programs x86_64 aarch64)

# --- ./dev test --full

set(section full)
set(rerun_by test)
step("C tests under valgrind, all" CORES ON release RUN memcheck release
  -R "^(behaviour|faults|input|fuzz)\\." -E ${not_bytes})
step("C tests, optimised, the slow ones too" CORES ON release RUN c_tests SYNCBLOB_TEST_FULL=1 release)
step("C tests, static, without any other library, all" CORES ON all_least RUN c_tests least)
step("C tests, races, all" CORES ON all_tsan RUN
  c_tests SYNCBLOB_STRESS_SECONDS=240 SYNCBLOB_TEST_FULL=1 tsan)
step("gcc LTO" CORES ON lto_gcc abi RUN c_tests lto-gcc)
step("clang LTO, some of the tests" ON lto_clang abi RUN c_tests lto-clang
  -R [[^(abi\.(exports|hardening_library)|behaviour.(blob_arithmetic|model_read|filler))$]])
step("planted errors: the tool" RUN mutate --selftest)
step("planted errors, 200 of them at random" CORES RUN mutate --sample 200)
step("locks, orders and waits, each weakened" CORES RUN mutate --threads)
step("the CUDA backend, each wait, push and pop left out" CORES LABELS cuda RUN mutate --cuda)
step("proofs, and errors that they refuse" CORES RUN prove --selftest)
step("coverage" CORES RUN coverage)
step("lists of errors against what the tests see" CORES RUN watch_errors)
step("clang-tidy: the library, more paths" CORES ON lint RUN tidy_library 225000)
step("clang-tidy: tests and harnesses" CORES ON lint RUN tidy_tests)
step("checks of the documentation find what is wrong" ON release program RUN check_pages ../selftest.py documents)

foreach(sanitizer IN ITEMS address undefined memory)
  step("fuzzers as ClusterFuzzLite builds them: ${sanitizer}" CORES ON fuzz RUN .clusterfuzzlite/check.sh ${sanitizer})
endforeach()
step("AFL++, as OSS-Fuzz builds the fuzzers, finds no bugs" CORES ON fuzz afl RUN .clusterfuzzlite/check.sh afl 15)
step("cargo test under AddressSanitizer" CORES RUN bindings/sanitize.sh address)
step("cargo test under ThreadSanitizer" CORES RUN bindings/sanitize.sh thread)
step("random calls of the safe crate" CORES RUN bindings/sanitize.sh fuzz 60)

step("time linear in the input, at full size" CORES ON release RUN
  ${linear} bombs --full)
step("time linear in counts, at full size" CORES ON release RUN
  ${linear} counts --full)
step("memory of the program" CORES ON release released_program RUN
  python3 tests/survival/input/cli_memory.py --cost ${cost} --cli ${released})
step("calls of Rust beside those of C" CORES RUN bench_rust)
step("a net's weights beside protobuf, OpenCV and scripts" CORES RUN bench_python --check)
step("ResNet-50 on 16 and 128 simulated hosts" CORES ON simgrid RUN bench_simgrid 16 128)

step("the crate over MPI" CORES ON mpi RUN tests/mpi/rust.sh)
step("communicators over MPI, two sanitizers" CORES ON mpi asan RUN
  tests/mpi/run.sh ${build}/asan -fsanitize=address,undefined)
step("programs for a GPU, on the fake driver" ON debug gpu_programs LABELS cuda RUN run_gpu_programs)
step("programs for a GPU without one, and for aarch64" ON aarch64_packages gpu_programs LABELS cuda RUN run_gpu_programs_elsewhere)
step("C tests, addresses, random schedules of the fake driver" CORES ON asan LABELS cuda RUN
  c_tests asan -R "^(fake|gpu)\\..*\\.random$")
step("tests on the fake driver" CORES ON debug LABELS cuda RUN c_tests debug -R "^(fake|gpu)")

# Omitted on other systems: scripts that use this machine's compilers, and tests that take minutes.
set(scripts "fuzz\\.mutations|abi\\.|(consumer|users|documents)\\.")
# Omitted under qemu-user: there programs cannot start themselves, are too slow for some time limits, and
# keep the memory of ended threads.
set(not_emulated "(fake\\.)?(threads\\.exit|faults\\.(mem|blob|dlpack)_faults)|fake\\.open|gpu\\.memory|threads\\.parallel_for|testing\\.sim")
foreach(machine IN ITEMS s390x aarch64)
  step("${machine}: imports and names" ON ${machine} LABELS cross RUN env NM=${machine}-linux-gnu-nm
    tests/project/abi/check_symbols.sh ${build}/${machine}/c/libsyncblob.a tests/project/abi/imports.txt)
  step("${machine}: tests" CORES ON ${machine} LABELS cross RUN emulated_tests ${machine}
    -E "^(${scripts}|${not_emulated})" -R "^(behaviour|faults|threads|input|fuzz|fake|gpu)\\.")
endforeach()
step("Windows: the headers, as clang-cl reads them" RUN check_windows_headers)
step("Windows: all tests" CORES ON all_windows LOCK wine RUN in_wine c_tests windows -E "^(${scripts})")
step("Windows: tests of the command" CORES ON windows program LOCK wine RUN test_windows_command)
foreach(machine IN ITEMS x86_64 aarch64)
  step("macOS, ${machine}: the library, linked, exports" CORES ON zig RUN check_macos ${machine})
  step("macOS, ${machine}: the command, linked" CORES ON zig RUN check_macos_command ${machine})
  step("the static command, ${machine}" CORES ON debian aarch64_packages program RUN check_static_commands ${machine})
  step("Python: the wheel that is published, ${machine}" CORES ON aarch64_packages RUN check_published_wheel ${machine})
endforeach()
# backend_load, fast_path and registry need the dynamic loader, which a static program does not have.
step("musl: tests" CORES ON musl RUN c_tests musl
  -E "^(${scripts}|behaviour\\.backend_load|threads\\.(fast_path|registry))")

step("the crates as users get them, all ways" CORES LOCK cargo RUN check_crates)
step("Debian packages" CORES ON debian RUN pack_debian)
step("Python: from the sources by pip" CORES RUN check_python_sources)
step("Python: \"cuda:0\" on the fake driver" ON debug wheel RUN check_python_cuda)
step("Python: PyTorch" ON torch wheel RUN check_python_torch)
step("Python: OpenCV 5 beside OpenCV 4" ON wheel RUN check_python_opencv)
step("Caffe on syncblob" CORES ON caffe opencl_packages program LABELS caffe RUN run_caffe)
step("ONNX: all nets' outputs are Caffe's" CORES ON released_program RUN ${onnx} tests/users/onnx/check.py nets
  --proto download:caffe.proto --command "${released} convert")
step("ONNX: a net with 2 GiB of weights" ON released_program RUN ${onnx} tests/users/onnx/options.py ${released} huge)
step("ONNX: OpenCV 4's answers to layers of forks are those that are kept" RUN
  python:opencv-4 tests/users/onnx/record.py forks -)

# --- ./dev test --full and ./dev release

set(both LABELS full)
set(section release)
# Takes half an hour on two idle cores.
fixture(onnx_peers RUN make_onnx_peers)
set(peers ${onnx} tests/users/onnx/peers.py ${cache}/peers ${released})
step("ONNX: no net is right by other converters and wrong here" CORES ON released_program onnx_peers ${both}
  RUN ${peers})
step("ONNX: what OpenCV 5 runs" CORES ON released_program onnx_peers ${both}
  RUN ${peers} --cases 20 --peer "CV 5 new" --peer "CV 5 classic")
step("crates: as the registry takes them" LOCK cargo ${both} RUN publish_dry)
step("crates: licences, versions and sources of what they need" ${both} RUN
  run_deny check -D warnings bans licenses sources)
step("crates: advisories on what they need" ${both} RUN check_advisories)
step("release: its checks find what is planted" ${both} RUN python3 -B tests/project/selftest.py release)

# --- ./dev release: if check_release fails, no other step runs

set(rerun_by release)
fixture(dist RUN begin_release)
set(made sources crates materials packages commands)
step("release: sources" ON dist RUN pack_sources)
step("release: the ABI against its baseline" ON dist abi RUN python3 -B tests/project/abi/interface.py compare)
step("release: crates" ON dist LOCK cargo RUN pack_crates)
step("release: materials" ON dist RUN list_materials)
step("release: packages" CORES ON dist debian RUN pack_debian ${build}/dist)
step("release: commands" CORES ON dist debian aarch64_packages windows_packages RUN pack_commands)
list(TRANSFORM made PREPEND "release: ")
step("release: checksums" ON dist AFTER "${made}" RUN sum_release)
