#include "rollout/decode_rounds.h"

#include <algorithm>
#include <limits>

#include "base/parallel.h"

namespace ropd::rollout {

size_t decode_workers(const model::Execution& execution, size_t num_sequences, bool is_crowded) {
  constexpr size_t kWorthAWorker = 4;  // sequences
  const size_t workers = std::clamp<size_t>(num_sequences / kWorthAWorker, 1, num_workers());
  if (execution.sharing == model::Sharing::sequences) return workers;
  // Together all cores have work, if not all of the time; apart most of them must have, too.
  return is_crowded && 4 * workers >= 3 * num_workers() ? workers : 1;
}

DecodeRounds::DecodeRounds(const model::Execution& execution, LostShare lost_share)
    : execution_(execution), lost_share_(std::move(lost_share)) {}

DecodeRounds::Round DecodeRounds::next(size_t num_sequences) {
  if (execution_.sharing == model::Sharing::sequences || num_workers() == 1)
    return {decode_workers(execution_, num_sequences), std::numeric_limits<int64_t>::max()};
  // A round of threads with steps of their own ends when the slowest is done, so it is longer.
  constexpr int64_t kStepsTogether = 8, kStepsApart = 32;
  constexpr double kCrowd = 0.1;
  const bool is_crowded =
      !is_first_ && (lost_share_ ? lost_share_() : watch_.take_lost_share(num_workers())) > kCrowd;
  is_first_ = false;
  const size_t workers = decode_workers(execution_, num_sequences, is_crowded);
  return {workers, static_cast<int64_t>(workers) * (workers > 1 ? kStepsApart : kStepsTogether)};
}

}  // namespace ropd::rollout
