#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/config.h"
#include "reference/contract/tensor.h"

namespace attndiff {

/// Rows and columns of e4m3 values that share one e8m0 scale.
inline constexpr std::int64_t kE4m3Block = 32;

/// One weight in the type it was stored in.
struct Weight {
  Tensor values;  ///< f32 or bf16 [out, in] or [n]; or e4m3 codes [out, in]
  Tensor scales;  ///< with e4m3 only: u8 e8m0 exponents [ceil(out/32), ceil(in/32)], value 2^(code - 127)

  [[nodiscard]] bool quantised() const noexcept { return values.dtype() == DType::e4m3; }
};

/// A layer's weights by their names in the specification.
class LayerWeights {
 public:
  /// Throws Error(internal) when the layer's kind has no such weight.
  [[nodiscard]] const Weight& at(std::string_view name) const;
  void set(std::string name, Weight weight);
  [[nodiscard]] const std::map<std::string, Weight, std::less<>>& all() const noexcept { return weights_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  std::map<std::string, Weight, std::less<>> weights_;
};

/// What a layer of some kind must have: a family publishes one list for readers, writers and backends.
struct WeightSpec {
  const char* name;
  Shape shape;
  DType dtype = DType::bf16;  ///< the type it is stored in when it is not quantised
  bool may_be_e4m3 = false;   ///< the released checkpoint stores it as e4m3 with block scales
};

}  // namespace attndiff
