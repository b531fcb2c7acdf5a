# Run at every build: writes version.cpp when the commit or the toolkit has changed, and leaves it alone otherwise.
# -D SOURCE_DIR, OUTPUT, PROJECT_VERSION, ATTNDIFF_CUDA_TEXT

execute_process(
  COMMAND git describe --always --abbrev=40 --dirty --exclude=*
  WORKING_DIRECTORY ${SOURCE_DIR}
  OUTPUT_VARIABLE ATTNDIFF_COMMIT
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET
  RESULT_VARIABLE failed)
if(failed OR NOT ATTNDIFF_COMMIT)
  set(ATTNDIFF_COMMIT "unknown")
endif()
configure_file(${SOURCE_DIR}/harness/version.cpp.in ${OUTPUT} @ONLY)
