#include <algorithm>
#include <bit>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/fault.h"
#include "reference/contract/bfloat16.h"
#include "reference/product.h"

namespace attndiff::mutants {
namespace {

using deepseek_v41::Steps;
using reference::ProductArgs;
using reference::ThreadPool;
using Floats = std::span<const float>;
using Dot = float (*)(Floats x, Floats w);

/// The product with its sums made by `dot`.
std::function<void(ThreadPool&, const ProductArgs&)> product_by(Dot dot) {
  return [dot](ThreadPool& pool, const ProductArgs& a) {
    const auto depth = static_cast<std::size_t>(a.depth);
    pool.parallel_for(a.rows, [&](std::int64_t row) {
      std::vector<float> w(depth);
      reference::weight_rows(a.weight, a.row_begin + row, 1, w);
      for (std::int64_t t = 0; t < a.tokens; ++t) {
        a.y[static_cast<std::size_t>(t * a.y_stride + row)] =
            dot(a.x.subspan(static_cast<std::size_t>(t * a.x_stride), depth), w);
      }
    });
  };
}

float sum(Floats x, Floats w) {
  float total = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    total += x[k] * w[k];
  }
  return total;
}

float backwards(Floats x, Floats w) {
  float total = 0;
  for (std::size_t k = x.size(); k-- > 0;) {
    total += x[k] * w[k];
  }
  return total;
}

constexpr std::size_t kChunk = 16;

float in_chunks(Floats x, Floats w) {
  float total = 0;
  for (std::size_t k = 0; k < x.size(); k += kChunk) {
    const std::size_t n = std::min(kChunk, x.size() - k);
    total += sum(x.subspan(k, n), w.subspan(k, n));
  }
  return total;
}

float partial_sums_in_bf16(Floats x, Floats w) {
  float total = 0;
  for (std::size_t k = 0; k < x.size(); k += kChunk) {
    const std::size_t n = std::min(kChunk, x.size() - k);
    total = round_bf16(total + sum(x.subspan(k, n), w.subspan(k, n)));
  }
  return total;
}

float last_term_missing(Floats x, Floats w) { return sum(x.first(x.size() - 1), w.first(w.size() - 1)); }

/// TF32 keeps 10 of float32's 23 fraction bits.
float to_tf32(float v) {
  constexpr std::uint32_t kDropped = 13;
  const auto bits = std::bit_cast<std::uint32_t>(v) + (1U << (kDropped - 1));
  return std::bit_cast<float>(bits & ~((1U << kDropped) - 1));
}

float in_tf32(Floats x, Floats w) {
  float total = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    total += to_tf32(x[k]) * to_tf32(w[k]);
  }
  return total;
}

/// Output groups are projected by the next group's rows of wo_a, the only product of a part of a weight's rows.
void groups_rotated(ThreadPool& pool, const ProductArgs& a) {
  const std::int64_t all = a.weight.values.shape()[0];
  reference::product(pool, {.x = a.x,
                            .x_stride = a.x_stride,
                            .tokens = a.tokens,
                            .depth = a.depth,
                            .weight = a.weight,
                            .row_begin = a.rows == all ? a.row_begin : (a.row_begin + a.rows) % all,
                            .rows = a.rows,
                            .y = a.y,
                            .y_stride = a.y_stride});
}

/// The scale of a block of e4m3 weights is that of its row's first block.
void first_scale_only(ThreadPool& pool, const ProductArgs& a) {
  if (!a.weight.quantised()) {
    reference::product(pool, a);
    return;
  }
  Weight weight = a.weight;
  const auto blocks = static_cast<std::size_t>(weight.scales.shape()[1]);
  const auto scales = weight.scales.as<std::uint8_t>();
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scales[i] = scales[i / blocks * blocks];
  }
  reference::product(pool, {.x = a.x,
                            .x_stride = a.x_stride,
                            .tokens = a.tokens,
                            .depth = a.depth,
                            .weight = weight,
                            .row_begin = a.row_begin,
                            .rows = a.rows,
                            .y = a.y,
                            .y_stride = a.y_stride});
}

Mutant other_sums(const std::string& name, const std::string& description, const std::string& fixture, Dot dot) {
  Steps steps;
  steps.product = product_by(dot);
  return control(name, description, fixture, with_steps(std::move(steps)));
}

}  // namespace

std::vector<Mutant> product_mutants() {
  std::vector<Mutant> mutants{
      step_fault("partial-sums-in-bf16", "a product's running sum is kept in bfloat16", {"qr", "micro"},
                 &Steps::product, product_by(partial_sums_in_bf16)),
      step_fault("last-term-missing", "a product leaves out the last of its K terms", {"qr", "micro"}, &Steps::product,
                 product_by(last_term_missing)),
      step_fault("compressor-in-tf32", "float32 weights are multiplied in TF32", {"comp_state", "micro"},
                 &Steps::product, product_by(in_tf32)),
      step_fault("output-groups-rotated", "each output group is projected by its neighbour's rows", {"og", "micro"},
                 &Steps::product, groups_rotated),
      step_fault("block-scales-of-the-first-column", "e4m3 weights use the scale of their row's first block",
                 {"qr", "uneven-scales"}, &Steps::product, first_scale_only),
      step_fault("activation-not-quantised", "an activation meets an e4m3 weight without its own round trip",
                 {"qr", "micro-e4m3"}, &Steps::quantise_activation, [](std::span<float>) {}),
  };
  for (const char* fixture : {"micro", "mid", "micro-ratio4", "micro-e4m3", "tiny-ties", "tiny-resume"}) {
    mutants.push_back(other_sums(std::string("sums-backwards-") + fixture, "every product is summed from its last term",
                                 fixture, backwards));
    mutants.push_back(other_sums(std::string("sums-in-chunks-") + fixture,
                                 "every product is summed in chunks of 16 terms", fixture, in_chunks));
  }
  return mutants;
}

}  // namespace attndiff::mutants
