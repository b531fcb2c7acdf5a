#include "kernels/sparse_attention.h"

#include "kernels/sparse_attention_forms.cuh"
#include "reference/contract/error.h"

namespace attndiff::kernels {
namespace {

constexpr std::int64_t kWideHeads = 64;
constexpr std::int64_t kWideTokens = 64;  // with fewer queries, blocks of 64 heads leave most of a GPU idle

}  // namespace

bool attention_supports(AttentionForm form, std::int64_t head_dim) noexcept {
  switch (form) {
    case AttentionForm::plain:
      return true;
    case AttentionForm::wide:
      return head_dim == 512;
    case AttentionForm::narrow:
      return head_dim == 64 || head_dim == 512;
  }
  return false;
}

AttentionForm attention_form(std::int64_t tokens, std::int64_t heads, std::int64_t head_dim) noexcept {
  if (tokens >= kWideTokens && heads % kWideHeads == 0 && attention_supports(AttentionForm::wide, head_dim)) {
    return AttentionForm::wide;
  }
  return attention_supports(AttentionForm::narrow, head_dim) ? AttentionForm::narrow : AttentionForm::plain;
}

std::size_t attention_shared_bytes(AttentionForm form, std::int64_t head_dim, std::int64_t columns) noexcept {
  return form == AttentionForm::plain ? plain_shared_bytes(columns) : tensor_core_shared_bytes(form, head_dim, columns);
}

void prepare_sparse_attention(std::int64_t head_dim, std::int64_t columns) {
  prepare_plain(columns);
  prepare_tensor_core(head_dim, columns);
}

void launch_sparse_attention(const SparseAttentionArgs& args, AttentionForm form, cudaStream_t stream) {
  if (!attention_supports(form, args.head_dim)) {
    throw Error(ErrorKind::internal,
                "this form of sparse attention does not support head_dim " + std::to_string(args.head_dim));
  }
  if (args.tokens == 0) {
    return;
  }
  if (form == AttentionForm::plain) {
    launch_plain(args, stream);
  } else {
    launch_tensor_core(args, form, stream);
  }
}

}  // namespace attndiff::kernels
