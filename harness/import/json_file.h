#pragma once

#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attndiff {

/// A file opened for reading; throws Error(input) where it is no readable regular file.
[[nodiscard]] std::ifstream open_input(const std::string& path);

/// Parses a JSON object in which no key comes twice; `object` says which part of the file the text is. Throws
/// Error(input).
[[nodiscard]] nlohmann::json parse_json(const std::string& text, const std::string& file, const std::string& object);

/// The same from a whole file of at most 100 MB.
[[nodiscard]] nlohmann::json read_json(const std::string& path);

/// A JSON value as a message shows it, shortened.
[[nodiscard]] std::string json_text(const nlohmann::json& value);

}  // namespace attndiff
