// A weight stored as e4m3 against its dequantised twin in bf16, whose activation is quantised by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "reference/contract/bfloat16.h"
#include "reference/deepseek_v41/model_test_support.h"
#include "reference/quantize.h"

namespace attndiff::deepseek_v41 {
namespace {

/// A random e4m3 weight and the same values in bf16.
std::pair<Weight, Weight> twins(const Shape& shape) {
  std::mt19937 engine(21);
  const std::int64_t rows = shape[0];
  const std::int64_t depth = shape[1];
  const std::int64_t blocks = (depth + 31) / 32;
  Weight codes{.values = Tensor(DType::e4m3, shape), .scales = Tensor(DType::u8, {(rows + 31) / 32, blocks})};
  const auto scales = codes.scales.as<std::uint8_t>();
  for (std::uint8_t& scale : scales) {
    scale = static_cast<std::uint8_t>(115 + engine() % 5);
  }
  Weight plain{.values = Tensor(DType::bf16, shape), .scales = {}};
  for (std::int64_t i = 0; i < rows * depth; ++i) {
    const auto code = static_cast<unsigned>((engine() % 0x7fU) | ((engine() % 2) << 7U));
    const int exponent = static_cast<int>((code >> 3U) & 0xfU);
    const int mantissa = static_cast<int>(code & 7U);
    const int scale = scales[static_cast<std::size_t>(i / depth / 32 * blocks + i % depth / 32)] - 127;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, scale - 9) : std::ldexp(8 + mantissa, exponent - 10 + scale);
    const auto value = static_cast<float>((code & 0x80U) != 0 ? -magnitude : magnitude);
    EXPECT_EQ(round_bf16(value), value) << "dequantised values are exact in bf16";
    codes.values.raw()[i] = static_cast<std::byte>(code);
    plain.values.as<Bf16>()[static_cast<std::size_t>(i)] = to_bf16(value);
  }
  return {std::move(codes), std::move(plain)};
}

/// fp8 of each row, blocks of 32 with a shorter last one.
void quantise_rows(Tensor& t) {
  const auto width = static_cast<std::size_t>(t.shape()[t.shape().rank() - 1]);
  Tensor floats = to_f32(t);
  for (std::size_t row = 0; row < floats.as<float>().size(); row += width) {
    for (std::size_t begin = 0; begin < width; begin += 32) {
      reference::fp8_round_trip(floats.as<float>().subspan(row + begin, std::min<std::size_t>(32, width - begin)));
    }
  }
  t = to_bf16(floats);
}

struct QuantisedWeight {
  const char* name;
  StageId activation;  ///< kStageCount: the layer's input
  StageId result;
};

void PrintTo(const QuantisedWeight& w, std::ostream* out) { *out << w.name; }

class E4m3Weight : public testing::TestWithParam<QuantisedWeight> {
 protected:
  E4m3Weight()
      : codes_(
            random_model(small_config(), {{.layer_id = 1, .ratio = 1, .is_kv_source = true, .is_index_source = true}})),
        plain_(codes_) {
    auto [codes, plain] = twins(codes_.weights[0].at(GetParam().name).values.shape());
    codes_.weights[0].set(GetParam().name, std::move(codes));
    plain_.weights[0].set(GetParam().name, std::move(plain));
  }

  /// The result stage of a prefill and a decode; with a `change` of the activation.
  static std::vector<Tensor> results(const TestModel& model, const std::function<void(Tensor&)>& change) {
    TestModel changed = model;
    if (GetParam().activation == kStageCount) {
      change(changed.x[0]);
    }
    Session session(changed);
    std::vector<Tensor> found;
    for (const CallShape& call : {prefill(5), decode(5)}) {
      Recorder recorder(GetParam().activation, change);
      (void)session.run(0, call, recorder);
      found.push_back(recorder.unrounded.at(GetParam().result));
    }
    return found;
  }

  TestModel codes_;
  TestModel plain_;
};

TEST_P(E4m3Weight, IsItsDequantisedTwinOnAQuantisedActivation) {
  const auto untouched = [](Tensor&) {};
  const auto found = results(codes_, untouched);
  const auto expected = results(plain_, quantise_rows);
  const auto unquantised = results(plain_, untouched);
  for (std::size_t call = 0; call < found.size(); ++call) {
    EXPECT_TRUE(same_bytes(found[call], expected[call])) << "call " << call;
    EXPECT_FALSE(same_bytes(found[call], unquantised[call])) << "the activation's quantisation does not show";
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, E4m3Weight,
                         testing::Values(QuantisedWeight{"wq_a", kStageCount, kQr},
                                         QuantisedWeight{"wkv", kStageCount, kKvPre}, QuantisedWeight{"wq_b", kQr, kQ},
                                         QuantisedWeight{"idx_wq_b", kQr, kIndexQPre},
                                         QuantisedWeight{"wo_b", kOg, kOut}),
                         [](const auto& weight) { return std::string(weight.param.name); });

}  // namespace
}  // namespace attndiff::deepseek_v41
