// The training iteration that `ropd bench` measures: a whole run of the trainer with all it writes, on small
// models of random weights: 480 responses of 200 tokens to 48 prompts, a student of 0.5M and a teacher of 2M
// parameters, four minibatches.
#pragma once
#include "base/file.h"
#include "records/model_config.h"

namespace ropd::app {

class BenchIteration {
 public:
  // Makes models and queries in a folder of the system's temporary one; it goes with the object.
  BenchIteration();
  BenchIteration(const BenchIteration&) = delete;
  BenchIteration& operator=(const BenchIteration&) = delete;
  ~BenchIteration();

  // A new run of one iteration, from its first file to its last.
  void run() const;
  const ModelConfig& student() const { return student_; }
  const ModelConfig& teacher() const { return teacher_; }
  double num_tokens() const { return kResponses * kResponseTokens; }  // of the responses
  double sequence_tokens() const { return kPromptTokens + kResponseTokens; }

 private:
  static constexpr int kQueries = 48, kResponses = 480, kPromptTokens = 25, kResponseTokens = 200;
  const ModelConfig student_, teacher_;
  const Path folder_;
};

}  // namespace ropd::app
