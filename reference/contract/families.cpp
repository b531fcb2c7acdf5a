#include "reference/contract/families.h"

#include <string>

#include "reference/contract/error.h"
#include "reference/deepseek_v41/stages.h"

namespace attndiff {

const ModelFamily* find_family(std::string_view name) noexcept {
  const ModelFamily& only = deepseek_v41::family();
  return only.name == name ? &only : nullptr;
}

const ModelFamily& family_named(std::string_view name) {
  if (const ModelFamily* family = find_family(name)) {
    return *family;
  }
  throw Error(ErrorKind::input, {.file = {},
                                 .object = "/config attribute family",
                                 .problem = "unknown model family",
                                 .expected = std::string(deepseek_v41::family().name),
                                 .found = std::string(name)});
}

}  // namespace attndiff
