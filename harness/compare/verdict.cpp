#include "harness/compare/verdict.h"

#include <algorithm>
#include <array>

namespace attndiff {
namespace {

using Effect = VerdictEffect;

constexpr std::array<VerdictInfo, kVerdictCount> kVerdicts{{
    {Verdict::pass, "pass", Effect::none, true, "Both sides agree within the stage's tolerance or bound."},
    {Verdict::tie, "tie", Effect::none, true,
     "A selection differs only among positions whose scores are equal on both sides."},
    {Verdict::explained, "explained", Effect::none, true,
     "A free-running choice differs from the reference's own and is exactly what the reference chooses from the "
     "candidate's index queries, keys, weights and mask, each of which was judged."},
    {Verdict::unobserved, "unobserved", Effect::none, false,
     "The candidate's plan does not publish the stage, because a fused segment holds it: listed, neither a pass nor "
     "missing."},
    {Verdict::fail, "fail", Effect::fails_run, false,
     "The two sides differ by more than the stage's tolerance or bound, or in shape or element type."},
    {Verdict::missing, "missing", Effect::fails_run, false,
     "One side has a tensor that the other should have and has not."},
    {Verdict::degenerate, "degenerate", Effect::fails_run, false,
     "A float tensor of 16 or more elements is constant, so that its agreement shows nothing."},
    {Verdict::uncertified, "uncertified", Effect::fails_run, false,
     "A selection differs, and the candidate does not publish what could explain it."},
    {Verdict::crashed, "crashed", Effect::fails_run, false,
     "The candidate ended with an error, a device's among them, ended its process or exceeded the time limit, and ran "
     "no "
     "further."},
    {Verdict::error, "error", Effect::bad_input, false,
     "The fixture cannot be read, contradicts itself or misses what it must cover; nothing is concluded about the "
     "candidate."},
}};

}  // namespace

std::span<const VerdictInfo> verdicts() noexcept { return kVerdicts; }

const VerdictInfo& info_of(Verdict verdict) noexcept { return kVerdicts[static_cast<std::size_t>(verdict)]; }

std::string_view name_of(Verdict verdict) noexcept { return info_of(verdict).name; }

bool fails_run(Verdict verdict) noexcept { return info_of(verdict).effect == VerdictEffect::fails_run; }

std::optional<Verdict> verdict_named(std::string_view name) noexcept {
  const auto* found =
      std::find_if(kVerdicts.begin(), kVerdicts.end(), [&](const VerdictInfo& v) { return v.name == name; });
  if (found == kVerdicts.end()) {
    return std::nullopt;
  }
  return found->verdict;
}

}  // namespace attndiff
