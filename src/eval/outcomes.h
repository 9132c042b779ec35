// From saved responses to graded outcomes at every budget (method.md section 9).
// The saved text is tokenized again with the student's tokenizer; at a budget of n its first n tokens are
// kept, decoded and graded. Each response is encoded once; a budget that does not cut the text takes the
// verdict of the whole text, and equal extracted answers to one question are compared with the right answer
// once. Questions are scored in parallel; the result does not depend on the number of threads.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "eval/responses.h"
#include "eval/suite.h"
#include "grading/grader.h"
#include "stats/answer_metrics.h"
#include "text/tokenizer.h"

namespace ropd::eval {

struct GradingConfig {
  std::vector<uint32_t> budgets;  // tokens, ascending, at least one
  grading::Mode grader = grading::Mode::reference;
  bool allows_missing = false;  // score what is there; questions without any response are left out
};

// One benchmark, scored.
struct GradedBenchmark {
  std::string name;
  std::string questions_sha256;
  uint32_t samples = 0;
  std::vector<std::string> question_ids;                       // [questions]
  std::vector<std::vector<stats::QuestionOutcomes>> outcomes;  // [budgets][questions]
};

struct Evaluation {
  std::string suite;
  std::string suite_fingerprint;
  std::vector<uint32_t> budgets;
  std::vector<GradedBenchmark> benchmarks;
  uint64_t num_responses = 0;
  uint64_t num_missing = 0;
};

// Fails when responses are missing (unless allowed), naming the first.
Evaluation grade_responses(const Suite& suite, const ResponseFile& responses,
                           const text::Tokenizer& tokenizer, const GradingConfig& config);

// The outcomes of one question's responses: [budgets][responses].
std::vector<stats::QuestionOutcomes> grade_question(const std::vector<std::string>& responses,
                                                    const std::string& answer,
                                                    const text::Tokenizer& tokenizer,
                                                    const GradingConfig& config);

// "4096,8192" or "4K,8K" (1K = 1,024 tokens), sorted; fails for anything else.
std::vector<uint32_t> parse_budgets(const std::string& text);

}  // namespace ropd::eval
