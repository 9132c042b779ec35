#include "curriculum/bank_cursor.h"

#include "base/error.h"

namespace ropd::curriculum {

BankCursor::BankCursor(std::string name, size_t num_rollouts, size_t position)
    : name_(std::move(name)), num_rollouts_(num_rollouts), position_(position) {
  if (num_rollouts == 0) fail(name_, ": the bank is empty, expected at least one rollout");
  if (position >= num_rollouts)
    fail(name_, ": saved position ", position, " is outside the bank of ", num_rollouts,
         " rollouts (was the file changed since the run began?)");
}

std::vector<size_t> BankCursor::take(size_t count) {
  if (count > num_rollouts_)
    fail(name_, ": holds ", num_rollouts_, " rollouts, an iteration takes ", count,
         "; sample a larger bank or lower train.responses_per_iteration");
  std::vector<size_t> rows(count);
  for (size_t& row : rows) {
    row = position_++;
    if (position_ == num_rollouts_) {
      position_ = 0;
      ++times_started_over_;
    }
  }
  return rows;
}

}  // namespace ropd::curriculum
