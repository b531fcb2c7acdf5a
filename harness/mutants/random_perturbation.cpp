#include "harness/mutants/random_perturbation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/mutants/attention_form.h"
#include "reference/contract/bfloat16.h"
#include "reference/product.h"

namespace attndiff::mutants {
namespace {

using Floats = std::span<const float>;

/// How many terms a sum takes together before it adds them up, and how.
enum class Order : std::uint8_t { backwards, chunks, lanes, pairwise };

struct SumOrder {
  Order order = Order::backwards;
  std::size_t width = 1;  ///< terms of a chunk, or lanes

  [[nodiscard]] std::string text() const {
    switch (order) {
      case Order::backwards:
        return "backwards";
      case Order::chunks:
        return fmt::format("in chunks of {}", width);
      case Order::lanes:
        return fmt::format("in {} lanes", width);
      case Order::pairwise:
        return "pairwise";
    }
    return "?";
  }

  [[nodiscard]] float operator()(Floats terms) const {
    switch (order) {
      case Order::backwards:
        return backwards(terms);
      case Order::chunks:
        return in_chunks(terms);
      case Order::lanes:
        return in_lanes(terms);
      case Order::pairwise:
        return pairwise(terms);
    }
    return 0;
  }

 private:
  static float backwards(Floats terms) {
    float sum = 0;
    for (std::size_t i = terms.size(); i-- > 0;) {
      sum += terms[i];
    }
    return sum;
  }

  [[nodiscard]] float in_chunks(Floats terms) const {
    float sum = 0;
    for (std::size_t i = 0; i < terms.size(); i += width) {
      sum += backwards(terms.subspan(i, std::min(width, terms.size() - i)));
    }
    return sum;
  }

  [[nodiscard]] float in_lanes(Floats terms) const {
    std::vector<float> lanes(width);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      lanes[i % width] += terms[i];
    }
    return backwards(lanes);
  }

  static float pairwise(Floats terms) {
    if (terms.size() < 3) {
      return backwards(terms);
    }
    const std::size_t half = terms.size() / 2;
    return pairwise(terms.first(half)) + pairwise(terms.subspan(half));
  }
};

float dot(const SumOrder& sum, Floats a, Floats b) {
  thread_local std::vector<float> terms;
  terms.resize(a.size());
  std::transform(a.begin(), a.end(), b.begin(), terms.begin(), [](float x, float y) { return x * y; });
  return sum(terms);
}

std::function<void(reference::ThreadPool&, const reference::ProductArgs&)> product_in(const SumOrder& sum) {
  return [sum](reference::ThreadPool& pool, const reference::ProductArgs& a) {
    const auto depth = static_cast<std::size_t>(a.depth);
    pool.parallel_for(a.rows, [&](std::int64_t row) {
      std::vector<float> w(depth);
      reference::weight_rows(a.weight, a.row_begin + row, 1, w);
      for (std::int64_t t = 0; t < a.tokens; ++t) {
        a.y[static_cast<std::size_t>(t * a.y_stride + row)] =
            dot(sum, a.x.subspan(static_cast<std::size_t>(t * a.x_stride), depth), w);
      }
    });
  };
}

std::function<void(Floats, Floats, float, std::span<float>)> norm_in(const SumOrder& sum) {
  return [sum](Floats x, Floats w, float eps, std::span<float> out) {
    const float mean = dot(sum, x, x) / static_cast<float>(x.size());
    const float inverse_rms = 1.0F / std::sqrt(mean + eps);
    for (std::size_t d = 0; d < x.size(); ++d) {
      out[d] = w[d] * (x[d] * inverse_rms);
    }
  };
}

/// Pools from the last member to the first.
void pool_backwards(Floats k, Floats g, std::int64_t ratio, std::span<float> out) {
  const std::size_t width = out.size();
  for (std::size_t d = 0; d < width; ++d) {
    float largest = g[d];
    for (std::size_t i = d; i < g.size(); i += width) {
      largest = std::max(largest, g[i]);
    }
    float sum = 0;
    float denominator = 0;
    for (auto member = static_cast<std::size_t>(ratio); member-- > 0;) {
      const float p = std::exp(g[member * width + d] - largest);
      denominator += p;
      sum += p * k[member * width + d];
    }
    out[d] = sum / denominator;
  }
}

std::function<void(const reference::IndexScoreArgs&)> scores_in(const SumOrder& sum) {
  return [sum](const reference::IndexScoreArgs& a) {
    const std::size_t width = a.q.size() / a.w.size();
    for (std::size_t p = 0; p < a.out.size(); ++p) {
      float score = 0;
      for (std::size_t h = a.w.size(); h-- > 0;) {
        const float d = round_bf16(dot(sum, a.q.subspan(h * width, width), a.keys.subspan(p * width, width)));
        score += round_bf16((d < 0 ? 0.0F : d) * a.w[h]);
      }
      a.out[p] = score;
    }
  };
}

SumOrder random_order(Draw& draw) {
  const Order order = draw.of({Order::backwards, Order::chunks, Order::lanes, Order::pairwise});
  return {.order = order, .width = draw.of<std::size_t>({2, 4, 7, 8, 16, 32})};
}

}  // namespace

Perturbation random_perturbation(Draw& draw) {
  const SumOrder products = random_order(draw);
  const SumOrder others = random_order(draw);
  const std::int64_t tile = draw.of<std::int64_t>({0, 2, 4, 5, 8});
  constexpr int kMostTiles = 16;  // of the columns that a small fixture's queries attend

  deepseek_v41::Steps steps;
  steps.product = product_in(products);
  steps.rms_norm = norm_in(others);
  steps.pool_group = pool_backwards;
  steps.index_scores = scores_in(others);
  steps.sparse_attention = AttentionForm{.tile = tile};
  return {.text = fmt::format("products {}, norms and scores {}, attention {}", products.text(), others.text(),
                              tile == 0 ? "in one tile" : fmt::format("in tiles of {}", tile)),
          .make = with_steps(std::move(steps), {.accumulator = "float32",
                                                .bf16_softmax_weights = false,
                                                .attention_splits = tile == 0 ? 1 : kMostTiles})};
}

}  // namespace attndiff::mutants
