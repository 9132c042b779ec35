// One iteration of method.md sections 2-4 again, in double precision and as the formulas are written:
// candidates by sorting, gradients by central differences of the loss, AdamW element by element. Shares no
// code with the trainer. Only for models of some hundred parameters.
#pragma once
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "records/rollout.h"
#include "support/naive_model.h"

namespace ropd::test {

struct ReferenceSettings {
  size_t top_k = 16;
  size_t minibatch = 128;
  size_t shards = 8;
  size_t microbatch_tokens = 32768;
  bool is_token_mean_of_minibatch = false;  // minibatch_tokens; else dynamic_microbatch
  double learning_rate = 1e-6, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double grad_clip = 1.0;
  double clip = 0.2, dual_clip = 3;
};

struct ReferenceStep {
  double loss = 0, grad_norm = 0;
  double clip_fraction = 0, dual_clip_fraction = 0;
  uint32_t microbatches = 0;
};

class ReferenceTrainer {
 public:
  ReferenceTrainer(const model::Parameters& student, const model::Parameters& teacher,
                   const ReferenceSettings& settings)
      : student_(student), teacher_(teacher), settings_(settings) {
    for (const auto& slot : student.slots())
      for (size_t i = 0; i < static_cast<size_t>(slot.size); ++i)
        elements_.push_back(&student_.tensor(slot.name)[i]);
    m_.assign(elements_.size(), 0);
    v_.assign(elements_.size(), 0);
  }

  // The updated weights in the order of the slots.
  std::vector<double> parameters() const {
    std::vector<double> values;
    for (const double* element : elements_) values.push_back(*element);
    return values;
  }

  std::vector<ReferenceStep> iterate(std::span<const Rollout> rollouts) {
    std::vector<Fixed> fixed;
    for (const Rollout& rollout : rollouts) fixed.push_back(score(rollout));
    std::vector<ReferenceStep> steps;
    for (size_t begin = 0; begin < rollouts.size(); begin += settings_.minibatch) {
      const size_t count = std::min(settings_.minibatch, rollouts.size() - begin);
      steps.push_back(update(rollouts.subspan(begin, count), std::span(fixed).subspan(begin, count)));
    }
    return steps;
  }

 private:
  struct Fixed {
    std::vector<std::vector<size_t>> candidates;  // [position][j]
    Rows old_logprobs, coefficients;              // likewise
  };

  static Rows response_logprobs(const NaiveModel& model, const Rollout& rollout) {
    std::vector<Token> tokens = rollout.prompt_ids;
    tokens.insert(tokens.end(), rollout.response_ids.begin(), rollout.response_ids.end());
    const Rows logits = model.logits(tokens);
    Rows result;
    for (size_t t = 0; t < rollout.response_ids.size(); ++t)
      result.push_back(NaiveModel::log_softmax(logits[rollout.prompt_ids.size() - 1 + t]));
    return result;
  }

  Fixed score(const Rollout& rollout) const {
    const Rows student = response_logprobs(student_, rollout), teacher = response_logprobs(teacher_, rollout);
    Fixed fixed;
    for (size_t t = 0; t < student.size(); ++t) {
      std::vector<size_t> order(student[t].size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return student[t][a] > student[t][b]; });
      order.resize(settings_.top_k);
      double mass = 0;
      for (const size_t j : order) mass += std::exp(student[t][j]);
      Row old, coefficients;
      for (const size_t j : order) {
        old.push_back(student[t][j]);
        coefficients.push_back(std::exp(student[t][j]) / mass * (teacher[t][j] - student[t][j]));
      }
      fixed.candidates.push_back(order);
      fixed.old_logprobs.push_back(old);
      fixed.coefficients.push_back(coefficients);
    }
    return fixed;
  }

  double phi(double a, double r) const {
    const double clipped = std::min(std::max(r, 1 - settings_.clip), 1 + settings_.clip);
    const double larger = std::max(-a * r, -a * clipped);
    return a >= 0 ? larger : std::min(-settings_.dual_clip * a, larger);
  }

  // Sum over the positions of one response; counts when asked.
  double response_loss(const Rollout& rollout, const Fixed& fixed, ReferenceStep* counts = nullptr,
                       double* terms = nullptr) const {
    const Rows now = response_logprobs(student_, rollout);
    double loss = 0;
    for (size_t t = 0; t < now.size(); ++t)
      for (size_t j = 0; j < fixed.candidates[t].size(); ++j) {
        const double a = fixed.coefficients[t][j];
        const double z = now[t][fixed.candidates[t][j]] - fixed.old_logprobs[t][j];
        const double r = std::exp(std::min(std::max(z, -20.0), 20.0));
        loss += phi(a, r);
        if (!counts) continue;
        counts->clip_fraction += a > 0 ? r > 1 + settings_.clip : r < 1 - settings_.clip;
        counts->dual_clip_fraction += a < 0 && r > settings_.dual_clip;
        *terms += 1;
      }
    return loss;
  }

  // The weight that the reduction gives every token of each response. Response i is in the last of the S
  // shards whose begin, floor(s n / S), is not behind i; a microbatch never goes on in the next shard.
  std::vector<double> token_weights(std::span<const Rollout> minibatch, uint32_t& microbatches) const {
    const size_t n = minibatch.size(), S = settings_.shards;
    std::vector<double> weights(n);
    const double nominal = static_cast<double>(settings_.minibatch);
    size_t all_tokens = 0;
    for (const Rollout& rollout : minibatch) all_tokens += rollout.response_ids.size();
    const auto shard_of = [&](size_t i) {
      size_t s = S - 1;
      while (s * n / S > i) --s;
      return s;
    };
    for (size_t begin = 0, end; begin < n; begin = end, ++microbatches) {
      size_t packed = 0, tokens = 0;
      for (end = begin; end < n; ++end) {
        const size_t length = minibatch[end].prompt_ids.size() + minibatch[end].response_ids.size();
        if (end > begin &&
            (packed + length > settings_.microbatch_tokens || shard_of(end) != shard_of(begin)))
          break;
        packed += length;
        tokens += minibatch[end].response_ids.size();
      }
      for (size_t i = begin; i < end; ++i)
        weights[i] = settings_.is_token_mean_of_minibatch
                         ? static_cast<double>(n) / nominal / static_cast<double>(all_tokens)
                         : static_cast<double>(end - begin) / nominal / static_cast<double>(tokens);
    }
    return weights;
  }

  ReferenceStep update(std::span<const Rollout> minibatch, std::span<const Fixed> fixed) {
    ReferenceStep step;
    const auto weights = token_weights(minibatch, step.microbatches);
    double terms = 0;
    for (size_t i = 0; i < minibatch.size(); ++i)
      step.loss += weights[i] * response_loss(minibatch[i], fixed[i], &step, &terms);
    step.clip_fraction /= terms;
    step.dual_clip_fraction /= terms;

    const auto loss = [&] {
      double sum = 0;
      for (size_t i = 0; i < minibatch.size(); ++i) sum += weights[i] * response_loss(minibatch[i], fixed[i]);
      return sum;
    };
    std::vector<double> gradient;
    for (double* element : elements_) {
      constexpr double kStep = 1e-5;
      const double kept = *element;
      *element = kept + kStep;
      const double above = loss();
      *element = kept - kStep;
      gradient.push_back((above - loss()) / (2 * kStep));
      *element = kept;
    }
    double squares = 0;
    for (const double g : gradient) squares += g * g;
    step.grad_norm = std::sqrt(squares);
    const double scale = step.grad_norm > settings_.grad_clip ? settings_.grad_clip / step.grad_norm : 1.0;
    ++updates_;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double g = scale * gradient[i];
      m_[i] = settings_.beta1 * m_[i] + (1 - settings_.beta1) * g;
      v_[i] = settings_.beta2 * v_[i] + (1 - settings_.beta2) * g * g;
      const double m = m_[i] / (1 - std::pow(settings_.beta1, updates_));
      const double v = v_[i] / (1 - std::pow(settings_.beta2, updates_));
      *elements_[i] -= settings_.learning_rate *
                       (settings_.weight_decay * *elements_[i] + m / (std::sqrt(v) + settings_.epsilon));
    }
    return step;
  }

  NaiveModel student_, teacher_;
  const ReferenceSettings settings_;
  std::vector<double*> elements_;  // into student_
  std::vector<double> m_, v_;
  int updates_ = 0;
};

}  // namespace ropd::test
