#pragma once

#include <string>
#include <string_view>

namespace attndiff {

/// The text on one line and harmless to a terminal: control characters become \n, \t, \r, \x1b and the like. What has
/// none comes back as it is. A name of a file may hold any.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace attndiff
