#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attndiff {

/// Colours of a terminal, as the sequences that switch them on.
inline constexpr const char* kRed = "\x1b[31m";
inline constexpr const char* kGreen = "\x1b[32m";
inline constexpr const char* kYellow = "\x1b[33m";

/// The text between a colour's sequence and the one that ends it; unchanged for null.
[[nodiscard]] std::string coloured(const std::string& text, const char* colour);

/// Plain text in columns, each as wide as its widest cell. The last column is never padded.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  ///< numbers are set flush right
    /// The colour of a cell, or null; null: the column has none.
    const char* (*colour)(const std::string& cell) = nullptr;
  };

  explicit TextTable(std::vector<Column> columns);

  /// One cell per column; throws Error(internal) otherwise.
  void add(std::vector<std::string> cells);
  /// A line of free text below the last row, indented.
  void note(const std::string& text);

  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  /// Title line and rows, each ending in a newline; nothing for an empty table.
  [[nodiscard]] std::string text(bool colour = false) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> notes;
  };

  [[nodiscard]] std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                                 bool colour) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace attndiff
