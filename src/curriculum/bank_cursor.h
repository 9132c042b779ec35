// Walks a bank of stored rollouts in order and starts over at its end: five batches of 480 in a bank of
// 2,400. The position is part of a checkpoint.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ropd::curriculum {

class BankCursor {
 public:
  // name (the file) begins every error. Fails for an empty bank and for a position outside it.
  BankCursor(std::string name, size_t num_rollouts, size_t position = 0);

  // Rows of the next `count` rollouts; a batch that reaches the end goes on at row 0. Fails when the bank is
  // smaller than the batch: the same response would count twice in one iteration.
  [[nodiscard]] std::vector<size_t> take(size_t count);

  size_t position() const { return position_; }  // next row
  uint64_t times_started_over() const { return times_started_over_; }

 private:
  std::string name_;
  size_t num_rollouts_;
  size_t position_;
  uint64_t times_started_over_ = 0;
};

}  // namespace ropd::curriculum
