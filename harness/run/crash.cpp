#include "harness/run/crash.h"

#include <fmt/format.h>

namespace attndiff {
namespace {

std::string how_far(const CallTracker& where) {
  if (where.place().tokens == 0) {
    return "while it started the sequence";
  }
  if (where.offered().empty()) {
    return "before it offered a stage";
  }
  return where.due().empty() ? "after it offered " + where.offered()
                             : fmt::format("after it offered {}, before {}", where.offered(), where.due());
}

}  // namespace

void CallTracker::on_enter(const CallPlace& place) {
  place_ = place;
  inside_ = true;
  offered_.clear();
  due_.clear();
  next_.on_enter(place);
}

void CallTracker::on_offered(const StageInfo& stage, const StageInfo* next) {
  offered_ = stage.name;
  due_ = next == nullptr ? "" : next->name;
  next_.on_offered(stage, next);
}

void CallTracker::on_return() {
  inside_ = false;
  next_.on_return();
}

ComparisonRecord crashed_comparison(const CallTracker& where, std::string_view why, std::string_view result_stage,
                                    ReproParts repro) {
  const CallPlace& place = where.place();
  ComparisonRecord record;
  record.step = place.step;
  record.start_pos = place.start_pos;
  record.tokens = place.tokens;
  record.layer_id = place.layer_id;
  record.layer_kind = place.layer_kind;
  record.candidate = place.candidate;
  record.mode = place.mode;
  record.stage = where.due().empty() ? result_stage : where.due();
  record.result.verdict = Verdict::crashed;
  record.result.reason = fmt::format("{}, {}", why, how_far(where));
  repro.candidate = place.candidate;
  repro.mode = place.mode;
  repro.layer_id = place.layer_id;
  repro.step = place.step;
  repro.stage = record.stage;
  record.repro = repro_command(repro);
  return record;
}

}  // namespace attndiff
