#include "base/rng.h"

#include <Random123/philox.h>

#include <numeric>
#include <utility>

namespace ropd {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  const r123::Philox4x32::ctr_type philox_counter = {{counter[0], counter[1], counter[2], counter[3]}};
  const r123::Philox4x32::key_type philox_key = {{key[0], key[1]}};
  const auto bits = r123::Philox4x32()(philox_counter, philox_key);
  return {bits[0], bits[1], bits[2], bits[3]};
}

std::array<uint32_t, 4> random_bits(uint64_t seed, Purpose purpose, RandomIndex index) {
  // The odd constant spreads small purposes over the whole key word, so (seed, purpose) pairs of small
  // numbers differ.
  const uint32_t purpose_bits = static_cast<uint32_t>(purpose) * 0x9E3779B9u;
  return philox(
      {static_cast<uint32_t>(index.key), static_cast<uint32_t>(index.key >> 32), index.row, index.column},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32) ^ purpose_bits});
}

double random_uniform(uint64_t seed, Purpose purpose, RandomIndex index) {
  const auto bits = random_bits(seed, purpose, index);
  const uint64_t wide = (uint64_t{bits[0]} << 32) | bits[1];
  return static_cast<double>(wide >> 11) * 0x1p-53;
}

uint64_t derive_seed(uint64_t seed, std::string_view part) {
  const auto bits = random_bits(seed, Purpose::seed_derivation, {.key = text_key(part)});
  return ((uint64_t{bits[0]} << 32) | bits[1]) >> 11;
}

uint64_t text_key(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : text) {
    hash ^= static_cast<uint8_t>(letter);
    hash *= 0x100000001b3u;
  }
  return hash;
}

std::vector<uint32_t> random_permutation(uint32_t count, uint64_t seed, Purpose purpose, uint64_t key) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t last = count; last > 1; --last) {
    const auto bits = random_bits(seed, purpose, {.key = key, .row = last});
    // 64 random bits scaled to [0, last): the bias is below 2^-32.
    const auto wide = (static_cast<unsigned __int128>(bits[0]) << 32) | bits[1];
    std::swap(order[last - 1], order[static_cast<uint32_t>((wide * last) >> 64)]);
  }
  return order;
}

}  // namespace ropd
