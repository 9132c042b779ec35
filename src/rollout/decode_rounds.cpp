#include "rollout/decode_rounds.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/one_thread.h"
#include "base/parallel.h"

namespace ropd::rollout {

DecodeRounds::DecodeRounds(const model::Execution& execution, LostShare lost_share)
    : execution_(execution), lost_share_(std::move(lost_share)) {}

DecodeRounds::Round DecodeRounds::next(size_t num_sequences) {
  const size_t threads = num_workers();
  if (execution_.sharing == model::Sharing::sequences) {
    constexpr size_t kWorthAThread = 4;  // sequences
    const size_t workers = std::clamp<size_t>(num_sequences / kWorthAThread, 1, threads);
    return {workers, workers > 1, std::numeric_limits<int64_t>::max()};
  }
  if (threads == 1) return {1, false, std::numeric_limits<int64_t>::max()};

  // A round of threads with steps of their own ends when the slowest is done, so it is longer.
  constexpr int64_t kStepsTogether = 4, kStepsApart = 32;
  constexpr double kCrowd = 0.1;
  const bool is_crowded =
      !is_first_ && (lost_share_ ? lost_share_() : watch_.take_lost_share(threads)) > kCrowd;
  is_first_ = false;
  // About so many sequences are worth reading the weights for; few threads may be left without any.
  constexpr size_t kWorthTheWeights = 8;
  const size_t workers = std::min((num_sequences + kWorthTheWeights / 2) / kWorthTheWeights, threads),
               most_idle = std::max<size_t>(1, threads / 4);
  if (!is_crowded || threads - workers > most_idle) return {1, false, kStepsTogether};
  return {workers, true, static_cast<int64_t>(workers) * kStepsApart};
}

void DecodeRounds::Round::run(const std::function<void(size_t worker)>& work) const {
  std::optional<OneThread> alone;
  if (is_apart && num_workers == 1) alone.emplace();
  parallel_tasks(num_workers, [&](size_t worker, size_t) { work(worker); });
}

}  // namespace ropd::rollout
