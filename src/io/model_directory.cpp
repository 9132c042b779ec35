#include "io/model_directory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace ropd::io {
namespace {

constexpr uint64_t kMaxConfigBytes = 10'000'000, kMaxIndexBytes = 100'000'000;
constexpr size_t kMaxNamed = 8;  // of missing or extra tensors in one message
constexpr const char* kHead = "lm_head.weight";

// Every tensor name and shape of the config, in model order. A visitor instead of a list, so that a config
// that claims millions of tensors is compared with the file before anything of that size is allocated.
template <class Visit>
void visit_expected(const ModelConfig& c, Visit visit) {
  const int64_t query_rows = c.num_heads * c.head_dim, kv_rows = c.num_kv_heads * c.head_dim;
  visit("model.embed_tokens.weight", {c.vocab_size, c.hidden_size});
  for (int64_t layer = 0; layer < c.num_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      visit(prefix + name, std::move(shape));
    };
    const auto add_mlp = [&](const std::string& name, int64_t width) {
      add(name + "gate_proj.weight", {width, c.hidden_size});
      add(name + "up_proj.weight", {width, c.hidden_size});
      add(name + "down_proj.weight", {c.hidden_size, width});
    };
    add("input_layernorm.weight", {c.hidden_size});
    add("self_attn.q_proj.weight", {query_rows, c.hidden_size});
    add("self_attn.k_proj.weight", {kv_rows, c.hidden_size});
    add("self_attn.v_proj.weight", {kv_rows, c.hidden_size});
    if (c.has_qkv_bias) {
      add("self_attn.q_proj.bias", {query_rows});
      add("self_attn.k_proj.bias", {kv_rows});
      add("self_attn.v_proj.bias", {kv_rows});
    }
    add("self_attn.o_proj.weight", {c.hidden_size, query_rows});
    if (c.has_qk_norm) {
      add("self_attn.q_norm.weight", {c.head_dim});
      add("self_attn.k_norm.weight", {c.head_dim});
    }
    add("post_attention_layernorm.weight", {c.hidden_size});
    if (c.is_moe() && c.is_moe_layer[static_cast<size_t>(layer)]) {
      add("mlp.gate.weight", {c.num_experts, c.hidden_size});
      for (int64_t expert = 0; expert < c.num_experts; ++expert) {
        add_mlp("mlp.experts." + std::to_string(expert) + ".", c.moe_intermediate_size);
      }
    } else {
      add_mlp("mlp.", c.intermediate_size);
    }
  }
  visit("model.norm.weight", {c.hidden_size});
  if (!c.tie_word_embeddings) visit(kHead, {c.vocab_size, c.hidden_size});
}

// Up to kMaxNamed names and how many there are beyond.
class NameList {
 public:
  void add(std::string_view name) {
    if (++count_ <= kMaxNamed) text_ += (text_.empty() ? "" : ", ") + std::string(name);
  }
  bool is_empty() const { return count_ == 0; }
  std::string text() const {
    return text_ + (count_ > kMaxNamed ? " and " + std::to_string(count_ - kMaxNamed) + " more" : "");
  }

 private:
  size_t count_ = 0;
  std::string text_;
};

// Opens the shards of an index and compares what they hold with what it says.
std::vector<SafetensorsFile> open_shards(const Path& directory, const Path& index_path) {
  const auto weight_map = parse_shard_index(read_file(index_path, kMaxIndexBytes), index_path.string());
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map) shards.insert(shard);
  NameList missing;
  for (const auto& shard : shards) {
    if (!std::filesystem::exists(directory / shard)) missing.add(shard);
  }
  if (!missing.is_empty())
    fail(index_path.string(), ": missing shards: ", missing.text(), " (incomplete download?)");
  std::vector<SafetensorsFile> files;
  std::set<std::string_view> found;
  for (const auto& shard : shards) files.emplace_back(directory / shard);
  for (const auto& file : files) {
    for (const auto& tensor : file.tensors()) {
      const auto entry = weight_map.find(tensor.name);
      const auto shard = file.path().filename().string();
      if (entry == weight_map.end())
        fail(index_path.string(), ": does not name tensor '", tensor.name, "' of ", shard);
      if (entry->second != shard) {
        fail(index_path.string(), ": tensor '", tensor.name, "' should be in ", entry->second, ", it is in ",
             shard);
      }
      found.insert(tensor.name);
    }
  }
  NameList absent;
  for (const auto& [tensor, shard] : weight_map) {
    if (!found.contains(tensor) && !is_stored_rope_table(tensor)) absent.add(tensor + " (" + shard + ")");
  }
  if (!absent.is_empty()) fail(index_path.string(), ": the shards do not hold: ", absent.text());
  return files;
}

}  // namespace

bool is_stored_rope_table(std::string_view tensor_name) {
  return tensor_name.ends_with(".rotary_emb.inv_freq");
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void check_tensors(const ModelConfig& config, std::span<const TensorInfo> tensors, std::string_view where) {
  std::map<std::string_view, const TensorInfo*> unused;
  for (const auto& tensor : tensors) {
    if (!unused.emplace(tensor.name, &tensor).second)
      fail(where, ": two tensors are named '", tensor.name, "'");
  }
  NameList missing, extra;
  const auto check = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const auto found = unused.find(name);
    if (found == unused.end()) return missing.add(name);
    if (found->second->shape != shape) {
      fail(where, ": tensor '", name, "' has shape ", shape_text(found->second->shape),
           ", config.json asks for ", shape_text(shape));
    }
    unused.erase(found);
  };
  visit_expected(config, check);
  if (config.tie_word_embeddings && unused.contains(kHead))
    check(kHead, {config.vocab_size, config.hidden_size});
  if (!missing.is_empty())
    fail(where, ": missing for ", architecture_name(config.architecture), ": ", missing.text());
  for (const auto& [name, tensor] : unused) extra.add(name);
  if (!extra.is_empty()) {
    fail(where, ": not part of ", architecture_name(config.architecture),
         " with this config.json: ", extra.text());
  }
}

void require_same_model(const ModelConfig& found, std::string_view where, const ModelConfig& expected) {
  const auto compare = [&](const char* name, const auto& there, const auto& here) {
    if (there != here)
      fail(where, ": another model than expected: its ", name, " is ", there, ", expected ", here);
  };
  compare("architecture", architecture_name(found.architecture), architecture_name(expected.architecture));
  compare("hidden_size", found.hidden_size, expected.hidden_size);
  compare("intermediate_size", found.intermediate_size, expected.intermediate_size);
  compare("num_hidden_layers", found.num_layers, expected.num_layers);
  compare("num_attention_heads", found.num_heads, expected.num_heads);
  compare("num_key_value_heads", found.num_kv_heads, expected.num_kv_heads);
  compare("head_dim", found.head_dim, expected.head_dim);
  compare("vocab_size", found.vocab_size, expected.vocab_size);
  compare("max_position_embeddings", found.max_position_embeddings, expected.max_position_embeddings);
  compare("rms_norm_eps", found.rms_norm_eps, expected.rms_norm_eps);
  compare("rope_theta", found.rope_theta, expected.rope_theta);
  compare("tie_word_embeddings", found.tie_word_embeddings, expected.tie_word_embeddings);
  compare("number of experts", found.num_experts, expected.num_experts);
  compare("num_experts_per_tok", found.num_experts_per_token, expected.num_experts_per_token);
  compare("moe_intermediate_size", found.moe_intermediate_size, expected.moe_intermediate_size);
  compare("norm_topk_prob", found.norm_topk_prob, expected.norm_topk_prob);
  if (found.is_moe_layer != expected.is_moe_layer)
    fail(where, ": another model than expected: its experts are in other layers");
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> tensors;
  visit_expected(config, [&](std::string name, std::vector<int64_t> shape) {
    tensors.push_back({std::move(name), std::move(shape)});
  });
  return tensors;
}

std::map<std::string, std::string> parse_shard_index(std::string_view index_json, std::string_view where) {
  const Json json = parse_json(index_json, where, /*max_depth=*/8);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    fail(where, ": expected an object with a 'weight_map' from tensor to file");
  }
  std::map<std::string, std::string> weight_map;
  for (const auto& [tensor, value] : json["weight_map"].items()) {
    if (!value.is_string()) fail(where, ": the file of tensor '", tensor, "' must be text");
    const auto& shard = value.get_ref<const std::string&>();
    const bool has_path_parts = shard.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos;
    if (shard.empty() || shard == "." || shard == ".." || has_path_parts) {
      fail(where, ": the file of tensor '", tensor, "' is '", shard, "', expected a plain file name");
    }
    weight_map.emplace(tensor, shard);
  }
  if (weight_map.empty()) fail(where, ": the weight_map is empty");
  return weight_map;
}

ModelDirectory::ModelDirectory(const Path& path, const Path& base)
    : path_(path), base_path_(base_of(path, base)) {
  const Path& directory = base_path_;
  const Path config_path = directory / "config.json", generation_path = directory / "generation_config.json";
  if (!std::filesystem::is_directory(directory))
    fail(directory.string(), ": is not a folder, expected a model directory");
  config_json_ = read_file(config_path, kMaxConfigBytes);
  config_ = parse_model_config(config_json_, config_path.string());
  if (std::filesystem::exists(generation_path))
    generation_config_json_ = read_file(generation_path, kMaxConfigBytes);
  generation_ = parse_generation_config(generation_config_json_, generation_path.string(), config_json_,
                                        config_path.string());

  const Path single = directory / "model.safetensors", index = directory / "model.safetensors.index.json";
  if (std::filesystem::exists(single)) {
    files_.emplace_back(single);
  } else if (std::filesystem::exists(index)) {
    files_ = open_shards(directory, index);
  } else {
    fail(directory.string(), ": holds neither model.safetensors nor model.safetensors.index.json");
  }
  for (const auto& file : files_)
    std::ranges::copy_if(file.tensors(), std::back_inserter(tensors_),
                         [](const StoredTensor& tensor) { return !is_stored_rope_table(tensor.name); });
  std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<TensorInfo> infos;
  for (const auto& tensor : tensors_) infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  check_tensors(config_, infos, directory.string());
  if (directory == path) return;
  adapter_.emplace(path, config_);
  adapter_->require_base(tensors_, directory);
}

Path ModelDirectory::text_path() const { return adapter_ ? text_directory(path_, base_path_) : path_; }

const StoredTensor* ModelDirectory::find(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const StoredTensor& tensor, std::string_view key) { return tensor.name < key; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

const StoredTensor& ModelDirectory::tensor(std::string_view name) const {
  const StoredTensor* found = find(name);
  if (!found) fail(path_.string(), ": holds no tensor '", name, "'");
  return *found;
}

int64_t ModelDirectory::num_parameters() const {
  int64_t count = 0;
  for (const auto& tensor : tensors_) {
    if (!(config_.tie_word_embeddings && tensor.name == kHead)) count += tensor.num_elements();
  }
  return count;
}

uint64_t ModelDirectory::num_bytes() const {
  uint64_t sum = 0;
  for (const auto& tensor : tensors_) sum += tensor.bytes.size();
  return sum + (adapter_ ? adapter_->num_bytes() : 0);
}

const std::string& ModelDirectory::content() const {
  std::call_once(content_->is_known, [&] { content_->hash = base_content(tensors_); });
  return content_->hash;
}

void ModelDirectory::check_base() const {
  if (adapter_ && adapter_->names_base_content()) adapter_->require_base_content(content(), base_path_);
}

void ModelDirectory::release_pages() const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const auto& tensor : tensors_) {
    // Whole pages around the tensor: its file is mapped read-only from a page's beginning to a page's end.
    const auto first = reinterpret_cast<uintptr_t>(tensor.bytes.data()) / page * page;
    const auto end = reinterpret_cast<uintptr_t>(tensor.bytes.data()) + tensor.bytes.size();
    if (end > first) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);  // only advice
  }
}

}  // namespace ropd::io
