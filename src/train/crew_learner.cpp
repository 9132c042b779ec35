#include "train/crew_learner.h"

#include "base/error.h"
#include "distill/peer_bytes.h"

namespace ropd::train {
namespace {

enum class Duty : uint8_t { gradient, observe, compare, update, save, restore };

void put(ByteWriter& writer, const LearnerState& state) {
  writer.put(state.updates).put(state.statistics.has_value());
  if (!state.statistics) return;
  writer.put(state.statistics->minibatches)
      .put(state.statistics->squared_deviations)
      .put(state.statistics->previous_within);
}

LearnerState get_state(ByteReader& reader) {
  LearnerState state{.updates = reader.get<uint64_t>()};
  if (!reader.get<bool>()) return state;
  curriculum::StatisticsState& statistics = state.statistics.emplace();
  reader.get(statistics.minibatches);
  reader.get(statistics.squared_deviations);
  reader.get(statistics.previous_within);
  return state;
}

}  // namespace

CrewLearner::CrewLearner(Learner& own, distill::Scorer& scorer, comm::Crew& crew)
    : own_(own),
      scorer_(scorer),
      crew_(crew),
      duty_(crew.enlist([this](ByteReader& call) { serve(call); })) {}

std::string CrewLearner::activity(const char* what) const {
  return "step " + std::to_string(updates_ + 1) + ", " + what;
}

void CrewLearner::serve(ByteReader& call) {
  switch (call.get<Duty>()) {
    case Duty::gradient: {
      distill::GradientConfig config;
      distill::get(call, config);
      const auto received = distill::get_shards(call);
      (void)own_.gradient(received.shards, config, scorer_);
      return;
    }
    case Duty::observe:
      return own_.observe(call.get<double>());
    case Duty::compare:
      return (void)own_.compare();
    case Duty::update: {
      const auto learning_rate = call.get<double>(), gradient_scale = call.get<double>();
      return own_.update(learning_rate, gradient_scale);
    }
    case Duty::save:
      return (void)own_.save({}, {});
    case Duty::restore:
      return own_.restore({}, get_state(call));
  }
}

MinibatchGradient CrewLearner::gradient(std::span<const distill::Shard> minibatch,
                                        const distill::GradientConfig& config, distill::Scorer& scorer) {
  const auto message = [&](int rank) {
    ByteWriter writer;
    writer.put(Duty::gradient);
    distill::put(writer, config);
    distill::put_shards(writer, minibatch, static_cast<size_t>(rank),
                        static_cast<size_t>(crew_.world().size()));
    return writer.take();
  };
  const auto call = crew_.call_each(duty_, activity("gradient"), message);
  return own_.gradient(minibatch, config, scorer);
}

MinibatchGradient CrewLearner::gradient(std::span<const distill::SupervisedMicrobatch> minibatch) {
  if (!crew_.is_alone()) fail("supervised fine-tuning runs in one process");
  return own_.gradient(minibatch);
}

void CrewLearner::observe(double scale) {
  const auto call =
      crew_.call(duty_, activity("gradient statistics"), ByteWriter().put(Duty::observe).put(scale).bytes());
  own_.observe(scale);
}

curriculum::Comparison CrewLearner::compare() {
  const auto call =
      crew_.call(duty_, activity("gradient comparison"), ByteWriter().put(Duty::compare).bytes());
  return own_.compare();
}

void CrewLearner::update(double learning_rate, double gradient_scale) {
  const auto call = crew_.call(duty_, activity("update"),
                               ByteWriter().put(Duty::update).put(learning_rate).put(gradient_scale).bytes());
  own_.update(learning_rate, gradient_scale);
  ++updates_;
}

LearnerState CrewLearner::save(const Path& folder, const std::string& description) const {
  const auto call = crew_.call(duty_, activity("checkpoint"), ByteWriter().put(Duty::save).bytes());
  return own_.save(folder, description);
}

void CrewLearner::restore(const Path& folder, const LearnerState& state) {
  ByteWriter writer;
  writer.put(Duty::restore);
  put(writer, state);
  const auto call = crew_.call(duty_, activity("reading the checkpoint"), writer.bytes());
  own_.restore(folder, state);
  updates_ = state.updates;
}

}  // namespace ropd::train
