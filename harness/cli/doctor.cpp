#include <H5public.h>
#include <fmt/core.h>

#include <toml++/toml.h>
#include <CLI/Version.hpp>
#include <Eigen/Core>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/backends/registry.h"
#include "harness/cli/commands.h"
#include "harness/cli/standard_output.h"
#include "harness/compare/contract.h"
#include "harness/version.h"

namespace attndiff::cli {
namespace {

std::string hdf5_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

/// The compiler with its version; Clang's says its own name.
const char* compiler() {
#if defined(__clang__)
  return __VERSION__;
#else
  return "GCC " __VERSION__;
#endif
}

/// The instruction set the CPU code was built for, as far as it matters to products.
const char* vector_set() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#else
  return "the compiler's default vectors";
#endif
}

/// The comparator's truth table, each case run now.
ExitCode print_contract() {
  print_output("{}", contract_text());
  const auto cases = comparator_contract();
  const bool kept = std::all_of(cases.begin(), cases.end(), [](const ContractCase& c) {
    const Comparison result = c.run();
    return result.verdict == c.expected && result.counted == c.counted;
  });
  return kept ? kPassed : kFailed;
}

ExitCode diagnose() {
  print_output("{}\n", version_text());
  print_output("built with {} for {}\n", compiler(), vector_set());
  print_output("libraries  Eigen {}.{}.{}, HDF5 {}, fmt {}.{}.{}, CLI11 {}, nlohmann-json {}.{}.{}, toml++ {}.{}.{}\n",
               EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, hdf5_version(), FMT_VERSION / 10000,
               FMT_VERSION / 100 % 100, FMT_VERSION % 100, CLI11_VERSION, NLOHMANN_JSON_VERSION_MAJOR,
               NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, TOML_LIB_MAJOR, TOML_LIB_MINOR,
               TOML_LIB_PATCH);
  for (const BackendStatus& status : backend_statuses(0)) {
    print_output("backend {:<9} {}  {}\n", status.name, status.usable ? "usable  " : "unusable", status.detail);
  }
  print_output("without --candidate, `attndiff replay` compares cpu against {} here\n", default_candidate());
  return kPassed;
}

}  // namespace

void add_doctor(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand("doctor", "Versions, GPU, and which backends can run here");
  const auto contract = std::make_shared<bool>(false);
  command->add_flag("--contract", *contract, "print what the comparator makes of every kind of value, and check it");
  command->callback([contract, &exit_code] { exit_code = *contract ? print_contract() : diagnose(); });
}

}  // namespace attndiff::cli
