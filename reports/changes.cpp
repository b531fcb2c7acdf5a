#include "reports/changes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace attndiff {
namespace {

using Key = std::tuple<std::string, std::string, std::string, std::size_t, std::int64_t, std::string>;
using TimingKey = std::tuple<std::string, std::string, std::string>;

/// A report's comparisons by name, in the report's order.
struct Index {
  std::vector<Key> order;
  std::map<Key, const ComparisonRecord*> records;
};

Index index_of(const RunReport& report) {
  Index index;
  for (const FixtureReport& fixture : report.fixtures) {
    for (const ComparisonRecord& c : fixture.comparisons) {
      Key key{fixture.path, c.candidate, c.mode, c.step, c.layer_id, c.stage};
      const auto [known, is_new] = index.records.try_emplace(key, &c);
      if (is_new) {
        index.order.push_back(std::move(key));
      } else if (c.fails() && !known->second->fails()) {
        known->second = &c;
      }
    }
  }
  return index;
}

/// Whether the comparison said anything.
bool judged(const ComparisonRecord& c) noexcept { return c.verified() || fails_run(c.result.verdict); }

bool headroom_shrank(const ComparisonRecord& before, const ComparisonRecord& after, double factor) noexcept {
  if (!before.verified() || !after.verified() || !after.result.bound_ratio.has_value()) {
    return false;
  }
  // Both verified, but only one has a bound: the rule changed, not the headroom.
  return before.result.bound_ratio.has_value() &&
         *after.result.bound_ratio > factor * std::max(*before.result.bound_ratio, kRatioFloor);
}

void compare_records(const Index& before, const Index& after, double factor, Changes& changes) {
  for (const Key& key : before.order) {
    const ComparisonRecord* old = before.records.at(key);
    const auto found = after.records.find(key);
    const ComparisonRecord* now = found == after.records.end() ? nullptr : found->second;
    const ComparisonChange change{.fixture = std::get<0>(key), .before = old, .after = now};
    changes.in_common += now != nullptr ? 1 : 0;
    if (now == nullptr || !judged(*now)) {
      if (judged(*old)) {
        changes.vanished.push_back(change);
      }
    } else if (now->fails() && !old->fails()) {
      changes.newly_failing.push_back(change);
    } else if (old->fails() && !now->fails()) {
      changes.mended.push_back(change);
    } else if (headroom_shrank(*old, *now, factor)) {
      changes.shrunk.push_back(change);
    }
  }
  for (const Key& key : after.order) {
    const ComparisonRecord* now = after.records.at(key);
    if (before.records.contains(key) || !judged(*now)) {
      continue;
    }
    (now->fails() ? changes.newly_failing : changes.appeared)
        .push_back({.fixture = std::get<0>(key), .before = nullptr, .after = now});
  }
}

void compare_fixtures(const RunReport& before, const RunReport& after, Changes& changes) {
  std::map<std::string, const FixtureReport*> now;
  for (const FixtureReport& fixture : after.fixtures) {
    now[fixture.path] = &fixture;
  }
  for (const FixtureReport& old : before.fixtures) {
    const auto found = now.find(old.path);
    if (found == now.end()) {
      changes.fixtures.push_back({.fixture = old.path, .what = "not in the new report"});
    }
  }
  std::map<std::string, bool> was_bad;
  for (const FixtureReport& old : before.fixtures) {
    was_bad[old.path] = old.error.has_value() || !old.uncovered.empty();
  }
  for (const FixtureReport& fixture : after.fixtures) {
    if (was_bad[fixture.path]) {
      continue;
    }
    if (fixture.error.has_value()) {
      changes.fixtures.push_back({.fixture = fixture.path, .what = "in error now: " + *fixture.error});
    }
    for (const std::string& counter : fixture.uncovered) {
      changes.fixtures.push_back({.fixture = fixture.path, .what = "never exercises now: " + counter});
    }
  }
}

void compare_timings(const RunReport& before, const RunReport& after, Changes& changes) {
  std::map<TimingKey, const Timing*> old;
  for (const FixtureReport& fixture : before.fixtures) {
    for (const Timing& t : fixture.timings) {
      old[{fixture.path, t.backend, t.mode}] = &t;
    }
  }
  for (const FixtureReport& fixture : after.fixtures) {
    for (const Timing& t : fixture.timings) {
      const auto found = old.find({fixture.path, t.backend, t.mode});
      if (found == old.end() || found->second->seconds.empty() || t.seconds.empty()) {
        continue;
      }
      TimingChange change{.fixture = fixture.path,
                          .backend = t.backend,
                          .mode = t.mode,
                          .before = found->second->seconds,
                          .after = t.seconds};
      if (change.before.size() < 2 || change.after.size() < 2) {
        ++changes.timings_without_spread;
        continue;
      }
      ++changes.timings_compared;
      const auto [old_least, old_most] = std::minmax_element(change.before.begin(), change.before.end());
      const auto [new_least, new_most] = std::minmax_element(change.after.begin(), change.after.end());
      if (*new_least > *old_most) {
        changes.slower.push_back(std::move(change));
      } else if (*new_most < *old_least) {
        changes.faster.push_back(std::move(change));
      }
    }
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double TimingChange::ratio() const { return median(after) / median(before); }

Changes changes_between(const RunReport& before, const RunReport& after, const ChangeOptions& options) {
  Changes changes;
  compare_records(index_of(before), index_of(after), options.headroom_factor, changes);
  compare_fixtures(before, after, changes);
  compare_timings(before, after, changes);
  return changes;
}

}  // namespace attndiff
