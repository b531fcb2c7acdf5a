#include "reference/contract/config.h"

#include <array>
#include <cmath>

namespace attndiff {
namespace {

constexpr std::array kInts{
    ConfigInt{"dim", &ModelConfig::dim},
    ConfigInt{"n_heads", &ModelConfig::n_heads},
    ConfigInt{"head_dim", &ModelConfig::head_dim},
    ConfigInt{"rope_dim", &ModelConfig::rope_dim},
    ConfigInt{"q_rank", &ModelConfig::q_rank},
    ConfigInt{"o_rank", &ModelConfig::o_rank},
    ConfigInt{"groups", &ModelConfig::groups},
    ConfigInt{"window", &ModelConfig::window},
    ConfigInt{"index_heads", &ModelConfig::index_heads},
    ConfigInt{"index_head_dim", &ModelConfig::index_head_dim},
    ConfigInt{"index_topk", &ModelConfig::index_topk},
    ConfigInt{"cand_topk_blocks", &ModelConfig::cand_topk_blocks},
    ConfigInt{"cand_block", &ModelConfig::cand_block},
    ConfigInt{"max_seq", &ModelConfig::max_seq},
    ConfigInt{"max_tokens", &ModelConfig::max_tokens},
    ConfigInt{"orig_seq", &ModelConfig::orig_seq},
};

constexpr std::array kReals{
    ConfigReal{"eps", &ModelConfig::eps},
    ConfigReal{"rope_theta", &ModelConfig::rope_theta},
    ConfigReal{"compress_rope_theta", &ModelConfig::compress_rope_theta},
    ConfigReal{"rope_factor", &ModelConfig::rope_factor},
    ConfigReal{"beta_fast", &ModelConfig::beta_fast},
    ConfigReal{"beta_slow", &ModelConfig::beta_slow},
};

constexpr std::array kFlags{
    RoleFlag{"is_kv_source", &LayerRole::is_kv_source},
    RoleFlag{"is_index_source", &LayerRole::is_index_source},
    RoleFlag{"is_candidate_source", &LayerRole::is_candidate_source},
    RoleFlag{"uses_candidates", &LayerRole::uses_candidates},
};

/// Positions are int32 in `idx`, and one extent must not make byte counts overflow.
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 24;
constexpr std::int64_t kFp8Block = 32;
constexpr std::int64_t kFp4LatentBlock = 16;

class Findings {
 public:
  void require(bool ok, const std::string& sentence) {
    if (!ok) {
      found_.push_back(sentence);
    }
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

std::string number(std::int64_t v) { return std::to_string(v); }

void check_dimensions(const ModelConfig& c, Findings& f) {
  for (const ConfigInt& entry : kInts) {
    const std::int64_t v = c.*entry.member;
    const bool may_be_zero = entry.member == &ModelConfig::orig_seq || entry.member == &ModelConfig::cand_topk_blocks ||
                             entry.member == &ModelConfig::cand_block || entry.member == &ModelConfig::index_topk ||
                             entry.member == &ModelConfig::index_heads || entry.member == &ModelConfig::index_head_dim;
    f.require(v >= (may_be_zero ? 0 : 1) && v <= kLargestExtent, std::string(entry.name) + " is " + number(v) +
                                                                     ", outside " + (may_be_zero ? "0" : "1") + " to " +
                                                                     number(kLargestExtent));
  }
  for (const ConfigReal& entry : kReals) {
    f.require(std::isfinite(c.*entry.member), std::string(entry.name) + " is not finite");
  }
  f.require(c.eps >= 0, "eps is negative");
  f.require(c.rope_theta > 0, "rope_theta is not positive");
}

void check_divisions(const ModelConfig& c, Findings& f) {
  f.require(c.rope_dim % 2 == 0 && c.rope_dim <= c.head_dim,
            "rope_dim " + number(c.rope_dim) + " must be even and at most head_dim " + number(c.head_dim));
  f.require(c.groups > 0 && c.n_heads % c.groups == 0,
            "n_heads " + number(c.n_heads) + " is no multiple of groups " + number(c.groups));
  f.require(c.head_dim % kFp8Block == 0,
            "head_dim " + number(c.head_dim) + " is no multiple of the fp8 block of " + number(kFp8Block));
  f.require(c.max_tokens <= c.max_seq, "max_tokens " + number(c.max_tokens) + " exceeds max_seq " + number(c.max_seq));
}

void check_indexer(const ModelConfig& c, bool any_candidates, Findings& f) {
  f.require(c.index_heads > 0 && c.index_head_dim > 0 && c.index_topk > 0,
            "an index source needs index_heads, index_head_dim and index_topk above 0");
  f.require(c.index_head_dim % kFp8Block == 0,
            "index_head_dim " + number(c.index_head_dim) + " is no multiple of the fp4 block of " + number(kFp8Block));
  f.require(c.rope_dim <= c.index_head_dim,
            "rope_dim " + number(c.rope_dim) + " exceeds index_head_dim " + number(c.index_head_dim));
  if (any_candidates) {
    f.require(c.cand_block > 0 && c.cand_topk_blocks > 0,
              "a candidate source needs cand_block and cand_topk_blocks above 0");
  }
}

void check_role(const LayerRole& r, Findings& f) {
  const std::string layer = "layer " + number(r.layer_id) + ": ";
  f.require(r.layer_id >= 0, layer + "layer_id is negative");
  f.require(r.ratio >= 0 && r.ratio <= kLargestExtent, layer + "ratio " + number(r.ratio) + " is out of range");
  if (r.ratio == 0) {
    f.require(!r.is_kv_source && !r.is_index_source && !r.is_candidate_source,
              layer + "a window-only layer (ratio 0) cannot be a source");
  }
  f.require(!r.is_candidate_source || r.is_index_source,
            layer + "a candidate source must be an index source, whose scores it reads");
  f.require(!(r.is_candidate_source && r.uses_candidates),
            layer + "the candidate source does not apply its own mask, so uses_candidates cannot be set on it");
}

}  // namespace

const char* name_of(IndexKeyRule rule) noexcept { return rule == IndexKeyRule::slot ? "slot" : "own"; }

std::span<const ConfigInt> config_ints() noexcept { return kInts; }
std::span<const ConfigReal> config_reals() noexcept { return kReals; }
std::span<const RoleFlag> role_flags() noexcept { return kFlags; }

std::string kind_of(const LayerRole& role) {
  if (role.ratio == 0) {
    return "window only";
  }
  std::string sources;
  const auto add = [&](bool is, const char* name) {
    if (is) {
      sources += (sources.empty() ? "" : "+") + std::string(name);
    }
  };
  add(role.is_kv_source, "kv");
  add(role.is_index_source, "index");
  add(role.is_candidate_source, "candidate");
  std::string kind = "ratio " + number(role.ratio) + " " + (sources.empty() ? "reader" : sources + " source");
  if (role.uses_candidates && role.is_index_source) {
    kind += " with candidates";
  }
  return kind;
}

std::vector<std::string> violations(const ModelConfig& config, std::span<const LayerRole> layers) {
  Findings f;
  check_dimensions(config, f);
  check_divisions(config, f);
  bool any_compressed = false;
  bool any_kv_source = false;
  bool any_index_source = false;
  bool any_candidates = false;
  std::int64_t last_id = -1;
  for (const LayerRole& role : layers) {
    check_role(role, f);
    f.require(role.layer_id > last_id,
              "layer " + number(role.layer_id) + ": layer_id does not ascend after " + number(last_id));
    last_id = role.layer_id;
    any_compressed = any_compressed || role.ratio > 0;
    any_kv_source = any_kv_source || role.is_kv_source;
    any_index_source = any_index_source || role.is_index_source;
    any_candidates = any_candidates || role.is_candidate_source;
  }
  if (any_compressed) {
    f.require(config.compress_rope_theta > 0, "compress_rope_theta is not positive");
    if (config.orig_seq > 0) {
      f.require(config.rope_factor > 0 && config.beta_fast > 0 && config.beta_slow > 0,
                "YaRN (orig_seq > 0) needs rope_factor, beta_fast and beta_slow above 0");
      f.require(config.compress_rope_theta != 1.0, "compress_rope_theta 1 makes YaRN's correction divide by zero");
    }
  }
  if (any_kv_source) {
    f.require(config.head_dim % kFp4LatentBlock == 0,
              "head_dim " + number(config.head_dim) + " is no multiple of the fp4 block of " + number(kFp4LatentBlock));
  }
  if (any_index_source) {
    check_indexer(config, any_candidates, f);
  }
  return f.take();
}

}  // namespace attndiff
