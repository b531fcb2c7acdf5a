#include "kernels/launch.cuh"
#include "kernels/step_scalars.h"

namespace attndiff::kernels {
namespace {

__global__ void set_step(StepScalars* device, StepScalars value) { *device = value; }

}  // namespace

void launch_set_step(StepScalars* device, const StepScalars& value, cudaStream_t stream) {
  launch("set_step", set_step, 1, 1, 0, stream, device, value);
}

}  // namespace attndiff::kernels
