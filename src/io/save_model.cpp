#include "io/save_model.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "io/adapter_directory.h"
#include "io/hf_config.h"
#include "io/model_directory.h"
#include "io/temporary_folder.h"

namespace ropd::io {
namespace {

constexpr const char* kHead = "lm_head.weight";

// What a tokenizer consists of, in all its historical forms, and what a derived model has to carry along.
constexpr const char* kCopiedFiles[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "LICENSE",
                                        "LICENSE.txt",
                                        "NOTICE"};

struct Shard {
  std::string file_name;
  std::vector<size_t> tensors;  // indices, in file order
};

// Splits in the given order; a tensor above the limit has a shard of its own.
std::vector<Shard> split_into_shards(const std::vector<TensorToSave>& tensors, uint64_t max_shard_bytes) {
  std::vector<Shard> shards(1);
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t size = tensors[i].info.num_bytes();
    if (!shards.back().tensors.empty() && bytes + size > max_shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += size;
    shards.back().tensors.push_back(i);
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64] = "model.safetensors";
    if (shards.size() > 1)
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    shards[i].file_name = name;
    // Wide types first, then by name, as the safetensors library orders them: every tensor is aligned to its
    // type.
    std::sort(shards[i].tensors.begin(), shards[i].tensors.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t k) {
        return std::pair(-static_cast<int>(dtype_bytes(tensors[k].info.dtype)), tensors[k].info.name);
      };
      return key(a) < key(b);
    });
  }
  return shards;
}

void write_shard(const Path& path, const Shard& shard, const std::vector<TensorToSave>& tensors) {
  std::vector<TensorInfo> infos;
  for (const size_t i : shard.tensors) infos.push_back(tensors[i].info);
  SafetensorsWriter writer(path, infos);
  for (const size_t i : shard.tensors) {
    uint64_t bytes = 0;
    tensors[i].produce([&](std::span<const std::byte> piece) {
      bytes += piece.size();
      writer.write(piece);
    });
    if (bytes != tensors[i].info.num_bytes()) {
      fail(path.string(), ": tensor '", tensors[i].info.name, "' produced ", bytes,
           " bytes, its shape and dtype need ", tensors[i].info.num_bytes());
    }
  }
  writer.commit();
}

void write_index(const Path& path, const std::vector<Shard>& shards,
                 const std::vector<TensorToSave>& tensors) {
  uint64_t total = 0;
  nlohmann::json weight_map = nlohmann::json::object();
  for (const auto& shard : shards) {
    for (const size_t i : shard.tensors) {
      weight_map[tensors[i].info.name] = shard.file_name;
      total += tensors[i].info.num_bytes();
    }
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  write_file_atomically(path, index.dump(2) + "\n");
}

std::string model_card(const std::string& library, const std::string& base_model,
                       const std::string& description, const Path& place) {
  std::string card = "---\nlibrary_name: " + library + "\npipeline_tag: text-generation\n";
  if (!base_model.empty())  // JSON text is YAML text; a path need not be UTF-8
    card += "base_model: " + Json(base_model).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  card += "tags:\n- on-policy-distillation\n- ropd\n---\n\n# " + place.filename().string() + "\n\n";
  card += description.empty() ? "Written by ropd.\n" : description + "\n";
  return card;
}

// "out/" and "out" are the same place; the temporary sibling needs the name without the slash.
Path without_trailing_slash(const Path& path) { return path.has_filename() ? path : path.parent_path(); }

uint64_t total_bytes(const std::vector<TensorToSave>& tensors) {
  uint64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.info.num_bytes();
  return total;
}

// Fails when there is no room for a new folder of so many bytes.
void check_place(const Path& path, uint64_t needed) {
  std::error_code ignored;
  if (std::filesystem::exists(path) && !std::filesystem::is_empty(path, ignored)) {
    fail(path.string(), ": exists already; a model is saved into a new folder");
  }
  const Path parent = path.has_parent_path() ? path.parent_path() : Path(".");
  const uint64_t available = free_disk_bytes(parent);
  if (available < needed) {
    fail(path.string(), ": the model needs ", format_bytes(static_cast<double>(needed)), ", the disk has ",
         format_bytes(static_cast<double>(available)), " free");
  }
}

std::string config_to_store(const SaveModelOptions& options, const std::vector<TensorToSave>& tensors) {
  const DType dtype = tensors.front().info.dtype;
  const bool is_uniform =
      std::all_of(tensors.begin(), tensors.end(), [&](const auto& t) { return t.info.dtype == dtype; });
  return is_uniform ? with_dtype(options.config_json, dtype) : options.config_json;
}

// In pieces, so that no second copy of the model is made.
void produce_rounded(std::span<const float> values, const TensorToSave::Sink& sink) {
  constexpr size_t kPiece = size_t{1} << 18;
  std::vector<Bf16> rounded(std::min(values.size(), kPiece));
  for (size_t begin = 0; begin < values.size(); begin += kPiece) {
    const auto piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
    std::transform(piece.begin(), piece.end(), rounded.begin(), float_to_bf16);
    sink(std::as_bytes(std::span(rounded).first(piece.size())));
  }
}

}  // namespace

TensorToSave tensor_to_save(std::string name, std::vector<int64_t> shape, std::span<const float> values,
                            DType stored) {
  assert(stored != DType::f16);
  return {{std::move(name), stored, std::move(shape)}, [values, stored](const TensorToSave::Sink& sink) {
            if (stored == DType::bf16)
              produce_rounded(values, sink);
            else
              sink(std::as_bytes(values));
          }};
}

void save_model_directory(const Path& path_given, const SaveModelOptions& options,
                          std::vector<TensorToSave> tensors) {
  const Path path = without_trailing_slash(path_given);
  const ModelConfig config = parse_model_config(options.config_json, "config.json");
  std::vector<TensorInfo> infos;
  for (const auto& tensor : tensors) infos.push_back(tensor.info);
  check_tensors(config, infos, path.string());
  check_place(path, total_bytes(tensors));
  if (config.tie_word_embeddings)
    std::erase_if(tensors, [](const auto& tensor) { return tensor.info.name == kHead; });

  TemporaryFolder folder(path);
  const auto shards = split_into_shards(tensors, options.max_shard_bytes);
  for (const auto& shard : shards) write_shard(folder.path() / shard.file_name, shard, tensors);
  if (shards.size() > 1) write_index(folder.path() / "model.safetensors.index.json", shards, tensors);
  write_file_atomically(folder.path() / "config.json", config_to_store(options, tensors));
  if (!options.generation_config_json.empty()) {
    write_file_atomically(folder.path() / "generation_config.json", options.generation_config_json);
  }
  for (const char* name : kCopiedFiles) {
    const Path source = options.source_directory / name;
    if (options.source_directory.empty() || !std::filesystem::exists(source)) continue;
    write_file_atomically(folder.path() / name, MappedFile(source).text());
  }
  write_file_atomically(folder.path() / "README.md",
                        model_card("transformers", options.base_model, options.description, path));
  folder.move_to(path);
}

void save_model_directory(const Path& path, const SaveModelOptions& options,
                          std::span<const StoredTensor> tensors) {
  std::vector<TensorToSave> to_save;
  for (const auto& tensor : tensors) {
    to_save.push_back({{tensor.name, tensor.dtype, tensor.shape},
                       [bytes = tensor.bytes](const TensorToSave::Sink& sink) { sink(bytes); }});
  }
  save_model_directory(path, options, std::move(to_save));
}

void save_adapter_directory(const Path& path_given, const SaveAdapterOptions& options,
                            std::span<const StoredTensor> tensors) {
  const Path path = without_trailing_slash(path_given);
  uint64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.bytes.size();
  check_place(path, bytes);
  TemporaryFolder folder(path);
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {kBaseFingerprint, options.fingerprint}};
  if (!options.content.empty()) metadata[kBaseContent] = options.content;
  write_safetensors(folder.path() / "adapter_model.safetensors", tensors, metadata);
  write_file_atomically(folder.path() / "adapter_config.json",
                        adapter_config_json(options.adapter, options.base.string()));
  write_file_atomically(folder.path() / "README.md",
                        model_card("peft", options.base.string(), options.description, path));
  folder.move_to(path);
}

}  // namespace ropd::io
