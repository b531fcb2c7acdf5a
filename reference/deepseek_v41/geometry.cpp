#include "reference/deepseek_v41/geometry.h"

namespace attndiff::deepseek_v41 {

ModelConfig released_config() {
  return {.dim = 5120,
          .n_heads = 64,
          .head_dim = 512,
          .rope_dim = 64,
          .q_rank = 1280,
          .o_rank = 1024,
          .groups = 8,
          .window = 128,
          .index_heads = 32,
          .index_head_dim = 128,
          .index_topk = 512,
          .cand_topk_blocks = 2048,
          .cand_block = 8,
          .orig_seq = 65536,
          .eps = 1e-20,
          .rope_theta = 10000,
          .compress_rope_theta = 160000,
          .rope_factor = 16,
          .beta_fast = 32,
          .beta_slow = 1};
}

ModelConfig micro_config() {
  ModelConfig c = released_config();
  c.dim = 160;
  c.n_heads = 6;
  c.head_dim = 96;
  c.rope_dim = 32;
  c.q_rank = 64;
  c.o_rank = 40;
  c.groups = 2;
  c.window = 8;
  c.index_heads = 3;
  c.index_head_dim = 64;
  c.index_topk = 5;
  c.cand_topk_blocks = 2;
  c.cand_block = 4;
  c.orig_seq = 64;
  return c;
}

}  // namespace attndiff::deepseek_v41
