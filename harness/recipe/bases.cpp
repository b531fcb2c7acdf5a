#include "harness/recipe/bases.h"

#include <array>

#include "reference/deepseek_v41/geometry.h"

namespace attndiff {
namespace {

struct Base {
  const char* name;
  ModelConfig config;
};

/// The configuration of the recorded fixtures tiny-*.h5.
ModelConfig tiny() {
  ModelConfig c = deepseek_v41::released_config();
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
  static const std::array<Base, 4> all{{{"released", deepseek_v41::released_config()},
                                        {"micro", deepseek_v41::micro_config()},
                                        {"tiny", tiny()},
                                        {"mid", mid()}}};
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
