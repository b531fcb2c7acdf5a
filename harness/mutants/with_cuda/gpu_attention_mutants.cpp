#include "harness/mutants/with_cuda/gpu_parts.h"
#include "harness/mutants/with_cuda/launch_fault.h"
#include "kernels/mutants/attention.h"

namespace attndiff::mutants {
namespace {

using device::Launches;
using kernels::AttentionForm;
using kernels::SparseAttentionArgs;
using kernels::mutants::AttentionVariant;

std::function<Launches()> attending_by(const AttentionVariant& variant) {
  return [variant] {
    return replaced(&Launches::sparse_attention,
                    [variant](const SparseAttentionArgs& args, AttentionForm, cudaStream_t stream) {
                      kernels::mutants::launch_attention_variant(args, variant, stream);
                    });
  };
}

Mutant attention_fault(const std::string& name, const std::string& description, const Due& due,
                       const AttentionVariant& variant) {
  return fault(name, description, due, with_launches(attending_by(variant)));
}

Launches plain_form() {
  return replaced(&Launches::sparse_attention, [](const SparseAttentionArgs& args, AttentionForm, cudaStream_t stream) {
    kernels::launch_sparse_attention(args, AttentionForm::plain, stream);
  });
}

}  // namespace

std::vector<Mutant> gpu_attention_mutants() {
  constexpr std::int64_t kShortTile = 4;
  constexpr unsigned kSplits = 4;
  const Due lse{"lse", "micro"};
  return {
      attention_fault("sink-missing-from-the-denominator", "the sink only enters the maximum", lse,
                      {.sink_counts = false}),
      attention_fault("masked-score-zero", "an absent entry scores 0 instead of -inf", lse, {.absent_score = 0}),
      attention_fault("leading-masked-tile-gives-nan", "a first tile without any entry subtracts -inf from -inf",
                      {"lse", "short-prefill"}, {.tile = kShortTile, .guarded = false}),
      attention_fault("masked-lane-reads-poison", "a masked lane multiplies its zero weight by what memory holds",
                      {"o", "short-prefill"}, {.reads_absent = true}),
      attention_fault("bf16-softmax-weights", "softmax weights are rounded to bfloat16, and the plan does not say so",
                      {"o", "micro"}, {.bf16_weights = true}),
      attention_fault("unwritten-tile", "the output tile of the last two heads is never stored", {"o", "micro"},
                      {.heads_unwritten = 2}),
      control("attention-in-float32-short-prefill", "attention is summed in float32, in tiles of 4 columns",
              "short-prefill", with_launches(attending_by({.tile = kShortTile}))),
      control("plain-attention-mid", "attention runs without tensor cores", "mid", with_launches(plain_form)),
      control("split-attention-declared-mid", "attention is summed in four parts, and the plan says so", "mid",
              with_launches(attending_by({.splits = kSplits}), {.accumulator = "float32",
                                                                .bf16_softmax_weights = false,
                                                                .attention_splits = static_cast<int>(kSplits)})),
      control("bf16-softmax-weights-declared-mid", "softmax weights are rounded to bfloat16, and the plan says so",
              "mid",
              with_launches(attending_by({.bf16_weights = true}),
                            {.accumulator = "float32", .bf16_softmax_weights = true, .attention_splits = 1})),
  };
}

}  // namespace attndiff::mutants
