#pragma once

#include <cstddef>

#include "kernels/math.cuh"
#include "kernels/sparse_attention.h"

namespace attndiff::kernels {

/// Address of the row an entry names.
__device__ __forceinline__ const Bf16* attended_row(const SparseAttentionArgs& a, std::int64_t entry) {
  return entry < a.window_count ? a.window_rows + entry * a.head_dim
                                : a.compressed_rows + (entry - a.window_count) * a.head_dim;
}

std::size_t plain_shared_bytes(std::int64_t columns) noexcept;
void prepare_plain(std::int64_t columns);
void launch_plain(const SparseAttentionArgs& args, cudaStream_t stream);

std::size_t tensor_core_shared_bytes(AttentionForm form, std::int64_t head_dim, std::int64_t columns) noexcept;
void prepare_tensor_core(std::int64_t head_dim, std::int64_t columns);
void launch_tensor_core(const SparseAttentionArgs& args, AttentionForm form, cudaStream_t stream);

}  // namespace attndiff::kernels
