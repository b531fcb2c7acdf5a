# Flags that every target of the project is built with, and the two ways a target is declared.

add_library(attndiff_flags INTERFACE)
target_include_directories(attndiff_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(
  attndiff_flags
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wno-sign-conversion
            -Werror
            # g++ 12 reports overlapping copies inside std::string operator+ that cannot happen (GCC bug 105651).
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
            # A product must not be contracted into a sum across a rounding; -ffast-math is never used.
            -ffp-contract=off
            # Messages name sources by their path in the repository, and builds elsewhere give the same bytes.
            -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# Eigen's fast roots of packets are not rounded: results would depend on where a tensor lies in memory.
target_compile_definitions(attndiff_flags INTERFACE EIGEN_FAST_MATH=0)
if(ATTNDIFF_ARCH AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(attndiff_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=${ATTNDIFF_ARCH}>)
endif()
if(ATTNDIFF_SANITIZE)
  # Of the undefined behaviour, null pointers are left to AddressSanitizer, and two checks that found nothing here and
  # cost a quarter of the time to compile are left out.
  target_compile_options(
    attndiff_flags
    INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined
              -fno-sanitize=null,object-size,vptr
              -fno-sanitize-recover=all
              -fno-omit-frame-pointer>)
  target_link_options(attndiff_flags INTERFACE -fsanitize=address,undefined)
endif()

# Code that runs briefly, tests and the command line, is not worth optimising: a sixth of a clean build went into that.
function(attndiff_compile_quickly target)
  target_compile_options(
    ${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:$<IF:$<BOOL:${ATTNDIFF_SANITIZE}>,-O0,-O1>>)
endfunction()

# A third of a test's compilation is GoogleTest's own headers. With ATTNDIFF_PRECOMPILE they are compiled once for all
# test programs, with the JSON library that those of reports and of the program read their output by; clang-tidy needs a
# build without.
if(ATTNDIFF_PRECOMPILE AND BUILD_TESTING)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cpp CONTENT "")
  add_library(attndiff_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cpp)
  target_link_libraries(attndiff_test_headers PRIVATE attndiff_flags GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)
  attndiff_compile_quickly(attndiff_test_headers)
  target_precompile_headers(attndiff_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
endif()
# attndiff_precompile(TARGET HEADER...): headers of libraries that most files of a target include.
function(attndiff_precompile target)
  if(ATTNDIFF_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
function(attndiff_precompile_tests target)
  if(ATTNDIFF_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM attndiff_test_headers)
  endif()
endfunction()

# attndiff_module(NAME [NUMERICS] PUBLIC a b PRIVATE c FOLDERS . sub): the static library attndiff_NAME from every .cpp
# (and, with a CUDA toolkit, .cu) file of the folders, and NAME_test, a GoogleTest program, from every *_test.cpp beside
# them. NUMERICS: what these tests are about depends on how the compiler optimises, so they have the label "numerics" and
# belong to the target numerics_tests.
add_custom_target(numerics_tests)
function(attndiff_module name)
  cmake_parse_arguments(ARG "NUMERICS" "" "PUBLIC;PRIVATE;FOLDERS" ${ARGN})
  set(patterns "")
  foreach(folder . ${ARG_FOLDERS})
    list(APPEND patterns ${folder}/*.cpp)
    if(ATTNDIFF_HAVE_CUDA)
      list(APPEND patterns ${folder}/*.cu)
    endif()
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  add_library(attndiff_${name} STATIC ${sources})
  target_link_libraries(attndiff_${name} PUBLIC attndiff_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  if(BUILD_TESTING AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE attndiff_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE ATTNDIFF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    attndiff_compile_quickly(${name}_test)
    attndiff_precompile_tests(${name}_test)
    set(label "")
    if(ARG_NUMERICS)
      set(label LABELS numerics)
      add_dependencies(numerics_tests ${name}_test)
    endif()
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 ${label})
  endif()
endfunction()
