// Writes a model directory that other Hugging Face tools load: weights (sharded above a size), config,
// tokenizer, model card; or an adapter directory that PEFT loads.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "records/adapter_config.h"

namespace ropd::io {

// One tensor to save. `produce` gives its bytes to the sink in pieces, so that a conversion needs no second
// copy of the model.
struct TensorToSave {
  using Sink = std::function<void(std::span<const std::byte>)>;
  TensorInfo info;
  std::function<void(const Sink&)> produce;
};

// Values that are stored as they are (f32) or rounded to bf16 on the way. They must outlive the saving.
TensorToSave tensor_to_save(std::string name, std::vector<int64_t> shape, std::span<const float> values,
                            DType stored);

struct SaveModelOptions {
  Path source_directory;    // tokenizer, template and license files are copied from it; empty = none
  std::string config_json;  // its dtype key is set to the stored dtype
  std::string generation_config_json;  // empty = none
  std::string base_model;              // for the model card
  std::string description;             // paragraphs of the model card
  uint64_t max_shard_bytes = 5'000'000'000;
};

// Writes a new directory, which appears whole or not at all (temporary sibling, fsync, rename). A tied
// lm_head.weight is left out. Fails when `path` exists and is not an empty folder, when the tensors do not
// fit the config, or when the disk is too small.
void save_model_directory(const Path& path, const SaveModelOptions& options,
                          std::vector<TensorToSave> tensors);
void save_model_directory(const Path& path, const SaveModelOptions& options,
                          std::span<const StoredTensor> tensors);

struct SaveAdapterOptions {
  AdapterConfig adapter;
  Path base;                 // for adapter_config.json and the card
  std::string fingerprint;   // of the base
  std::string description;   // paragraphs of the card
  std::string content = {};  // of the base (base_content); empty: not said
};

// Writes a new directory, which appears whole or not at all. The tensors' names are PEFT's.
void save_adapter_directory(const Path& path, const SaveAdapterOptions& options,
                            std::span<const StoredTensor> tensors);

}  // namespace ropd::io
