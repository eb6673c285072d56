# Tests that are not built for Windows.
set(left_out
  # These tests need POSIX files: owners, modes, pipes, failing calls. tests/windows tests other files.
  behaviour/test_file behaviour/test_io faults/test_formats
  # These tests call fork, which Windows lacks.
  comm/tests/test_fork testing/tests/test_sim faults/test_quarantine threads/test_exit threads/test_fork
  # These tests make the linker or the loader replace functions of the C library.
  behaviour/test_page_size behaviour/test_stack behaviour/test_base faults/test_replace
  faults/test_system_memory threads/test_fast_path threads/test_parallel_for
  # These tests use pages of mmap, some without access, or the memory sizes in /proc.
  behaviour/test_blob_bytes behaviour/test_host_arithmetic input/test_memory input/test_struct_sizes comm/tests/test_struct_sizes)
list(JOIN left_out "|" left_out_on_windows)
