#include "harness/cli/options.h"

#include <fmt/format.h>

#include <charconv>

#include "reference/contract/printable.h"

namespace attndiff::cli {

CLI::Option* add_text_option(CLI::App& command, const std::string& name, std::string& text,
                             const std::string& description) {
  return command.add_option(name, text, description)
      ->check(CLI::Validator([](const std::string& value) { return value.empty() ? "must not be empty" : ""; }, ""));
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const std::string range = fmt::format("{} to {}", least, most);
  const auto check = [=](std::string& text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, problem] = std::from_chars(text.data(), end, value);
    const bool fits = problem == std::errc{} && rest == end && least <= value && value <= most;
    if (fits) {
      text = std::to_string(value);  // CLI11 would read a leading zero as octal
    }
    return fits ? std::string() : fmt::format("expected a whole number from {}, found '{}'", range, printable(text));
  };
  return {check, range, ""};
}

void add_threads_option(CLI::App& command, int& threads) {
  constexpr std::int64_t kMost = 1024;
  command.add_option("--threads", threads, "CPU threads; 0 takes the machine's; results do not depend on it")
      ->check(whole_number(0, kMost))
      ->capture_default_str();
}

}  // namespace attndiff::cli
