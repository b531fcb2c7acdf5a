#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attndiff {

/// What `attndiff import` was asked for.
struct ImportRequest {
  std::string config;                ///< the model's configuration, see read_model_description()
  std::string weights;               ///< .safetensors, or the index of several
  std::string prefix;                ///< stands before "layers.N.attn." in the weights' names
  std::string activations;           ///< .safetensors or .npz
  std::vector<std::int64_t> layers;  ///< ids, each once
  std::int64_t start_pos = 0;        ///< of step 0
  std::string note;
  std::string output;
};

/// Makes a fixture from a checkpoint's weights and captured activations.
///
/// Weights are `PREFIXlayers.N.attn.NAME` by the released names (wq_a.weight, wq_a.scale, compressor.norm.weight, ...),
/// as bf16, float32, or e4m3 with e8m0 scales of 32 x 32 blocks; where a fixture holds no e4m3, the exact values are
/// stored.
///
/// Activations are named by step and layer id: `steps.K.layers.N.x` for every step from 0 and every layer,
/// `steps.K.layers.N.expected.STAGE`, `steps.K.layers.N.shared_in.SLOT`, and `initial_state.layers.N.PART`. x is
/// [tokens, dim] and so says how many tokens the step has. A leading axis of 1 is left out. A name that is none of
/// these is an error.
///
/// Throws Error(input) that names file and array, Error(usage) also where `output` is a file of the checkpoint,
/// Error(output). On failure no file is left.
void import_fixture(const ImportRequest& request);

}  // namespace attndiff
