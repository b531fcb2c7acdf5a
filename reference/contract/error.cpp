#include "reference/contract/error.h"

#include <utility>

#include "reference/contract/printable.h"

namespace attndiff {
namespace {

std::string sentence(const ErrorDetails& d) {
  std::string text;
  for (const std::string* part : {&d.file, &d.object}) {
    if (!part->empty()) {
      text += *part + ": ";
    }
  }
  text += d.problem;
  if (!d.expected.empty() || !d.found.empty()) {
    text += " (";
    if (!d.expected.empty()) {
      text += "expected " + d.expected;
    }
    if (!d.found.empty()) {
      text += (d.expected.empty() ? "found " : ", found ") + d.found;
    }
    text += ")";
  }
  return printable(text);
}

}  // namespace

Error::Error(ErrorKind kind, ErrorDetails details)
    : std::runtime_error(sentence(details)), kind_(kind), details_(std::move(details)) {}

Error::Error(ErrorKind kind, std::string problem)
    : Error(kind, ErrorDetails{.file = {}, .object = {}, .problem = std::move(problem), .expected = {}, .found = {}}) {}

Error Error::in_file(const std::string& file) const {
  ErrorDetails details = details_;
  if (details.file.empty()) {
    details.file = file;
  }
  return {kind_, std::move(details)};
}

}  // namespace attndiff
