// A model directory as Hugging Face tools write and read it: config.json, generation_config.json, tokenizer
// and template files, and the weights in model.safetensors or in shards named by
// model.safetensors.index.json. Or an adapter directory together with its base (adapter_directory.h).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/adapter_directory.h"
#include "io/hf_config.h"
#include "io/safetensors.h"
#include "records/model_config.h"

namespace ropd::io {

struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;
};

// The tensors a checkpoint of this config holds; lm_head.weight only when it is not tied to the embeddings.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

// Tables of rotary frequencies that older tools stored beside the weights. They follow from config.json and
// are not read.
[[nodiscard]] bool is_stored_rope_table(std::string_view tensor_name);

// Fails unless the tensors are exactly the expected ones, naming what is missing, extra or wrongly shaped; a
// tied lm_head.weight may be present. `where` begins the error text.
void check_tensors(const ModelConfig& config, std::span<const TensorInfo> tensors, std::string_view where);

std::string shape_text(const std::vector<int64_t>& shape);  // [2, 3]

// Fails unless both have the same shape and constants, so that the values of one fit the buffers of the
// other; the stored type may differ. `where` names the one that was found.
void require_same_model(const ModelConfig& found, std::string_view where, const ModelConfig& expected);

// model.safetensors.index.json: tensor name -> file name, checked to be plain names.
std::map<std::string, std::string> parse_shard_index(std::string_view index_json, std::string_view where);

// An open checkpoint, mapped and checked completely: names, shapes, shards. Constant after construction;
// threads may share it.
class ModelDirectory {
 public:
  // Of an adapter, `base` says where its base lies when its own config does not (find_base).
  explicit ModelDirectory(const Path& directory, const Path& base = {});
  const Path& path() const { return path_; }            // as given
  const Path& base_path() const { return base_path_; }  // of config and weights; of an adapter its base's
  Path text_path() const;                               // where tokenizer and template lie
  const AdapterDirectory* adapter() const { return adapter_ ? &*adapter_ : nullptr; }  // on the weights
  const ModelConfig& config() const { return config_; }
  const GenerationConfig& generation() const { return generation_; }
  const std::string& config_json() const { return config_json_; }  // as in the file
  const std::string& generation_config_json() const {
    return generation_config_json_;
  }                                                                      // empty when there is none
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // sorted by name
  const StoredTensor* find(std::string_view name) const;                 // nullptr when absent
  const StoredTensor& tensor(std::string_view name) const;               // fails when absent
  int num_files() const { return static_cast<int>(files_.size()); }
  std::span<const SafetensorsFile> files() const { return files_; }
  int64_t num_parameters() const;  // a tied head counts once
  uint64_t num_bytes() const;      // of all tensors, an adapter's too
  // base_content() of the tensors; read once.
  const std::string& content() const;
  // For whoever reads all weights: fails unless those below an adapter are the ones that it was trained on.
  void check_base() const;
  // Takes the mapped pages out of the process; whoever reads a tensor next gets them from the system's cache
  // of the file, or from the disk where memory was needed for something else.
  void release_pages() const;

 private:
  Path path_, base_path_;
  std::string config_json_, generation_config_json_;
  ModelConfig config_;
  GenerationConfig generation_;
  std::vector<SafetensorsFile> files_;
  std::vector<StoredTensor> tensors_;  // views into files_
  std::optional<AdapterDirectory> adapter_;
  struct Content {
    std::once_flag is_known;
    std::string hash;
  };
  std::shared_ptr<Content> content_ = std::make_shared<Content>();
};

}  // namespace ropd::io
