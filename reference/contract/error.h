#pragma once

#include <stdexcept>
#include <string>

namespace attndiff {

/// What kind of failure an Error reports. Only the command line turns a kind into an exit code.
enum class ErrorKind {
  usage,        ///< the caller asked for something that makes no sense
  input,        ///< a file that cannot be read, or whose contents contradict themselves
  refused,      ///< a call that the attention specification refuses (missing slot, two-token decode, ...)
  unavailable,  ///< a backend that cannot run on this machine
  output,       ///< a result that could not be written
  internal,     ///< a defect of this program
};

/// The parts of an error message. Empty parts are left out of the text.
struct ErrorDetails {
  std::string file;      ///< path of the file concerned
  std::string object;    ///< object inside it (an HDF5 path), or the layer, slot or argument concerned
  std::string problem;   ///< what is wrong, in a few words
  std::string expected;  ///< what was due
  std::string found;     ///< what was there instead
};

/// One failure as a value: kind and parts stay readable, what() is the sentence a user sees,
/// "FILE: OBJECT: PROBLEM (expected E, found F)", on one line: see printable().
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, ErrorDetails details);
  Error(ErrorKind kind, std::string problem);

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const ErrorDetails& details() const noexcept { return details_; }

  /// The same error seen from an outer edge that knows the file.
  [[nodiscard]] Error in_file(const std::string& file) const;

 private:
  ErrorKind kind_;
  ErrorDetails details_;
};

}  // namespace attndiff
