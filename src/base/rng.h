// Random numbers as a pure function of what they are for: Philox4x32-10 (Salmon et al. 2011) keyed by seed
// and purpose, counted by up to four indices. No generator state exists, so a draw never depends on batch,
// thread, rank or restart.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ropd {

// What a random number is for; two purposes never share numbers. Values are part of the numerics contract:
// append only.
enum class Purpose : uint32_t {
  sampling = 1,  // seed of the stream; indices: query key (64 bit), sample, position
  query_selection = 2,
  query_order = 3,
  bootstrap = 4,
  weight_init = 5,
  lab_world = 6,
  prefix_positions = 7,
  gradient_probe = 8,
  data_order = 9,  // supervised fine-tuning
  seed_derivation = 10,
  test = 99,
};

struct RandomIndex {
  uint64_t key = 0;     // what is drawn for: a query, a tensor, an experiment
  uint32_t row = 0;     // sample, draw, ...
  uint32_t column = 0;  // position, element block, ...
};

// The raw Philox4x32-10 function, for known-answer tests.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Four independent uniform 32-bit numbers for this seed, purpose and index.
std::array<uint32_t, 4> random_bits(uint64_t seed, Purpose purpose, RandomIndex index);

// Uniform in [0, 1) with 53 random bits.
double random_uniform(uint64_t seed, Purpose purpose, RandomIndex index);

// A 53-bit seed (exact in JSON) for a part of an experiment, e.g. derive_seed(run_seed, "bank").
uint64_t derive_seed(uint64_t seed, std::string_view part);

// The draws for one purpose, e.g. an evaluation: a seed of its own, derived from the run's seed and its name.
struct RandomStream {
  uint64_t seed = 0;
  std::string name;

  RandomStream() = default;
  // No aggregate: a lone number must not pass for a stream.
  RandomStream(uint64_t seed_, std::string name_) : seed(seed_), name(std::move(name_)) {}
  uint64_t derived_seed() const { return derive_seed(seed, name); }
  bool operator==(const RandomStream&) const = default;
};

// A 64-bit key of a text (FNV-1a), to index draws by query id.
uint64_t text_key(std::string_view text);

// The numbers 0..count-1 in an order given by seed and purpose (Fisher-Yates).
std::vector<uint32_t> random_permutation(uint32_t count, uint64_t seed, Purpose purpose, uint64_t key = 0);

}  // namespace ropd
