// An adapter directory as PEFT writes and reads it: adapter_config.json and adapter_model.safetensors beside a
// base model that lies elsewhere. Only plain LoRA on projections is computed here; what else an
// adapter_config.json can ask for is refused by name.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "records/adapter_config.h"
#include "records/model_config.h"

namespace ropd::io {

// PEFT's names of A [r, inputs] and B [outputs, r] of a module.
std::string lora_a_name(const std::string& module);
std::string lora_b_name(const std::string& module);

// adapter_config.json: what it says of the adapter, and which base it names (a path or a hub's name; may be
// empty).
struct ParsedAdapterConfig {
  AdapterConfig adapter;
  std::string base;
  bool names_all_modules = true;  // else the tensors tell: a pattern, or some layers only
};
ParsedAdapterConfig parse_adapter_config(std::string_view json, std::string_view where);
// For PEFT; an adapter for a causal language model, ready to use.
std::string adapter_config_json(const AdapterConfig& adapter, const std::string& base);

// The matrices that the adapter changes, in the order of the model. Refuses targets that the model does not
// have and ranks of 0 or above a matrix's smaller side. `where` begins the error text.
std::vector<AdapterMatrix> adapter_matrices(const ModelConfig& model, const AdapterConfig& adapter,
                                            std::string_view where);

// The entries of adapter_model.safetensors' metadata that name the base.
inline constexpr const char *kBaseFingerprint = "ropd_base_fingerprint", *kBaseContent = "ropd_base_content";

// A base model in short: SHA-256 over names, shapes and the first 1,024 values of every tensor, widened to f32,
// so that a copy in another type that holds the same numbers is the same. Reads a page a tensor.
std::string base_fingerprint(std::span<const StoredTensor> tensors);
// All of a base model: SHA-256 over names, shapes and every value, the same for every stored type that holds the
// same numbers and for any number of files. Reads everything.
std::string base_content(std::span<const StoredTensor> tensors);

// Whether it holds an adapter and no model of its own.
bool is_adapter_directory(const Path& path);
// Where the base of an adapter lies: `given`, or what its adapter_config.json names, as it stands or beside the
// adapter. Fails when that is no folder here (a hub's name).
Path find_base(const Path& adapter, const Path& given = {});

// Where config and weights of a model lie: itself, or the base of an adapter.
Path base_of(const Path& model, const Path& given_base = {});
// Where its tokenizer and template lie: an adapter may bring its own, else they are its base's.
Path text_directory(const Path& model, const Path& given_base = {});

// An open adapter, mapped and checked completely against the config of its base. Constant after construction.
class AdapterDirectory {
 public:
  AdapterDirectory(const Path& path, const ModelConfig& base);
  const Path& path() const { return path_; }
  const AdapterConfig& config() const { return config_; }
  const std::vector<AdapterMatrix>& matrices() const { return matrices_; }
  const StoredTensor& tensor(std::string_view name) const { return file_.tensor(name); }
  uint64_t num_bytes() const;
  int64_t num_parameters() const;
  // Fail when the adapter was trained by this program on another base, by its fingerprint or by its base_content,
  // which adapters of earlier versions do not name.
  void require_base(std::span<const StoredTensor> base, const Path& where) const;
  bool names_base_content() const { return file_.metadata().contains(kBaseContent); }
  void require_base_content(const std::string& content, const Path& where) const;

 private:
  Path path_;
  AdapterConfig config_;
  SafetensorsFile file_;
  std::vector<AdapterMatrix> matrices_;
};

}  // namespace ropd::io
