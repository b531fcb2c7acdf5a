#pragma once

#include <string_view>

namespace attndiff::html_assets {

/// The files under reports/html, embedded when the program is built.
[[nodiscard]] std::string_view page() noexcept;    ///< page.html, with {{NAME}} where text goes
[[nodiscard]] std::string_view style() noexcept;   ///< style.css
[[nodiscard]] std::string_view script() noexcept;  ///< the scripts, in the order in which they need each other

}  // namespace attndiff::html_assets
