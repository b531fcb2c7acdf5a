#include "harness/run/repro.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "reference/contract/printable.h"

namespace attndiff {

namespace {

/// $'...': how bash, zsh and newer shells take control characters on one line.
std::string ansi_quoted(const std::string& word) {
  std::string inside;
  for (const char c : word) {
    inside += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  }
  return "$'" + printable(inside) + "'";
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  if (const std::string line = printable(word); line != word) {
    return ansi_quoted(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string repro_command(const ReproParts& p) {
  // Production and repeated runs come with a free one, and are compared with it.
  const bool beside_free = p.mode == "production" || p.mode == "repeat";
  std::string command = fmt::format("attndiff replay --reference {} --candidate {} --mode {} --layers {} --steps {}",
                                    shell_quoted(p.reference), shell_quoted(p.candidate), beside_free ? "free" : p.mode,
                                    p.layer_id, p.step);
  command += fmt::format(" --stages {}", p.stage);
  if (p.mode == "repeat") {
    command += fmt::format(" --repeat {}", p.repeat);
  }
  if (!p.tolerance_file.empty()) {
    command += fmt::format(" --tolerances {}", shell_quoted(p.tolerance_file));
  }
  return command + " " + shell_quoted(p.fixture);
}

}  // namespace attndiff
