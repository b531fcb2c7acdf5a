#include "reports/stage_order.h"

#include <algorithm>

namespace attndiff {

std::vector<std::string> stage_order(const RunReport& report) {
  std::vector<std::string> order;
  for (const FixtureReport& fixture : report.fixtures) {
    const ComparisonRecord* before = nullptr;
    for (const ComparisonRecord& c : fixture.comparisons) {
      const bool same_call = before != nullptr && before->step == c.step && before->layer_id == c.layer_id &&
                             before->mode == c.mode && before->candidate == c.candidate;
      if (std::find(order.begin(), order.end(), c.stage) == order.end()) {
        auto place = same_call ? std::find(order.begin(), order.end(), before->stage) + 1 : order.end();
        order.insert(place, c.stage);
      }
      before = &c;
    }
  }
  return order;
}

}  // namespace attndiff
