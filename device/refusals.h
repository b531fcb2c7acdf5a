#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reference/contract/config.h"
#include "reference/contract/tensor.h"

namespace attndiff::device {

/// Everything here is pure host code that runs before a launch: a refused call has changed nothing.

/// A slot that holds cache rows, as far as the checks look at it.
struct CacheSlotFacts {
  std::int64_t owner = -1;  ///< layer_id, -1: declared by the fixture
  std::int64_t rows = 0;    ///< capacity
  std::int64_t width = 0;
};

/// A slot that holds a host tensor.
struct TensorSlotFacts {
  std::int64_t owner = -1;
  Shape shape;
};

/// The slots as a call finds them; nothing where no layer has written one.
struct SlotFacts {
  std::optional<CacheSlotFacts> compress_kv;
  std::optional<CacheSlotFacts> index_k;
  std::optional<TensorSlotFacts> selection;
  std::optional<TensorSlotFacts> candidates;
};

/// Throws Error(refused) naming layer and slot where the call needs a slot nobody wrote, one with too few rows, or a
/// mask or selection of the wrong shape. Slots that the call itself writes first are not looked at.
void check_slots(const ModelConfig& config, const LayerRole& role, const CallShape& call, const SlotFacts& slots);

/// Throws Error(refused) unless `next` is where the layer's last call ended or the call starts a sequence.
void check_continues(const LayerRole& role, const CallShape& call, std::int64_t next);

/// Throws Error(refused) at an entry outside [-1, limit).
void check_entries(const LayerRole& role, const char* what, std::span<const std::int32_t> entries, const Shape& shape,
                   std::int64_t limit);

/// Throws Error(refused) where the kernels do not support these dimensions on a GPU that gives a block
/// `shared_bytes` of shared memory, and Error(input) where the configuration contradicts itself.
void check_supported(const ModelConfig& config, std::span<const LayerRole> layers, std::size_t shared_bytes);

}  // namespace attndiff::device
