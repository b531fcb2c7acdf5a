#include "reference/contract/stage.h"

namespace attndiff {

const char* name_of(StageKind kind) noexcept {
  switch (kind) {
    case StageKind::real:
      return "float";
    case StageKind::code:
      return "code";
    case StageKind::index:
      return "index";
    case StageKind::mask:
      return "mask";
    case StageKind::state:
      return "state";
  }
  return "?";
}

const char* name_of(Rounding rounding) noexcept {
  switch (rounding) {
    case Rounding::none:
      return "none";
    case Rounding::f32:
      return "f32";
    case Rounding::bf16:
      return "bf16";
    case Rounding::fp8:
      return "fp8";
    case Rounding::fp4_e8m0:
      return "fp4_e8m0";
    case Rounding::fp4_e4m3:
      return "fp4_e4m3";
    case Rounding::mixed:
      return "mixed";
  }
  return "?";
}

const StageInfo* ModelFamily::find(std::string_view stage) const noexcept {
  for (const StageInfo& info : stages) {
    if (info.name == stage) {
      return &info;
    }
  }
  return nullptr;
}

}  // namespace attndiff
