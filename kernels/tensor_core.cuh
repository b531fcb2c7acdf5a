#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace attndiff::kernels {

/// The warp-wide instructions behind the tensor-core kernels (PTX ISA: cp.async, ldmatrix, mma.m16n8k16), sm_80 and up.

/// Copies 16 bytes to shared memory without waiting; with `present` false nothing is read and 16 zero bytes are stored.
__device__ __forceinline__ void copy_async_16(void* shared, const void* global, bool present) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = present ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

/// Waits until at most `Pending` of the latest commits are unfinished.
template <int Pending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

/// Four 8 x 8 bf16 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrix_x4(std::uint32_t (&m)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(from)
               : "memory");
}

/// The same, each matrix transposed.
__device__ __forceinline__ void load_matrix_x4_transposed(std::uint32_t (&m)[4], const void* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(from)
               : "memory");
}

/// c += a . b for a 16 x 16 (row-major), b 16 x 8 (column-major), bf16 operands, float32 accumulation. Lane l holds
/// c[l / 4][2 (l % 4) + {0, 1}] in c[0..1] and the same of row l / 4 + 8 in c[2..3].
__device__ __forceinline__ void multiply_accumulate(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace attndiff::kernels
