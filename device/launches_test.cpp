#include "device/launches.h"

#include <gtest/gtest.h>

namespace attndiff::device {
namespace {

/// Whether a table's entry is that function itself.
template <typename Result, typename... Args>
bool is(const std::function<Result(Args...)>& entry, Result (*function)(Args...)) {
  const auto* target = entry.template target<Result (*)(Args...)>();
  return target != nullptr && *target == function;
}

TEST(Launches, TheDefaultsAreTheImplementation) {
  const Launches l;
  EXPECT_TRUE(
      is(l.rms_norm, static_cast<void (*)(const kernels::RmsNormArgs&, cudaStream_t)>(kernels::launch_rms_norm)));
  EXPECT_TRUE(is(l.rotary, kernels::launch_rotary));
  EXPECT_TRUE(is(l.quantize, kernels::launch_quantize));
  EXPECT_TRUE(is(l.scale, kernels::launch_scale));
  EXPECT_TRUE(is(l.matvec, kernels::launch_matvec));
  EXPECT_TRUE(is(l.multiply, multiply));
  EXPECT_TRUE(is(l.ring_write, kernels::launch_ring_write));
  EXPECT_TRUE(is(l.index_build, kernels::launch_index_build));
  EXPECT_TRUE(is(l.compressor_product, kernels::launch_compressor_product));
  EXPECT_TRUE(is(l.pool, kernels::launch_pool));
  EXPECT_TRUE(is(l.partial_write, kernels::launch_partial_write));
  EXPECT_TRUE(is(l.fill, kernels::launch_fill));
  EXPECT_TRUE(is(l.index_scores, kernels::launch_index_scores));
  EXPECT_TRUE(is(l.download_scores, copy_to_host_and_wait));
  EXPECT_TRUE(is(l.candidate_mask, candidate_mask));
  EXPECT_TRUE(is(l.select_positions, select_positions));
  EXPECT_TRUE(is(l.upload_selection, copy_to_device));
  EXPECT_TRUE(is(l.sparse_attention, kernels::launch_sparse_attention));
  EXPECT_TRUE(is(l.frequencies, reference::rotary_frequencies));
}

/// Replaces an entry by a function that counts, and calls it.
template <typename Result, typename... Args>
int calls_of_replacement(std::function<Result(Args...)> Launches::*entry, std::decay_t<Args>... arguments) {
  int calls = 0;
  Launches launches;
  launches.*entry = [&](Args...) -> Result {
    ++calls;
    return Result();
  };
  (launches.*entry)(arguments...);
  return calls;
}

TEST(Launches, EveryLaunchCanBeReplaced) {
  constexpr cudaStream_t kStream = nullptr;
  EXPECT_EQ(calls_of_replacement(&Launches::rms_norm, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::rotary, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::quantize, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::scale, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::matvec, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::ring_write, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::index_build, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::compressor_product, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::pool, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::partial_write, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::fill, nullptr, 0, 0.0F, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::index_scores, {}, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::download_scores, nullptr, nullptr, 0U, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::upload_selection, nullptr, nullptr, 0U, kStream), 1);
  EXPECT_EQ(calls_of_replacement(&Launches::sparse_attention, {}, kernels::AttentionForm::plain, kStream), 1);
}

TEST(Launches, EveryHostStepCanBeReplaced) {
  const ModelConfig config;
  const LayerRole role;
  reference::ThreadPool pool(1);
  const ScoreRows rows{.config = config, .role = role, .call = {}, .scores = {}, .length = 0};
  const Tensor other(DType::u8, {3, 1});
  Launches l;
  l.candidate_mask = [&](const ScoreRows&, reference::ThreadPool&) { return other; };
  l.select_positions = [&](const ScoreRows&, const Tensor*, reference::ThreadPool&) { return other; };
  l.frequencies = [](const ModelConfig&, std::int64_t ratio) { return std::vector<float>{static_cast<float>(ratio)}; };
  bool multiplied = false;
  l.multiply = [&](Dense&, const DenseCall&, cudaStream_t) { multiplied = true; };
  EXPECT_EQ(l.candidate_mask(rows, pool).shape(), other.shape());
  EXPECT_EQ(l.select_positions(rows, nullptr, pool).shape(), other.shape());
  EXPECT_EQ(l.frequencies(config, 2), std::vector<float>{2.0F});
  EXPECT_FALSE(multiplied);
}

}  // namespace
}  // namespace attndiff::device
