#include "harness/run/announced.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "harness/fixture/reader.h"

namespace attndiff {
namespace {

/// Passes everything on, and says afterwards which stage was offered.
class AnnouncingObserver final : public Observer {
 public:
  AnnouncingObserver(Observer& inner, ReplayListener& listener) : inner_(inner), listener_(listener) {}

  [[nodiscard]] Interest interest(const LayerCall& call, const StageInfo& stage) override {
    const Interest wanted = inner_.interest(call, stage);
    if (wanted != Interest::nothing) {
      due_.push_back(&stage);
    }
    return wanted;
  }
  void on_stage(const LayerCall& call, StageView& view, Stream stream) override {
    inner_.on_stage(call, view, stream);
    const auto here = std::find_if(due_.begin(), due_.end(), [&](const auto* due) { return due->id == view.stage.id; });
    const bool more = here != due_.end() && std::next(here) != due_.end();
    listener_.on_offered(view.stage, more ? *std::next(here) : nullptr);
  }

 private:
  Observer& inner_;
  ReplayListener& listener_;
  std::vector<const StageInfo*> due_;  ///< wanted, in table order
};

/// Says that the candidate has returned, also when it throws.
class Return {
 public:
  explicit Return(ReplayListener& listener) : listener_(listener) {}
  Return(const Return&) = delete;
  Return& operator=(const Return&) = delete;
  ~Return() { listener_.on_return(); }

 private:
  ReplayListener& listener_;
};

class AnnouncedSequence final : public Sequence {
 public:
  AnnouncedSequence(std::unique_ptr<Sequence> inner, CallPlace place, const FixtureReader& fixture,
                    ReplayListener& listener)
      : inner_(std::move(inner)), place_(std::move(place)), fixture_(fixture), listener_(listener) {}

  [[nodiscard]] const Slots* slots() const override { return inner_->slots(); }

  void forward(const LayerInput& input, Observer& observer) override {
    const LayerRole& role = fixture_.layers()[input.layer];
    place_.step = input.step;
    place_.start_pos = input.shape.start_pos;
    place_.tokens = input.shape.tokens;
    place_.layer = input.layer;
    place_.layer_id = role.layer_id;
    place_.layer_kind = kind_of(role);
    listener_.on_enter(place_);
    const Return back(listener_);
    AnnouncingObserver announcing(observer, listener_);
    inner_->forward(input, announcing);
  }

 private:
  std::unique_ptr<Sequence> inner_;
  CallPlace place_;
  const FixtureReader& fixture_;
  ReplayListener& listener_;
};

}  // namespace

std::unique_ptr<Sequence> start_announced(Backend& candidate, const FixtureReader& fixture, const char* mode,
                                          ReplayListener& listener) {
  CallPlace place;
  place.candidate = candidate.name();
  place.mode = mode;
  listener.on_enter(place);
  const Return back(listener);
  return std::make_unique<AnnouncedSequence>(candidate.start(fixture), std::move(place), fixture, listener);
}

}  // namespace attndiff
