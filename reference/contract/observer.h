#pragma once

#include <cstdint>

#include "reference/contract/config.h"
#include "reference/contract/stage.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// One layer's call as an observer sees it.
struct LayerCall {
  const ModelConfig& config;
  const LayerRole& role;
  CallShape shape;
  std::int64_t sequence = 0;
};

/// What an observer wants of a stage; the flags combine.
enum class Interest : std::uint8_t {
  nothing = 0,
  read = 1,       ///< look at the value
  replace = 2,    ///< may overwrite the value before anything downstream reads it
  unrounded = 4,  ///< also the float32 value before the last rounding, where the implementation has one
};

[[nodiscard]] constexpr Interest operator|(Interest a, Interest b) noexcept {
  return static_cast<Interest>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr bool wants(Interest set, Interest flag) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(flag)) != 0;
}

/// A stage's value in place.
struct StageView {
  const StageInfo& stage;
  TensorView value;      ///< writable only where `replace` was asked for
  TensorView unrounded;  ///< f32, same shape; data is null where not asked for or not available
};

/// Work queue of the memory's owner: null on the host, a cudaStream_t on a CUDA device.
struct Stream {
  void* handle = nullptr;
};

/// The one seam through which results are recorded, compared, restored and falsified.
/// An implementation asks interest() for every stage that exists in a call before it prepares the layer, then offers
/// each stage it was asked about, in table order. With no interest at all it runs its production plan unchanged.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  [[nodiscard]] virtual Interest interest(const LayerCall& call, const StageInfo& stage) = 0;

  /// Only enqueues work on `stream`; the view is valid until that work has run. On the host it runs at once.
  virtual void on_stage(const LayerCall& call, StageView& view, Stream stream) = 0;
};

/// Wants nothing: the production plan.
class NullObserver final : public Observer {
 public:
  [[nodiscard]] Interest interest(const LayerCall&, const StageInfo&) override { return Interest::nothing; }
  void on_stage(const LayerCall&, StageView&, Stream) override {}
};

}  // namespace attndiff
