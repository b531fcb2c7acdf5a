#pragma once

#include <CLI/App.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "harness/cli/files.h"
#include "harness/compare/report.h"
#include "harness/run/listener.h"
#include "reports/progress_line.h"

namespace attndiff::cli {

/// Where a run's report goes. An empty path: nowhere.
struct OutputOptions {
  std::string json;
  std::string junit;
  std::string html;
  std::string markdown;
  bool verbose = false;
  bool quiet = false;
};

/// Adds --json, --junit, --html, --markdown, --verbose and --quiet.
void add_output_options(CLI::App& command, OutputOptions& options);

/// The files that the reports go to, each with its option.
[[nodiscard]] std::vector<NamedFile> files_of(const OutputOptions& options);

/// Writes the files asked for, each whole or not at all. One that cannot be written becomes a problem of the run.
void write_outputs(RunReport& report, const OutputOptions& options);

/// Prints the annotations that a GitHub workflow takes, where this is one; then `notes`, and the table.
void print_report(const RunReport& report, const OutputOptions& options, const std::string& notes);

/// Whether text on that stream may be coloured: a terminal, and NO_COLOR is unset or empty.
[[nodiscard]] bool colours(std::FILE* stream);

/// A progress bar on stderr, where that is a terminal and --quiet is not given; else nothing.
class ProgressBar final : public ReplayListener {
 public:
  ProgressBar(std::size_t fixtures, const OutputOptions& options);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() override;

  void on_fixture(std::size_t layer_calls) override;
  void on_layer_call(std::size_t index) override;
  /// The fixture in hand has been replayed.
  void finish_fixture();

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  bool shown_;
  bool drawn_ = false;
  ProgressState state_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace attndiff::cli
