#pragma once

#include "reference/contract/config.h"

namespace attndiff::deepseek_v41 {

/// config.json of DeepSeek-V4.1-Flash; max_seq and max_tokens, which are a run's, are left 0.
[[nodiscard]] ModelConfig released_config();

/// A small one, for tests. Every dimension differs, three index heads make the score scale no power of two, and 40
/// tokens cross every threshold: first group, ring wrap, k, candidate capacity, the end of the unscaled rotary range.
[[nodiscard]] ModelConfig micro_config();

}  // namespace attndiff::deepseek_v41
