#include "io/adapter_directory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "io/model_directory.h"

namespace ropd::io {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxConfigBytes = 10'000'000;
constexpr const char *kPrefix = "base_model.model.", *kAllLinear = "all-linear";

// Null, false, 0 and what is empty mean the same in PEFT's fields: not asked for.
bool is_absent(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null() || *found == false) return true;
  return (found->is_structured() || found->is_string()) && found->size() == 0;
}

void refuse_if(bool is_asked, std::string_view where, const char* what) {
  if (is_asked)
    fail(where, ": asks for ", what, ", which is not computed here (plain LoRA on projections only)");
}

// Every way of PEFT to compute something else than W + scale · (B A).
void refuse_what_is_not_computed(const Json& json, std::string_view where) {
  const std::string type = json.value("peft_type", "");
  if (type != "LORA")
    fail(where, ": peft_type is '", type, "', expected LORA (IA3, AdaLoRA and others are not computed)");
  refuse_if(!is_absent(json, "use_dora"), where, "DoRA (use_dora)");
  if (const auto init = json.find("init_lora_weights"); init != json.end() && init->is_string()) {
    // These change the base as well, so the adapter alone is not the difference to it.
    const std::string kind = init->get<std::string>();
    for (const auto& [begin, name] : {std::pair{"pissa", "PiSSA"},
                                      {"olora", "OLoRA"},
                                      {"loftq", "LoftQ"},
                                      {"corda", "CorDA"},
                                      {"lora_ga", "LoRA-GA"}})
      if (kind.starts_with(begin))
        fail(where, ": init_lora_weights is '", kind, "': ", name,
             " changes the base weights, which is not computed here; save it converted to plain LoRA");
  }
  if (const auto dropout = json.find("lora_dropout");
      dropout != json.end() && !dropout->is_null() && (!dropout->is_number() || *dropout != 0))
    fail(where, ": lora_dropout is ", dropout->dump(),
         ", expected 0: dropout is not computed here (it has no effect after training: set it to 0 in a "
         "copy)");
  if (const std::string bias = json.value("bias", "none"); bias != "none")
    fail(where, ": bias is '", bias, "', expected none: trained biases are not computed here");
  refuse_if(!is_absent(json, "modules_to_save"), where, "whole modules (modules_to_save)");
  refuse_if(!is_absent(json, "lora_bias"), where, "biases of B (lora_bias)");
  refuse_if(!is_absent(json, "fan_in_fan_out"), where, "transposed weights (fan_in_fan_out)");
  refuse_if(!is_absent(json, "layer_replication"), where, "repeated layers (layer_replication)");
  refuse_if(!is_absent(json, "target_parameters"), where, "single parameters (target_parameters)");
  refuse_if(!is_absent(json, "trainable_token_indices"), where, "token embeddings (trainable_token_indices)");
  refuse_if(!is_absent(json, "alora_invocation_tokens"), where, "activated LoRA (alora_invocation_tokens)");
  refuse_if(!is_absent(json, "arrow_config"), where, "Arrow routing (arrow_config)");
  for (const auto& [key, value] : json.items())
    if (key.starts_with("use_") && key != "use_rslora" && value == true) refuse_if(true, where, key.c_str());
}

// A module's name or the end of one; PEFT also takes regular expressions, which are not read.
bool is_plain_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.';
  });
}

bool ends_with_module(std::string_view module, std::string_view end) {
  return module == end || (module.size() > end.size() && module.ends_with(end) &&
                           module[module.size() - end.size() - 1] == '.');
}

// A rank of 16.5 or true is a mistake, not 16 or 1.
template <class Value>
Value number_of(const Json& value, const std::string& name, std::string_view where) {
  const bool is_right = std::is_integral_v<Value> ? value.is_number_integer() : value.is_number();
  if (!is_right)
    fail(where, ": ", name, " is ", value.dump().substr(0, 60), ", expected a ",
         std::is_integral_v<Value> ? "whole number" : "number");
  return value.get<Value>();
}

template <class Value>
std::map<std::string, Value> read_pattern(const Json& json, const char* key, std::string_view where) {
  std::map<std::string, Value> values;
  if (is_absent(json, key)) return values;
  if (!json[key].is_object()) fail(where, ": ", key, " must be an object from module to number");
  for (const auto& [name, value] : json[key].items()) {
    const std::string plain = name.starts_with("^") ? name.substr(1) : name;
    if (!is_plain_name(plain))
      fail(where, ": ", key, " names '", name,
           "', expected a module's name (regular expressions are not read)");
    values[plain] = number_of<Value>(value, std::string(key) + " of " + name, where);
  }
  return values;
}

template <class Value>
Value value_of(const std::map<std::string, Value>& patterns, const std::string& module, Value otherwise) {
  for (const auto& [name, value] : patterns)
    if (ends_with_module(module, name)) return value;
  return otherwise;
}

// Projections that an adapter may change: matrices of layers, but not the router that chooses experts.
template <class Visit>
void visit_projections(const ModelConfig& model, Visit visit) {
  constexpr std::string_view kWeight = ".weight";
  for (const ExpectedTensor& tensor : expected_tensors(model)) {
    if (tensor.shape.size() != 2 || !tensor.name.starts_with("model.layers.") ||
        tensor.name.ends_with("mlp.gate.weight"))
      continue;
    visit(tensor.name.substr(0, tensor.name.size() - kWeight.size()), tensor.shape);
  }
}

const Path& existing_adapter(const Path& path) {
  if (!is_adapter_directory(path))
    fail(path.string(), ": holds no adapter_config.json, expected an adapter directory");
  return path;
}

std::vector<const StoredTensor*> by_name(std::span<const StoredTensor> tensors) {
  std::vector<const StoredTensor*> sorted;
  for (const StoredTensor& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return sorted;
}

std::string name_and_shape(const StoredTensor& tensor) {
  std::string text = tensor.name;
  for (const int64_t dimension : tensor.shape) text += " " + std::to_string(dimension);
  return text;
}

uint32_t f32_bits(const StoredTensor& tensor, size_t index) {
  const size_t width = dtype_bytes(tensor.dtype);
  uint32_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + index * width, width);
  if (tensor.dtype == DType::f32) return bits;
  return std::bit_cast<uint32_t>(tensor.dtype == DType::bf16 ? bf16_to_float(static_cast<uint16_t>(bits))
                                                             : f16_to_float(static_cast<uint16_t>(bits)));
}

// Of values of a tensor: as bf16 where none of them needs more, else as f32, so that the stored type does not show.
std::string hash_of_values(const StoredTensor& tensor, size_t begin, size_t end) {
  Sha256 hash;
  if (tensor.dtype == DType::bf16) {
    hash.add("bf16");
    hash.add(tensor.bytes.data() + 2 * begin, 2 * (end - begin));
    return hash.hexadecimal();
  }
  std::vector<uint32_t> wide;
  std::vector<uint16_t> narrow;
  wide.reserve(end - begin);
  for (size_t i = begin; i < end; ++i) wide.push_back(f32_bits(tensor, i));
  if (std::ranges::any_of(wide, [](uint32_t bits) { return (bits & 0xffff) != 0; })) {
    hash.add("f32");
    hash.add(wide.data(), wide.size() * sizeof wide[0]);
    return hash.hexadecimal();
  }
  for (const uint32_t bits : wide) narrow.push_back(static_cast<uint16_t>(bits >> 16));
  hash.add("bf16");
  hash.add(narrow.data(), narrow.size() * sizeof narrow[0]);
  return hash.hexadecimal();
}

AdapterMatrix make_matrix(const std::string& module, const std::vector<int64_t>& shape,
                          const AdapterConfig& adapter, std::string_view where) {
  const int64_t rank = value_of(adapter.ranks, module, adapter.rank), most = std::min(shape[0], shape[1]);
  if (rank < 1 || rank > most)
    fail(where, ": rank ", rank, " of ", module, ", expected 1 to ", most, " (the matrix is ", shape[0],
         " x ", shape[1], ")");
  const double alpha = value_of(adapter.alphas, module, adapter.alpha),
               root = adapter.rslora ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank);
  const auto scale = static_cast<float>(alpha / root);
  if (!std::isfinite(scale)) fail(where, ": alpha ", alpha, " of ", module, " is too large for f32");
  return {module, shape[0], shape[1], rank, scale};
}

}  // namespace

std::string lora_a_name(const std::string& module) { return kPrefix + module + ".lora_A.weight"; }
std::string lora_b_name(const std::string& module) { return kPrefix + module + ".lora_B.weight"; }

ParsedAdapterConfig parse_adapter_config(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where, /*max_depth=*/16);
  if (!json.is_object()) fail(where, ": expected an object");
  try {
    refuse_what_is_not_computed(json, where);
    ParsedAdapterConfig parsed;
    if (!json.contains("r")) fail(where, ": holds no rank 'r'");
    parsed.adapter.rank = number_of<int64_t>(json.at("r"), "r", where);
    parsed.adapter.alpha =
        json.contains("lora_alpha") ? number_of<double>(json["lora_alpha"], "lora_alpha", where) : 8.0;
    if (!std::isfinite(parsed.adapter.alpha)) fail(where, ": lora_alpha is not finite");
    parsed.adapter.rslora = json.value("use_rslora", false);
    parsed.adapter.ranks = read_pattern<int64_t>(json, "rank_pattern", where);
    parsed.adapter.alphas = read_pattern<double>(json, "alpha_pattern", where);
    if (!is_absent(json, "base_model_name_or_path")) parsed.base = json.at("base_model_name_or_path");
    parsed.names_all_modules = is_absent(json, "layers_to_transform") && is_absent(json, "exclude_modules");
    if (const auto targets = json.find("target_modules"); targets != json.end() && targets->is_array()) {
      for (const Json& target : *targets) parsed.adapter.targets.push_back(target.get<std::string>());
      std::sort(parsed.adapter.targets.begin(), parsed.adapter.targets.end());
      if (parsed.adapter.targets.empty()) fail(where, ": target_modules is empty");
    } else if (targets == json.end() || *targets != kAllLinear) {
      parsed.names_all_modules = false;  // a regular expression
    }
    return parsed;
  } catch (const Json::exception& error) {
    fail(where, ": not as PEFT writes it: ", error.what());
  }
}

std::string adapter_config_json(const AdapterConfig& adapter, const std::string& base) {
  nlohmann::ordered_json json = {
      {"alpha_pattern", adapter.alphas},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path", base},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"layers_pattern", nullptr},
      {"layers_to_transform", nullptr},
      {"lora_alpha", adapter.alpha},
      {"lora_dropout", 0.0},
      {"modules_to_save", nullptr},
      {"peft_type", "LORA"},
      {"r", adapter.rank},
      {"rank_pattern", adapter.ranks},
      {"revision", nullptr},
      {"target_modules", kAllLinear},
      {"task_type", "CAUSAL_LM"},
      {"use_dora", false},
      {"use_rslora", adapter.rslora},
  };
  if (adapter.alpha == std::floor(adapter.alpha) && std::abs(adapter.alpha) < 1e15)
    json["lora_alpha"] = static_cast<int64_t>(adapter.alpha);  // a whole number in PEFT
  if (!adapter.targets.empty()) json["target_modules"] = adapter.targets;
  // A path need not be UTF-8; where its base is not found, --base says where it lies.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::vector<AdapterMatrix> adapter_matrices(const ModelConfig& model, const AdapterConfig& adapter,
                                            std::string_view where) {
  std::vector<AdapterMatrix> matrices;
  std::set<std::string> unused(adapter.targets.begin(), adapter.targets.end());
  for (const auto& [name, rank] : adapter.ranks) unused.insert(name);
  for (const auto& [name, alpha] : adapter.alphas) unused.insert(name);
  std::string names;
  visit_projections(model, [&](const std::string& module, const std::vector<int64_t>& shape) {
    if (module.starts_with("model.layers.0."))
      names += (names.empty() ? "" : ", ") + module.substr(module.rfind('.') + 1);
    const auto is_end = [&](const std::string& end) { return ends_with_module(module, end); };
    std::erase_if(unused, is_end);
    if (adapter.targets.empty() || std::any_of(adapter.targets.begin(), adapter.targets.end(), is_end))
      matrices.push_back(make_matrix(module, shape, adapter, where));
  });
  if (!unused.empty())
    fail(where, ": unknown target '", *unused.begin(), "', ", architecture_name(model.architecture), " has ",
         model.is_moe() ? "the projections of its attention and experts" : names,
         " (embeddings, head and router are not adapted)");
  return matrices;
}

std::string base_fingerprint(std::span<const StoredTensor> tensors) {
  constexpr size_t kValues = 1024;
  std::string all;
  for (const StoredTensor* tensor : by_name(tensors)) {
    all += name_and_shape(*tensor);
    const size_t count = std::min(kValues, tensor->bytes.size() / dtype_bytes(tensor->dtype));
    for (size_t i = 0; i < count; ++i) {
      const uint32_t bits = f32_bits(*tensor, i);
      all.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    }
  }
  return sha256(all);
}

std::string base_content(std::span<const StoredTensor> tensors) {
  constexpr size_t kValues = 1 << 22;  // of a block: 8 MiB of bf16
  struct Block {
    const StoredTensor* tensor;
    size_t begin, end;
    std::string hash;
  };
  std::vector<Block> blocks;
  for (const StoredTensor* tensor : by_name(tensors)) {
    const size_t count = tensor->bytes.size() / dtype_bytes(tensor->dtype);
    for (size_t begin = 0; begin == 0 || begin < count; begin += kValues)
      blocks.push_back({tensor, begin, std::min(begin + kValues, count), ""});
  }
  parallel_tasks(blocks.size(), [&](size_t b, size_t) {
    blocks[b].hash = hash_of_values(*blocks[b].tensor, blocks[b].begin, blocks[b].end);
  });
  std::string all;
  for (const Block& block : blocks)
    all += (block.begin == 0 ? name_and_shape(*block.tensor) + "\n" : "") + block.hash + "\n";
  return sha256(all);
}

bool is_adapter_directory(const Path& path) {
  return fs::exists(path / "adapter_config.json") && !fs::exists(path / "model.safetensors") &&
         !fs::exists(path / "model.safetensors.index.json");
}

Path find_base(const Path& adapter, const Path& given) {
  const Path config = adapter / "adapter_config.json";
  Path base = given;
  if (given.empty()) {
    const std::string named = parse_adapter_config(read_file(config, kMaxConfigBytes), config.string()).base;
    if (named.empty())
      fail(config.string(), ": names no base model; give its folder (--base DIR, or the key of a config)");
    base = fs::is_directory(named) ? Path(named) : adapter / named;
    if (!fs::is_directory(base))
      fail(config.string(), ": its base is '", named,
           "', which is no folder here; give the base's folder (--base DIR, or the key of a config), or name "
           "it there");
  }
  if (is_adapter_directory(base))
    fail(config.string(), ": its base ", base.string(),
         " is an adapter itself; merge that one first (ropd merge)");
  return base;
}

Path base_of(const Path& model, const Path& given_base) {
  if (is_adapter_directory(model)) return find_base(model, given_base);
  if (!given_base.empty())
    fail(model.string(), ": a base is for adapters, and this is none (no adapter_config.json)");
  return model;
}

Path text_directory(const Path& model, const Path& given_base) {
  const bool brings_its_own = is_adapter_directory(model) && fs::exists(model / "tokenizer.json");
  return brings_its_own ? model : base_of(model, given_base);
}

AdapterDirectory::AdapterDirectory(const Path& path, const ModelConfig& base)
    : path_(existing_adapter(path)), file_(path / "adapter_model.safetensors") {
  const std::string where = (path / "adapter_config.json").string();
  const ParsedAdapterConfig parsed = parse_adapter_config(read_file(where, kMaxConfigBytes), where);
  config_ = parsed.adapter;
  std::set<std::string> unused;
  for (const StoredTensor& tensor : file_.tensors()) unused.insert(tensor.name);
  const auto require = [&](const std::string& name, std::vector<int64_t> shape) {
    const StoredTensor* tensor = file_.find(name);
    if (!tensor) fail(file_.path().string(), ": holds no ", name, ", which adapter_config.json asks for");
    if (tensor->shape != shape)
      fail(file_.path().string(), ": ", name, " has shape ", shape_text(tensor->shape), ", expected ",
           shape_text(shape), " by adapter_config.json and the base's config.json (another base?)");
    unused.erase(name);
  };
  for (const AdapterMatrix& matrix : adapter_matrices(base, config_, where)) {
    const std::string a = lora_a_name(matrix.module), b = lora_b_name(matrix.module);
    if (!parsed.names_all_modules && !file_.find(a) && !file_.find(b)) continue;
    require(a, {matrix.rank, matrix.inputs});
    require(b, {matrix.outputs, matrix.rank});
    matrices_.push_back(matrix);
  }
  if (!parsed.names_all_modules) {
    config_.targets.clear();
    for (const AdapterMatrix& matrix : matrices_) config_.targets.push_back(matrix.module);
  }
  if (!unused.empty())
    fail(file_.path().string(), ": holds ", *unused.begin(),
         ", which is no adapter of a projection of this base",
         " (another base, or an adapter of what is not computed here)");
  if (matrices_.empty()) fail(file_.path().string(), ": adapts nothing");
}

uint64_t AdapterDirectory::num_bytes() const {
  uint64_t sum = 0;
  for (const StoredTensor& tensor : file_.tensors()) sum += tensor.bytes.size();
  return sum;
}

int64_t AdapterDirectory::num_parameters() const {
  int64_t sum = 0;
  for (const AdapterMatrix& matrix : matrices_) sum += matrix.rank * (matrix.inputs + matrix.outputs);
  return sum;
}

void AdapterDirectory::require_base(std::span<const StoredTensor> base, const Path& where) const {
  const auto recorded = file_.metadata().find(kBaseFingerprint);
  if (recorded == file_.metadata().end()) return;  // by another program
  const std::string found = base_fingerprint(base);
  if (found != recorded->second)
    fail(path_.string(), ": was trained on another base: its fingerprint is ", recorded->second.substr(0, 12),
         ", that of ", where.string(), " is ", found.substr(0, 12));
}

void AdapterDirectory::require_base_content(const std::string& content, const Path& where) const {
  const auto recorded = file_.metadata().find(kBaseContent);
  if (recorded != file_.metadata().end() && recorded->second != content)
    fail(path_.string(), ": the weights of its base ", where.string(),
         " are not those that it was trained on (SHA-256 ", content.substr(0, 12), ", was ",
         recorded->second.substr(0, 12), "); put the base back");
}

}  // namespace ropd::io
