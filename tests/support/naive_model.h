// The decoder again, in double precision, one sequence at a time, written as the formulas are: an oracle that
// shares no code with the engine. Also small random models for tests.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "model/weights.h"

namespace ropd::test {

inline ModelConfig tiny_config(Architecture architecture, bool tied = true) {
  ModelConfig c;
  c.architecture = architecture;
  c.hidden_size = 20;
  c.intermediate_size = 28;
  c.num_layers = 2;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 6;
  c.vocab_size = 37;
  c.max_position_embeddings = 256;
  c.rope_theta = 500;
  c.tie_word_embeddings = tied;
  c.has_qkv_bias = architecture == Architecture::qwen2;
  c.has_qk_norm = architecture == Architecture::qwen3 || architecture == Architecture::qwen3_moe;
  if (architecture == Architecture::qwen3_moe) {
    c.num_experts = 5;
    c.num_experts_per_token = 2;
    c.moe_intermediate_size = 12;
    c.norm_topk_prob = true;
    c.is_moe_layer = {true, false};
  }
  return c;
}

// Weights around `scale`, norms around 1, from the counter generator.
inline model::Parameters random_parameters(const ModelConfig& config, uint64_t seed, float scale = 0.35f) {
  model::Parameters parameters(config);
  for (size_t s = 0; s < parameters.slots().size(); ++s) {
    const auto& slot = parameters.slots()[s];
    const bool is_norm = slot.name.find("norm") != std::string::npos;
    for (int64_t i = 0; i < slot.size; ++i) {
      const double u = random_uniform(seed, Purpose::test, {s, static_cast<uint32_t>(i), 0}) * 2 - 1;
      parameters.values()[slot.offset + i] = static_cast<float>(is_norm ? 1 + 0.3 * u : scale * u);
    }
  }
  return parameters;
}

using Row = std::vector<double>;
using Rows = std::vector<Row>;

class NaiveModel {
 public:
  explicit NaiveModel(const model::Parameters& parameters) : config_(parameters.config()) {
    for (const auto& slot : parameters.slots()) {
      shape_[slot.name] = slot.shape;
      auto& to = tensor_[slot.name];
      for (int64_t i = 0; i < slot.size; ++i) to.push_back(parameters.values()[slot.offset + i]);
    }
  }
  std::vector<double>& tensor(const std::string& name) { return tensor_.at(name); }

  // Logits [T][V] of every position of one sequence.
  Rows logits(const std::vector<Token>& tokens) const {
    const auto& c = config_;
    Rows x;
    for (const Token t : tokens) {
      const auto& table = tensor_.at("model.embed_tokens.weight");
      x.emplace_back(table.begin() + t * c.hidden_size, table.begin() + (t + 1) * c.hidden_size);
    }
    for (int64_t i = 0; i < c.num_layers; ++i) {
      const std::string layer = "model.layers." + std::to_string(i) + ".";
      add(x,
          project(attention(normed(x, layer + "input_layernorm.weight"), layer), layer + "self_attn.o_proj"));
      const Rows h = normed(x, layer + "post_attention_layernorm.weight");
      const bool is_moe = c.is_moe() && c.is_moe_layer[static_cast<size_t>(i)];
      add(x, is_moe ? experts(h, layer + "mlp.") : mlp(h, layer + "mlp."));
    }
    return project(normed(x, "model.norm.weight"), c.tie_word_embeddings ? "model.embed_tokens" : "lm_head");
  }

  static Row log_softmax(const Row& logits) {
    const double highest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double l : logits) sum += std::exp(l - highest);
    Row result;
    for (const double l : logits) result.push_back(l - highest - std::log(sum));
    return result;
  }

 private:
  static void add(Rows& x, const Rows& y) {
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t d = 0; d < x[t].size(); ++d) x[t][d] += y[t][d];
  }
  Row normed(const Row& x, const std::string& name, size_t begin, size_t size) const {
    double sum = 0;
    for (size_t d = 0; d < size; ++d) sum += x[begin + d] * x[begin + d];
    const double inverse = 1 / std::sqrt(sum / static_cast<double>(size) + config_.rms_norm_eps);
    Row y;
    for (size_t d = 0; d < size; ++d) y.push_back(x[begin + d] * inverse * tensor_.at(name)[d]);
    return y;
  }
  Rows normed(const Rows& x, const std::string& name) const {
    Rows y;
    for (const Row& row : x) y.push_back(normed(row, name, 0, row.size()));
    return y;
  }
  Rows project(const Rows& x, const std::string& name) const {
    const auto& w = tensor_.at(name + ".weight");
    const auto& shape = shape_.at(name + ".weight");
    Rows y;
    for (const Row& row : x) {
      Row out;
      for (int64_t n = 0; n < shape[0]; ++n) {
        double sum = tensor_.count(name + ".bias") ? tensor_.at(name + ".bias")[static_cast<size_t>(n)] : 0.0;
        for (int64_t k = 0; k < shape[1]; ++k)
          sum += row[static_cast<size_t>(k)] * w[static_cast<size_t>(n * shape[1] + k)];
        out.push_back(sum);
      }
      y.push_back(out);
    }
    return y;
  }
  void prepare_heads(Rows& x, const std::string& norm, int64_t heads) const {
    const int64_t e = config_.head_dim;
    for (size_t t = 0; t < x.size(); ++t)
      for (int64_t h = 0; h < heads; ++h) {
        Row head(x[t].begin() + h * e, x[t].begin() + (h + 1) * e);
        if (config_.has_qk_norm) head = normed(head, norm, 0, static_cast<size_t>(e));
        for (int64_t i = 0; i < e / 2; ++i) {
          const double angle =
              static_cast<double>(t) *
              std::pow(config_.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(e));
          const double a = head[static_cast<size_t>(i)], b = head[static_cast<size_t>(i + e / 2)];
          x[t][static_cast<size_t>(h * e + i)] = a * std::cos(angle) - b * std::sin(angle);
          x[t][static_cast<size_t>(h * e + i + e / 2)] = b * std::cos(angle) + a * std::sin(angle);
        }
      }
  }
  Rows attention(const Rows& h, const std::string& layer) const {
    const auto& c = config_;
    Rows q = project(h, layer + "self_attn.q_proj"), k = project(h, layer + "self_attn.k_proj");
    const Rows v = project(h, layer + "self_attn.v_proj");
    prepare_heads(q, layer + "self_attn.q_norm.weight", c.num_heads);
    prepare_heads(k, layer + "self_attn.k_norm.weight", c.num_kv_heads);
    Rows out(h.size(), Row(static_cast<size_t>(c.num_heads * c.head_dim), 0.0));
    for (size_t t = 0; t < h.size(); ++t)
      for (int64_t head = 0; head < c.num_heads; ++head) {
        const int64_t kv = head / (c.num_heads / c.num_kv_heads);
        Row scores;
        for (size_t j = 0; j <= t; ++j) {
          double dot = 0;
          for (int64_t e = 0; e < c.head_dim; ++e)
            dot += q[t][static_cast<size_t>(head * c.head_dim + e)] *
                   k[j][static_cast<size_t>(kv * c.head_dim + e)];
          scores.push_back(dot / std::sqrt(static_cast<double>(c.head_dim)));
        }
        const Row p = log_softmax(scores);
        for (size_t j = 0; j <= t; ++j)
          for (int64_t e = 0; e < c.head_dim; ++e)
            out[t][static_cast<size_t>(head * c.head_dim + e)] +=
                std::exp(p[j]) * v[j][static_cast<size_t>(kv * c.head_dim + e)];
      }
    return out;
  }
  Rows mlp(const Rows& h, const std::string& name) const {
    Rows gate = project(h, name + "gate_proj");
    const Rows up = project(h, name + "up_proj");
    for (size_t t = 0; t < gate.size(); ++t)
      for (size_t f = 0; f < gate[t].size(); ++f)
        gate[t][f] = gate[t][f] / (1 + std::exp(-gate[t][f])) * up[t][f];
    return project(gate, name + "down_proj");
  }
  Rows experts(const Rows& h, const std::string& name) const {
    const Rows router = project(h, name + "gate");
    Rows out;
    for (size_t t = 0; t < h.size(); ++t) {
      Row p = log_softmax(router[t]);
      for (double& value : p) value = std::exp(value);
      std::vector<size_t> order(p.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
      order.resize(static_cast<size_t>(config_.num_experts_per_token));
      double sum = 0;
      for (const size_t e : order) sum += p[e];
      Row mixed(h[t].size(), 0.0);
      for (const size_t e : order) {
        const Rows y = mlp({h[t]}, name + "experts." + std::to_string(e) + ".");
        for (size_t d = 0; d < mixed.size(); ++d)
          mixed[d] += p[e] / (config_.norm_topk_prob ? sum : 1.0) * y[0][d];
      }
      out.push_back(mixed);
    }
    return out;
  }

  ModelConfig config_;
  std::map<std::string, std::vector<int64_t>> shape_;
  std::map<std::string, std::vector<double>> tensor_;
};

}  // namespace ropd::test
