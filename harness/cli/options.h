#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

namespace attndiff::cli {

/// Adds an option with a text that is not empty, such as the name of a file: an empty one would mean what leaving the
/// option out means.
CLI::Option* add_text_option(CLI::App& command, const std::string& name, std::string& text,
                             const std::string& description);

/// Takes whole numbers from `least` to `most`, in decimal.
[[nodiscard]] CLI::Validator whole_number(std::int64_t least, std::int64_t most);

/// Adds --threads.
void add_threads_option(CLI::App& command, int& threads);

}  // namespace attndiff::cli
