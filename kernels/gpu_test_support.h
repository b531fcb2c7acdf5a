#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/launch.h"
#include "reference/contract/bfloat16.h"

namespace attndiff::kernels {

/// Skips, with the reason, where no GPU is usable: never a pass.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
      static_cast<void>(cudaGetLastError());
      GTEST_SKIP() << "no usable GPU: " << (status == cudaSuccess ? "none found" : cudaGetErrorString(status));
    }
  }
};

/// A device copy of a host vector, for the length of a test.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : count_(values.size()) {
    ATTNDIFF_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), bytes() + 1));
    ATTNDIFF_CUDA(cudaMemcpyAsync(data_, values.data(), bytes(), cudaMemcpyHostToDevice, nullptr));
  }
  explicit OnDevice(std::size_t count, T fill = T{}) : OnDevice(std::vector<T>(count, fill)) {}
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] T* get() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(T); }
  [[nodiscard]] std::vector<T> host() const {
    std::vector<T> values(count_);
    ATTNDIFF_CUDA(cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDeviceToHost, nullptr));
    ATTNDIFF_CUDA(cudaStreamSynchronize(nullptr));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// A value no kernel may leave in its output: a quiet NaN with a payload that rounding never makes.
inline constexpr Bf16 kUnwritten{0x7fff};

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& v : values) {
    v = normal(generator);
  }
  return values;
}

inline std::vector<Bf16> rounded(const std::vector<float>& values) {
  std::vector<Bf16> out;
  out.reserve(values.size());
  for (const float v : values) {
    out.push_back(to_bf16(v));
  }
  return out;
}

inline std::vector<Bf16> random_bf16(std::size_t count, unsigned seed, float scale = 1.0F) {
  return rounded(random_floats(count, seed, scale));
}

inline std::vector<float> widened(const std::vector<Bf16>& values) {
  std::vector<float> out;
  out.reserve(values.size());
  for (const Bf16 v : values) {
    out.push_back(to_float(v));
  }
  return out;
}

/// Fails where a value is further from `want` than `units` bf16 units of the wanted value plus `absolute`.
inline void expect_close(const std::vector<Bf16>& got, const std::vector<double>& want, double units, double absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(static_cast<double>(to_float(got[i])) - want[i]);
    ASSERT_LE(error, units * bf16_unit(want[i]) + absolute) << "element " << i << ", wanted " << want[i];
  }
}

}  // namespace attndiff::kernels
