// The laboratory's world, the "digit machine": apply n unary operations to a digit mod 10.
//   a: x+1   b: x+3   c: x-2   d: 3x   e: 7x   f: 9-x       (bijections mod 10; n is a multiple of three)
// A problem is the text `3acbfde?`. A response is one or more passes, separated by `~`, then \boxed{d} and
// the end token. A pass is `=` and the start digit; for each group of three operations either
//   long   `a=4;c=2;b=5;`   one line per operation: easy, 12 tokens, or
//   short  `acb>5`          three operations at once: hard, 5 tokens;
// then `#` and the result. The style is chosen by one token: after a group's first operation, `=` or the next
// operation. The initial student writes one short pass; the teacher writes long passes until two agree.
// Everything here is a pure function of its arguments (Philox counters, Purpose::lab_world); no state, safe
// from any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "records/rollout.h"
#include "records/sft_example.h"

namespace ropd::lab {

inline constexpr int kGroupSize = 3;
inline constexpr int kMaxOperations = 12;
inline constexpr int kNumLevels = 4;  // benchmarks n = 3, 6, 9, 12

// Token ids. One token per character except \boxed{ and the two specials; see lab/model_files.h for the
// tokenizer.
inline constexpr int kVocabSize = 26;
inline constexpr Token kBoxToken = 23;  // \boxed{
inline constexpr Token kEndToken = 24;  // <|end|>, the EOS
inline constexpr Token kPadToken = 25;  // <|pad|>
std::string_view token_text(Token token);

struct Problem {
  int start = 0;           // 0..9
  std::string operations;  // letters a..f
};

int apply_operation(char operation, int digit);
int solve(const Problem& problem);
std::string problem_text(const Problem& problem);

// Reads `3acbfde?`; fails on any other text.
Problem parse_problem(std::string_view text);

// Problem `index` of the world `seed` with this many operations, uniform over all such problems.
Problem make_problem(uint64_t seed, uint64_t index, int num_operations);

// Text of the world <-> ids. encode fails on a character that is no token; special tokens decode to nothing.
std::vector<Token> encode(std::string_view text);
std::string decode(const std::vector<Token>& ids);

// How the teacher writes: probabilities of its choices.
struct TeacherPolicy {
  double long_group = 0.9;        // write a group step by step
  double box_when_agreed = 0.95;  // the last two passes agree
  double box_after_first = 0.3;   // only one pass yet
  double box_when_disagreed = 0.1;
  double end_unverified = 0.9;  // after a box that no second pass confirmed; else `~` and another pass
  int max_passes = 12;          // the last one is boxed in any case
};

// Forced departures from the policy in supervised examples, so that the model also behaves on prefixes it
// would not write itself (DAgger). A departing token carries no loss; everything after it follows from it.
struct Deviations {
  double short_start = 0.35;        // examples whose first pass begins with 1..n/3 short groups,
  double short_start_wrong = 0.25;  //   each with a wrong result this often,
  double short_later = 0.1;         //   and with later groups forced short this often
  double slipping = 0.5;            // examples in which
  double slip = 0.06;               //   every result is wrong this often
  double premature_box = 0.12;      // box after an unverified pass
};

// Example `index` of a stream: a problem of num_operations and the text a policy writes for it.
SftExample teacher_example(uint64_t seed, uint64_t index, int num_operations,
                           const TeacherPolicy& policy = {}, const Deviations& deviations = {});
SftExample short_example(uint64_t seed, uint64_t index, int num_operations);
// The initial student's data: the teacher's text with probability long_share, the short text otherwise.
SftExample initial_student_example(uint64_t seed, uint64_t index, int num_operations,
                                   double long_share = 0.15);

// Number of operations of example `index` when a share `progress` (0..1) of the training is done: uniform
// over the multiples of three up to a limit that grows from 3 to 12 over the first 35 % of the training.
int curriculum_operations(uint64_t seed, uint64_t index, double progress);

// How a response is written, for reports. Robust against any token sequence.
struct ResponseStyle {
  int num_passes = 0;
  double long_share = 0;  // of the groups; 0 when there is none
};
ResponseStyle response_style(const std::vector<Token>& response_ids);

}  // namespace ropd::lab
