#include "harness/cli/outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "harness/cli/options.h"
#include "harness/cli/standard_output.h"
#include "reference/contract/error.h"
#include "reports/annotations.h"
#include "reports/atomic_file.h"
#include "reports/html.h"
#include "reports/json.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/table.h"

namespace attndiff::cli {
namespace {

/// One kind of report file.
struct Writer {
  const char* option;
  std::string OutputOptions::*path;
  std::string (*text)(const RunReport&);
};

constexpr Writer kWriters[] = {{"--json", &OutputOptions::json, json_text},
                               {"--junit", &OutputOptions::junit, junit_text},
                               {"--html", &OutputOptions::html, html_text},
                               {"--markdown", &OutputOptions::markdown, markdown_text}};

/// The variable's value, empty where it is unset.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

void add_output_options(CLI::App& command, OutputOptions& options) {
  add_text_option(command, "--json", options.json, "write the report, schema attndiff-report/1");
  add_text_option(command, "--junit", options.junit, "write the report as JUnit XML, for CI servers");
  add_text_option(command, "--html", options.html, "write the report as one HTML file, for people");
  add_text_option(command, "--markdown", options.markdown,
                  "write the report as Markdown, for a pull request's comment");
  CLI::Option* verbose = command.add_flag("-v,--verbose", options.verbose, "a line for every comparison");
  command.add_flag("-q,--quiet", options.quiet, "no table of what passed, and no progress bar")->excludes(verbose);
}

std::vector<NamedFile> files_of(const OutputOptions& options) {
  std::vector<NamedFile> files;
  for (const Writer& writer : kWriters) {
    files.push_back({.role = writer.option, .path = options.*writer.path});
  }
  return files;
}

void write_outputs(RunReport& report, const OutputOptions& options) {
  for (const Writer& writer : kWriters) {
    const std::string& path = options.*writer.path;
    if (path.empty()) {
      continue;
    }
    try {
      write_atomically(path, writer.text(report));
    } catch (const Error& e) {
      report.problems.push_back({.kind = e.kind(), .message = e.what()});
    }
  }
}

void print_report(const RunReport& report, const OutputOptions& options, const std::string& notes) {
  const std::string annotations = environment("GITHUB_ACTIONS") == "true" ? annotations_text(report) : std::string();
  print_output("{}{}{}", annotations, notes,
               table_text(report, {.verbose = options.verbose, .quiet = options.quiet, .colour = colours(stdout)}));
}

bool colours(std::FILE* stream) {
  return ::isatty(::fileno(stream)) == 1 && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

ProgressBar::ProgressBar(std::size_t fixtures, const OutputOptions& options)
    : shown_(!options.quiet && ::isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb") {
  state_.fixtures = fixtures;
}

ProgressBar::~ProgressBar() {
  if (drawn_) {
    std::fputs("\r\x1b[K", stderr);
  }
}

void ProgressBar::on_fixture(std::size_t layer_calls) {
  state_.calls = layer_calls;
  draw();
}

void ProgressBar::on_layer_call(std::size_t index) {
  state_.calls_begun = index;
  draw();
}

void ProgressBar::finish_fixture() {
  ++state_.finished;
  state_.calls = state_.calls_begun = 0;
  draw();
}

void ProgressBar::draw() {
  constexpr auto kPatience = std::chrono::seconds(1);  // a short run needs no bar
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  if (!shown_ || now - start_ < kPatience || (drawn_ && now - last_ < kInterval)) {
    return;
  }
  last_ = now;
  drawn_ = true;
  state_.seconds = std::chrono::duration<double>(now - start_).count();
  print_error("\r\x1b[K{}", progress_line(state_));
}

}  // namespace attndiff::cli
