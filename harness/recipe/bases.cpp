#include "harness/recipe/bases.h"

#include <array>

namespace attndiff {
namespace {

struct Base {
  const char* name;
  ModelConfig config;
};

/// config.json of DeepSeek-V4.1-Flash.
ModelConfig released() {
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

/// Every dimension differs, three index heads make the score scale no power of two, and 40 tokens cross every
/// threshold: first group, ring wrap, k, candidate capacity, the end of the unscaled rotary range.
ModelConfig micro() {
  ModelConfig c = released();
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

/// The configuration of the recorded fixtures tiny-*.h5.
ModelConfig tiny() {
  ModelConfig c = released();
  c.dim = 64;
  c.n_heads = 4;
  c.head_dim = 32;
  c.rope_dim = 16;
  c.q_rank = 32;
  c.o_rank = 16;
  c.groups = 2;
  c.window = 8;
  c.index_heads = 4;
  c.index_head_dim = 32;
  c.index_topk = 6;
  c.cand_topk_blocks = 3;
  c.cand_block = 4;
  c.orig_seq = 64;
  c.compress_rope_theta = 40000;
  c.rope_factor = 40;
  return c;
}

/// The configuration of the recorded fixture mid-candidates.h5.
ModelConfig mid() {
  ModelConfig c = tiny();
  c.dim = 256;
  c.n_heads = 8;
  c.head_dim = 64;
  c.rope_dim = 32;
  c.q_rank = 128;
  c.o_rank = 64;
  c.groups = 4;
  c.window = 16;
  c.index_heads = 8;
  c.index_head_dim = 64;
  c.index_topk = 32;
  c.cand_topk_blocks = 6;
  c.cand_block = 8;
  return c;
}

const std::array<Base, 4>& bases() {
  static const std::array<Base, 4> all{
      {{"released", released()}, {"micro", micro()}, {"tiny", tiny()}, {"mid", mid()}}};
  return all;
}

}  // namespace

std::vector<std::string> base_names() {
  std::vector<std::string> names;
  for (const Base& base : bases()) {
    names.emplace_back(base.name);
  }
  return names;
}

const ModelConfig* find_base(std::string_view name) {
  for (const Base& base : bases()) {
    if (name == base.name) {
      return &base.config;
    }
  }
  return nullptr;
}

}  // namespace attndiff
