#include "device/dense.h"

#include <algorithm>
#include <string>

#include "reference/contract/error.h"

namespace attndiff::device {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20U;  // what cuBLAS asks for on Hopper

void check(cublasStatus_t status, const char* call, const std::string& object = {}) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw Error(ErrorKind::internal, {.file = {},
                                      .object = object,
                                      .problem = std::string("cuBLASLt call failed: ") + call,
                                      .expected = "CUBLAS_STATUS_SUCCESS",
                                      .found = cublasLtGetStatusName(status)});
  }
}

#define ATTNDIFF_CUBLAS(call) check((call), #call)

template <typename Handle, cublasStatus_t (*Destroy)(Handle)>
struct Owned {
  Handle handle = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle != nullptr) {
      static_cast<void>(Destroy(handle));
    }
  }
};

using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

void create(Layout& layout, cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t stride,
            std::int64_t batch, std::int64_t batch_stride) {
  ATTNDIFF_CUBLAS(cublasLtMatrixLayoutCreate(&layout.handle, type, static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), stride));
  const auto count = static_cast<std::int32_t>(batch);
  ATTNDIFF_CUBLAS(
      cublasLtMatrixLayoutSetAttribute(layout.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
  ATTNDIFF_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout.handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                   &batch_stride, sizeof(batch_stride)));
}

template <typename T>
void prefer(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  ATTNDIFF_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &value, sizeof(value)));
}

/// Largest power of two, up to 256, that divides every address and batch stride of the call.
std::uint32_t alignment_of(const DenseCall& c) {
  constexpr std::uintptr_t kMost = 256;
  const std::size_t output_bytes = c.output == DenseOutput::bf16 ? sizeof(Bf16) : sizeof(float);
  std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(c.x) | reinterpret_cast<std::uintptr_t>(c.w) |
                        reinterpret_cast<std::uintptr_t>(c.y) | kMost;
  if (c.batch > 1) {
    bits |= static_cast<std::uintptr_t>(c.x_batch_stride) * sizeof(Bf16) |
            static_cast<std::uintptr_t>(c.outputs * c.depth) * sizeof(Bf16) |
            static_cast<std::uintptr_t>(c.y_batch_stride) * output_bytes;
  }
  return static_cast<std::uint32_t>(std::max<std::uintptr_t>(bits & (~bits + 1), output_bytes));
}

std::string shape_text(const DenseCall& c) {
  return "product [" + std::to_string(c.tokens) + ", " + std::to_string(c.depth) + "] x [" + std::to_string(c.outputs) +
         ", " + std::to_string(c.depth) + "]^T, batch " + std::to_string(c.batch);
}

/// cuBLASLt is column-major: y^T = w . x^T, with w read transposed.
struct Problem {
  Operation operation;
  Layout w;
  Layout x;
  Layout y;

  explicit Problem(const DenseCall& c) {
    ATTNDIFF_CUBLAS(cublasLtMatmulDescCreate(&operation.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    ATTNDIFF_CUBLAS(
        cublasLtMatmulDescSetAttribute(operation.handle, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)));
    const cudaDataType_t output = c.output == DenseOutput::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    create(w, CUDA_R_16BF, c.depth, c.outputs, c.depth, c.batch, c.outputs * c.depth);
    create(x, CUDA_R_16BF, c.depth, c.tokens, c.x_stride, c.batch, c.x_batch_stride);
    create(y, output, c.outputs, c.tokens, c.y_stride, c.batch, c.y_batch_stride);
  }
};

cublasLtMatmulAlgo_t choose(cublasLtHandle_t handle, const Problem& p, const DenseCall& c, std::uint32_t alignment) {
  Preference preference;
  ATTNDIFF_CUBLAS(cublasLtMatmulPreferenceCreate(&preference.handle));
  prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
  prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, p.operation.handle, p.w.handle, p.x.handle, p.y.handle, p.y.handle, preference.handle, 1, &best, &found);
  check(found == 0 && status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status,
        "cublasLtMatmulAlgoGetHeuristic", shape_text(c));
  return best.algo;
}

}  // namespace

Dense::Dense() : workspace_(kWorkspaceBytes, "cuBLASLt workspace") { ATTNDIFF_CUBLAS(cublasLtCreate(&handle_)); }

Dense::~Dense() { static_cast<void>(cublasLtDestroy(handle_)); }

void Dense::multiply(const DenseCall& call, cudaStream_t stream) {
  if (call.tokens == 0) {
    return;
  }
  const Problem problem(call);
  const std::uint32_t alignment = alignment_of(call);
  const Key key{call.tokens,
                call.outputs,
                call.depth,
                call.x_stride,
                call.y_stride,
                call.batch,
                call.x_batch_stride,
                call.y_batch_stride,
                static_cast<std::int64_t>(alignment),
                static_cast<std::int64_t>(call.output)};
  auto chosen = algorithms_.find(key);
  if (chosen == algorithms_.end()) {
    chosen = algorithms_.emplace(key, choose(handle_, problem, call, alignment)).first;
  }
  const float one = 1.0F;
  const float zero = 0.0F;
  check(cublasLtMatmul(handle_, problem.operation.handle, &one, call.w, problem.w.handle, call.x, problem.x.handle,
                       &zero, call.y, problem.y.handle, call.y, problem.y.handle, &chosen->second, workspace_.data(),
                       workspace_.bytes(), stream),
        "cublasLtMatmul", shape_text(call));
}

void multiply(Dense& dense, const DenseCall& call, cudaStream_t stream) { dense.multiply(call, stream); }

}  // namespace attndiff::device
