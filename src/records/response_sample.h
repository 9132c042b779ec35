// A response as people read it: its tokens as text with what student and teacher thought of each. Made from a
// rollout and its scores for a few responses of an iteration, evaluation or diagnosis; the live page and the report show it without a
// model.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/rollout.h"

namespace ropd {

// A choice at one position. A log-probability that does not exist (no teacher, no id of the teacher's) is
// absent.
struct SampleChoice {
  std::string text;
  Token id = 0;
  std::optional<double> student_logprob;
  std::optional<double> teacher_logprob;
};

struct SampleToken {
  SampleChoice chosen;
  std::vector<SampleChoice> candidates;  // the student's most likely ones, best first; empty beyond a limit
};

struct ResponseSample {
  uint64_t iteration = 0;      // 0 = not of a training iteration
  std::string benchmark = {};  // of an evaluation
  std::string source = {};     // of a diagnosis: whose response it is
  std::string student = {};    // of a diagnosis: who is asked about its tokens
  std::string query_id;
  uint32_t sample = 0;
  std::string question;
  std::string answer;           // the expected one; empty when unknown
  std::optional<bool> correct;  // nothing when there is no answer to compare with
  Finish finish = Finish::length;
  uint64_t num_tokens = 0;  // of the whole response; `tokens` may hold its beginning only
  std::vector<SampleToken> tokens;
};

}  // namespace ropd
