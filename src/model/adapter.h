// A low-rank adapter (records/adapter_config.h): its parameters as flat f32 storage, in PEFT's tensors and names,
// and the weights that it makes of a base. The base stays as it is, mapped in the type it is stored in.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "io/adapter_directory.h"
#include "model/weights.h"
#include "records/adapter_config.h"

namespace ropd::model {

// Copies share their values.
class Adapter {
 public:
  // All zero: changes nothing. `where` begins the text of errors (targets, ranks).
  Adapter(const ModelConfig& base, const AdapterConfig& config, std::string_view where = "adapter");
  // Refuses values that are not finite.
  static Adapter load(const io::AdapterDirectory& directory);

  // As PEFT begins: A uniform in ± 1 / sqrt(inputs), from the counted generator by tensor name; B zero.
  void initialize(uint64_t seed);

  const AdapterConfig& config() const { return config_; }  // its targets are complete
  const std::vector<AdapterMatrix>& matrices() const { return matrices_; }
  // A [r, inputs] and B [outputs, r] of every matrix.
  const std::vector<ParameterSlot>& slots() const { return slots_; }
  std::span<float> values() { return *values_; }
  std::span<const float> values() const { return std::as_const(*values_); }
  kernels::LowRank change(size_t matrix) const;

  // The base with this adapter. Views follow later changes of values().
  Weights on(const Weights& base) const;

 private:
  AdapterConfig config_;
  std::vector<AdapterMatrix> matrices_;
  std::vector<ParameterSlot> slots_;  // [2 * matrices]
  std::shared_ptr<Buffer> values_;

  Adapter(AdapterConfig config, std::vector<AdapterMatrix> matrices);
};

}  // namespace ropd::model
