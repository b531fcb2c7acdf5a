#include "device/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/queue.h"
#include "reference/rotary.h"

namespace attndiff::device {
namespace {

constexpr std::int64_t kChunk = 1024;  // positions computed and uploaded together

std::size_t table_bytes(const ModelConfig& config) {
  return static_cast<std::size_t>(config.max_seq * (config.rope_dim / 2)) * sizeof(float);
}

}  // namespace

RotaryTable::RotaryTable(const ModelConfig& config, std::vector<float> frequencies)
    : frequencies_(std::move(frequencies)),
      positions_(config.max_seq),
      cos_(table_bytes(config), "rotary cosines"),
      sin_(table_bytes(config), "rotary sines"),
      filled_(static_cast<std::size_t>((config.max_seq + kChunk - 1) / kChunk)) {}

void RotaryTable::require(std::int64_t first, std::int64_t count, reference::ThreadPool& pool, cudaStream_t stream) {
  for (std::int64_t chunk = first / kChunk; chunk * kChunk < first + count; ++chunk) {
    if (!filled_[static_cast<std::size_t>(chunk)]) {
      fill(chunk, pool, stream);
      filled_[static_cast<std::size_t>(chunk)] = true;
    }
  }
}

void RotaryTable::fill(std::int64_t chunk, reference::ThreadPool& pool, cudaStream_t stream) {
  const std::int64_t first = chunk * kChunk;
  const std::int64_t count = std::min(kChunk, positions_ - first);
  const std::size_t pairs = frequencies_.size();
  std::vector<float> cosines(static_cast<std::size_t>(count) * pairs);
  std::vector<float> sines(cosines.size());
  pool.parallel_for(count, [&](std::int64_t p) {
    for (std::size_t k = 0; k < pairs; ++k) {
      const double angle = reference::rotary_angle(frequencies_[k], first + p);
      cosines[static_cast<std::size_t>(p) * pairs + k] = static_cast<float>(std::cos(angle));
      sines[static_cast<std::size_t>(p) * pairs + k] = static_cast<float>(std::sin(angle));
    }
  });
  const auto at = static_cast<std::size_t>(first) * pairs;
  copy_to_device(cos_.as<float>() + at, cosines.data(), cosines.size() * sizeof(float), stream);
  copy_to_device(sin_.as<float>() + at, sines.data(), sines.size() * sizeof(float), stream);
}

}  // namespace attndiff::device
