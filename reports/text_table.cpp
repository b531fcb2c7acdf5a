#include "reports/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reference/contract/error.h"
#include "reference/contract/printable.h"

namespace attndiff {
namespace {

constexpr const char* kGap = "  ";
constexpr const char* kIndent = "    ";

/// Columns a UTF-8 text takes, one a code point: continuation bytes take none.
std::size_t width_of(const std::string& text) noexcept {
  constexpr unsigned kTop = 0xC0U;
  constexpr unsigned kContinuation = 0x80U;
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & kTop) != kContinuation; }));
}

}  // namespace

std::string coloured(const std::string& text, const char* colour) {
  return colour == nullptr ? text : colour + text + "\x1b[0m";
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw Error(ErrorKind::internal,
                fmt::format("a table row of {} cells for {} columns", cells.size(), columns_.size()));
  }
  std::transform(cells.begin(), cells.end(), cells.begin(), [](const std::string& cell) { return printable(cell); });
  rows_.push_back({std::move(cells), {}});
}

void TextTable::note(const std::string& text) { rows_.back().notes.push_back(printable(text)); }

std::string TextTable::text(bool colour) const {
  if (rows_.empty()) {
    return {};
  }
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    titles.push_back(columns_[column].title);
    std::size_t width = width_of(titles.back());
    for (const Row& row : rows_) {
      width = std::max(width, width_of(row.cells[column]));
    }
    widths.push_back(width);
  }
  std::string text = line(titles, widths, false);
  for (const Row& row : rows_) {
    text += line(row.cells, widths, colour);
    for (const std::string& note : row.notes) {
      text += kIndent + note + "\n";
    }
  }
  return text;
}

std::string TextTable::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                            bool colour) const {
  std::string text;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const std::string padding(widths[column] - width_of(cells[column]), ' ');
    const bool last = column + 1 == cells.size();
    const auto hue = columns_[column].colour;
    const std::string cell = coloured(cells[column], colour && hue != nullptr ? hue(cells[column]) : nullptr);
    text += columns_[column].right ? padding + cell : cell + (last ? "" : padding);
    text += last ? "\n" : kGap;
  }
  return text;
}

}  // namespace attndiff
