# `cmake --install BUILD --prefix FOLDER` makes a folder that runs on a bare GPU machine wherever it is put: the program,
# the GPU tests, the bundled fixtures, the gate's script, and the shared libraries such a machine lacks. The C and C++
# runtimes and CUDA's own libraries stay out: they belong to that machine and its driver.

set(installed attndiff)
if(ATTNDIFF_HAVE_CUDA AND BUILD_TESTING)
  list(APPEND installed kernels_test device_test)
endif()
set_target_properties(${installed} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(
  TARGETS ${installed}
  RUNTIME_DEPENDENCY_SET shared_libraries
  RUNTIME DESTINATION bin)
install(
  RUNTIME_DEPENDENCY_SET
  shared_libraries
  PRE_EXCLUDE_REGEXES
  "^ld-linux"
  "^lib(c|m|dl|rt|pthread|resolv)\\.so"
  "^lib(stdc\\+\\+|gcc_s|gomp)\\.so"
  "^lib(cublas|cublasLt|cudart|cuda|nv).*"
  DESTINATION lib)
install(PROGRAMS scripts/gpu_gate.sh DESTINATION bin)
install(DIRECTORY fixtures/ DESTINATION share/attndiff/fixtures)
