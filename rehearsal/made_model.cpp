#include "made_model.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/rng.h"

namespace ropd::rehearsal {
namespace {

constexpr int64_t kRank = 64, kBias = 1, kContext = 2, kNext = kContext + kRank, kRest = kNext + kRank;
constexpr int64_t kOrdinaryTokens = 151643, kEnd = 151645;  // <|im_end|>
constexpr double kNever = -60;
// Sizes in the residual stream and in the embeddings.
constexpr double kBiasCarrier = 4, kBiasUnit = 0.005, kToken = 0.02, kCopied = 0.2, kOwnToken = 0.005,
                 kOwnEnd = 0.15, kOwnTypical = 0.035;
constexpr double kGate = 10;     // silu(10) is 10
constexpr double kGated = 0.36;  // size of silu(g) u for g, u of size 1

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::vector<float> normal_quantiles() {
  constexpr int kCount = 65536;
  std::vector<float> values(kCount);
  for (int i = 0; i < kCount / 2; ++i) {
    double low = 0, high = 6;
    for (int step = 0; step < 40; ++step) {
      const double middle = (low + high) / 2;
      (0.5 * std::erfc(middle / std::sqrt(2.0)) > (i + 0.5) / kCount ? low : high) = middle;
    }
    values[static_cast<size_t>(i)] = static_cast<float>(-low);
    values[static_cast<size_t>(kCount - 1 - i)] = static_cast<float>(low);
  }
  return values;
}

void set(Bf16& place, double value) { place = float_to_bf16(static_cast<float>(value)); }

struct Place {
  std::string part;  // self_attn.q_proj.weight; whole name outside of layers
  int64_t layer = -1;
};
Place place_of(const std::string& tensor) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!tensor.starts_with(kPrefix)) return {tensor, -1};
  const size_t end = tensor.find('.', kPrefix.size());
  return {tensor.substr(end + 1), std::stoll(tensor.substr(kPrefix.size(), end - kPrefix.size()))};
}

}  // namespace

MadeModel::MadeModel(const ModelConfig& config, const MadeModelSettings& settings)
    : config_(config), settings_(settings), normal_(normal_quantiles()) {
  if (config.architecture != Architecture::qwen3 || !config.tie_word_embeddings ||
      config.vocab_size <= kEnd || config.hidden_size < 2 * kRest || config.intermediate_size <= 2 * kRank)
    fail("a made model is a Qwen3 with tied embeddings and Qwen's vocabulary of at least ", kEnd + 1);
  walk();
}

// Zipf-Mandelbrot over the ids, which byte-level BPE gives out roughly by frequency. Single bytes that are no
// text by themselves are rare.
double MadeModel::log_frequency(int64_t token) const {
  if (token == kEnd) return expectation_.end_log_frequency;
  if (token >= kOrdinaryTokens) return kNever;
  const bool is_part_of_character = token >= 94 && token < 256;
  return -1.2 * std::log1p(static_cast<double>(token) / 20) - (is_part_of_character ? 8 : 0);
}

float MadeModel::shared_normal(uint64_t kind, int64_t token, int64_t k) const {
  return normal_[mix(mix(kind * 0x10001 + static_cast<uint64_t>(token)) + static_cast<uint64_t>(k)) & 0xFFFF];
}

float MadeModel::continuation(int64_t token, int64_t k) const {
  return token < kOrdinaryTokens ? shared_normal(2, token, k) : 0.0f;
}

// Samples from the bigram model; the end token's frequency follows from how likely a continuation was.
void MadeModel::walk() {
  constexpr int kSteps = 300, kWarm = 20;
  const auto count = static_cast<size_t>(kOrdinaryTokens);
  std::vector<float> next(count * kRank), frequency(count);
  for (size_t v = 0; v < count; ++v) {
    frequency[v] = static_cast<float>(log_frequency(static_cast<int64_t>(v)));
    for (int64_t k = 0; k < kRank; ++k)
      next[v * kRank + static_cast<size_t>(k)] = continuation(static_cast<int64_t>(v), k);
  }
  const double scale = settings_.sharpness / std::sqrt(static_cast<double>(kRank));
  std::vector<float> context(kRank);
  std::vector<double> probability(count), sorted;
  int64_t token = 785;  // "The"
  double inverse_total = 0, entropy = 0, top = 0;
  for (int step = 0; step < kWarm + kSteps; ++step) {
    for (int64_t k = 0; k < kRank; ++k)
      context[static_cast<size_t>(k)] = static_cast<float>(scale) * shared_normal(1, token, k);
    double total = 0, weighted = 0;
    for (size_t v = 0; v < count; ++v) {
      float logit = frequency[v];
      const float* z = &next[v * kRank];
#pragma omp simd reduction(+ : logit)
      for (int64_t k = 0; k < kRank; ++k) logit += context[static_cast<size_t>(k)] * z[k];
      probability[v] = std::exp(static_cast<double>(logit));
      total += probability[v];
      weighted += probability[v] * static_cast<double>(logit);
    }
    if (step >= kWarm) {
      sorted = probability;
      std::nth_element(sorted.begin(), sorted.begin() + 16, sorted.end(), std::greater<>());
      for (int i = 0; i < 16; ++i) top += sorted[static_cast<size_t>(i)] / total / kSteps;
      entropy += (std::log(total) - weighted / total) / kSteps;
      inverse_total += 1 / total / kSteps;
    }
    double draw = static_cast<double>(mix(static_cast<uint64_t>(step)) >> 11) * 0x1p-53 * total;
    token = 0;
    while (token < kOrdinaryTokens - 1 && (draw -= probability[static_cast<size_t>(token)]) > 0) ++token;
  }
  expectation_ = {entropy, top, -std::log(settings_.mean_length * inverse_total)};
}

// Standard deviation of a matrix: outputs of size 1 inside of a block, equal contributions to the stream. If
// attention averaged nothing and all inputs had size 1, the stream's own part would be kOwnEnd at the end: a bound
// that later layers rely on (set_norm), for the large constant keeps the norms from taming what grows beyond it.
double MadeModel::random_size(const std::string& part) const {
  const double width = static_cast<double>(config_.hidden_size),
               added = kOwnEnd / std::sqrt(2.0 * static_cast<double>(config_.num_layers));
  if (part == "self_attn.o_proj.weight")
    return added / std::sqrt(static_cast<double>(config_.num_heads * config_.head_dim));
  if (part == "mlp.down_proj.weight")
    return added / kGated / std::sqrt(static_cast<double>(config_.intermediate_size));
  return part == "model.embed_tokens.weight" ? kOwnToken : 1 / std::sqrt(width);
}

void MadeModel::set_embedding_row(std::span<Bf16> row, int64_t token) const {
  set(row[0], std::sqrt(static_cast<double>(config_.hidden_size)));
  set(row[kBias], kBiasUnit * log_frequency(token));
  for (int64_t k = 0; k < kRank; ++k) {
    set(row[static_cast<size_t>(kContext + k)], kToken * shared_normal(1, token, k));
    set(row[static_cast<size_t>(kNext + k)], kToken * continuation(token, k));
  }
}

// Every group of dimensions comes out of a norm with size 1 (its own part with at most that), out of the last with
// its share of the logits.
void MadeModel::set_norm(std::span<Bf16> weights, const std::string& part) const {
  const double width = static_cast<double>(config_.hidden_size);
  const bool is_last = part == "model.norm.weight";
  const double rest =
      is_last ? settings_.noise / (kOwnToken * kOwnTypical * std::sqrt(width - kRest)) : 1 / kOwnEnd;
  const double next =
      is_last ? settings_.sharpness / (kToken * kCopied * std::sqrt(double{kRank})) : 1 / kCopied;
  for (size_t d = 0; d < weights.size(); ++d) {
    const auto dimension = static_cast<int64_t>(d);
    set(weights[d], dimension == 0       ? (is_last ? 0.001 : 1 / std::sqrt(width))
                    : dimension == kBias ? (is_last ? 1 / (kBiasUnit * kBiasCarrier) : 1 / kBiasCarrier)
                    : dimension < kNext  ? (is_last ? 0.1 : 1 / kToken)
                    : dimension < kRest  ? next
                                         : rest);
  }
}

// Layer 0: hidden unit 0 writes the constant, units 1..K copy z.
void MadeModel::set_first_mlp_row(std::span<Bf16> row, const std::string& part, int64_t index) const {
  constexpr int64_t kUnits = kRank + 1;
  if (part == "mlp.down_proj.weight") {
    std::fill_n(row.begin(), kUnits, Bf16{0});
    if (index == kBias) set(row[0], kBiasCarrier / kGate);
    if (index >= kNext && index < kRest) set(row[static_cast<size_t>(1 + index - kNext)], kCopied / kGate);
    return;
  }
  if (index >= kUnits) return;
  std::ranges::fill(row, Bf16{0});
  if (part == "mlp.gate_proj.weight") set(row[0], kGate);
  if (part == "mlp.up_proj.weight") set(row[static_cast<size_t>(index == 0 ? 0 : kContext + index - 1)], 1);
}

void MadeModel::fill(std::span<Bf16> out, const std::string& tensor, int64_t columns,
                     int64_t first_row) const {
  const auto [part, layer] = place_of(tensor);
  if (part.ends_with("q_norm.weight") || part.ends_with("k_norm.weight")) {
    std::ranges::fill(out, float_to_bf16(1.5f));  // attention that looks at some places more than at others
    return;
  }
  if (part.ends_with("norm.weight")) return set_norm(out, part);
  std::vector<Bf16> table(normal_.size());
  for (size_t i = 0; i < table.size(); ++i) set(table[i], random_size(part) * normal_[i]);
  const bool writes_stream = part == "self_attn.o_proj.weight" || part == "mlp.down_proj.weight";
  const uint64_t key = mix(settings_.seed * 0x9E37 + text_key(tensor));
  const auto width = static_cast<size_t>(columns);
  for (size_t begin = 0; begin < out.size(); begin += width) {
    const std::span<Bf16> row = out.subspan(begin, width);
    const int64_t index = first_row + static_cast<int64_t>(begin / width);
    const uint64_t row_key = mix(key + static_cast<uint64_t>(index));
    uint64_t bits = 0;
    for (size_t i = 0; i < width; ++i, bits >>= 16) {
      if (i % 4 == 0) bits = mix(row_key + i);
      row[i] = table[bits & 0xFFFF];
    }
    if (writes_stream && index < kRest) std::ranges::fill(row, Bf16{0});  // set by hand alone
    if (part == "model.embed_tokens.weight") set_embedding_row(row, index);
    if (layer == 0 && part.starts_with("mlp.")) set_first_mlp_row(row, part, index);
  }
}

}  // namespace ropd::rehearsal
