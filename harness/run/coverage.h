#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/fixture/coverage_counters.h"
#include "reference/contract/observer.h"
#include "reference/contract/tensor.h"
#include "reference/thread_pool.h"

namespace attndiff {

/// How often a fixture exercises each of coverage_counters(). Every counter is present from the start.
class Coverage {
 public:
  Coverage();

  /// Throws Error(internal) for a name that is no counter.
  [[nodiscard]] std::int64_t at(std::string_view counter) const;
  void add(std::string_view counter, std::int64_t count = 1);
  /// Adds another part of the same fixture, or another fixture.
  void merge(const Coverage& other);
  [[nodiscard]] const std::map<std::string, std::int64_t, std::less<>>& all() const noexcept { return counts_; }

 private:
  std::map<std::string, std::int64_t, std::less<>> counts_;
};

/// The named counters that are zero, in the order named.
[[nodiscard]] std::vector<std::string> unmet(const Coverage& coverage, std::span<const std::string> names);

/// Counts what the calls of one fixture exercise, in order, from the values of one implementation's stages. It reads,
/// where they exist, candidates, selection, idx and every stage of real numbers or codes, on the host; they must be the
/// reference's, since what a wrong candidate exercises says nothing about the fixture.
/// Another observer may share the run: pass interest() and on_stage() on, or give count() what was captured.
class CoverageCounter final : public Observer {
 public:
  /// A call's tensor by stage id, or nullptr where the call has no such stage.
  using Lookup = std::function<const Tensor*(int)>;

  /// `pool`, which may be null, shares the work of large tensors; it must outlive this.
  explicit CoverageCounter(reference::ThreadPool* pool = nullptr) : pool_(pool) {}

  [[nodiscard]] Interest interest(const LayerCall& call, const StageInfo& stage) override;
  /// Counts the call when `out`, the last stage, arrives. Throws Error(internal) for device memory.
  void on_stage(const LayerCall& call, StageView& view, Stream stream) override;

  /// Counts one call from captured tensors.
  void count(const LayerCall& call, const Lookup& find);

  /// Counts the rows of a layer's input in one call: bf16 [tokens, dim].
  void count_inputs(const Tensor& x);

  /// The mask that a layer's call takes from the fixture (shared_in) instead of from a candidate source: u8
  /// [tokens, len]. To be given before that call.
  void shared_candidates(const Tensor& mask) { candidates_ = mask; }

  [[nodiscard]] const Coverage& coverage() const noexcept { return coverage_; }

 private:
  using LayerKey = std::pair<std::int64_t, std::int64_t>;  // sequence, layer_id

  void count_call_shape(const LayerCall& call);
  void count_prefill(const LayerCall& call);
  void count_zero_blocks(const Lookup& find);
  void count_candidates(const LayerCall& call, const Tensor& scores, const Tensor& mask);
  void count_selection(const LayerCall& call, const Tensor& scores, const Tensor& picks);
  void count_indices(const Tensor& idx);

  reference::ThreadPool* pool_;
  Coverage coverage_;
  std::map<int, Tensor> values_;      // stages of the call in progress
  std::map<LayerKey, bool> decoded_;  // layers seen, and whether they have decoded since the sequence began
  Tensor candidates_;                 // the mask published last
};

}  // namespace attndiff
