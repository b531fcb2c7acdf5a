#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/files.h"
#include "harness/cli/options.h"
#include "harness/import/import_fixture.h"

namespace attndiff::cli {
namespace {

constexpr std::int64_t kMostPositions = 1'000'000'000;

constexpr const char* kDescription = "Make a fixture from a checkpoint's weights and captured activations";

constexpr const char* kNames = R"(Names in the weights file, as the released checkpoint has them:
  layers.N.attn.wq_a.weight (and .scale with e4m3), ... .attn_sink, .compressor.norm.weight, .indexer.wq_b.weight

Names in the activations file; N is a layer's id, K counts the calls from 0:
  steps.K.layers.N.x                    [tokens, dim], bf16 or float32 that bf16 holds; of every call and layer
  steps.K.layers.N.expected.STAGE       optional: what the call must give. All of q, o, idx and out, and any other stage
  steps.K.layers.N.shared_in.SLOT       compress_kv, index_k, selection or candidates of a layer that is not imported
  initial_state.layers.N.PART           with --start-pos: window, comp_kv_state, comp_score_state, compress_kv, index_k

Example:
  attndiff import --config config.json --weights model.safetensors.index.json --layers 20,21 --activations acts.npz -o x.h5

docs/capture.md describes it. Pickled files are never read.)";

}  // namespace

void add_import(CLI::App& program, ExitCode& exit_code) {
  CLI::App* command = program.add_subcommand("import", kDescription);
  command->footer(kNames);
  const auto request = std::make_shared<ImportRequest>();
  command->add_option("--config", request->config, "the model's config.json, or TOML with a fixture's names")
      ->required();
  command->add_option("--weights", request->weights, ".safetensors, or the .json index of several")->required();
  command->add_option("--layers", request->layers, "layer ids: 20,21")->required()->delimiter(',');
  command->add_option("--activations", request->activations, ".safetensors or .npz")->required();
  add_text_option(*command, "-o,--output", request->output, "the fixture to write")->required();
  command->add_option("--prefix", request->prefix, "what stands before `layers.` in the weights' names: model.");
  command->add_option("--start-pos", request->start_pos, "position of the first call")
      ->capture_default_str()
      ->check(whole_number(0, kMostPositions));
  command->add_option("--note", request->note, "a line about the fixture");
  command->callback([request, &exit_code] {
    check_files(
        {{"--config", request->config}, {"--weights", request->weights}, {"--activations", request->activations}},
        {{"--output", request->output}});
    import_fixture(*request);
    exit_code = kPassed;
  });
}

}  // namespace attndiff::cli
