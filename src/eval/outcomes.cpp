#include "eval/outcomes.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/parallel.h"
#include "base/progress.h"

namespace ropd::eval {
namespace {

// Verdicts on the extracted answers to one question, each judged once.
class AnswerBook {
 public:
  AnswerBook(const std::string& answer, grading::Mode mode) : answer_(answer), mode_(mode) {}

  struct Entry {
    bool is_correct = false;
    uint32_t number = 0;  // answers that the grader takes for the same share it
  };

  const Entry& entry(const std::string& extracted) {
    const auto found = entries_.find(extracted);
    if (found != entries_.end()) return found->second;
    Entry entry{.is_correct = grading::grade("\\boxed{" + extracted + "}", answer_, mode_).correct,
                .number = 0};
    while (entry.number < representatives_.size() && !is_same(extracted, entry.is_correct, entry.number))
      ++entry.number;
    if (entry.number == representatives_.size()) representatives_.push_back({extracted, entry.is_correct});
    return entries_.emplace(extracted, entry).first->second;
  }

 private:
  struct Representative {
    std::string text;
    bool is_correct = false;
  };
  const std::string& answer_;
  grading::Mode mode_;
  std::unordered_map<std::string, Entry> entries_;
  std::vector<Representative> representatives_;

  // A right and a wrong answer are never the same, whatever their comparison says.
  bool is_same(const std::string& extracted, bool is_correct, uint32_t number) const {
    const auto& [text, other_is_correct] = representatives_[number];
    return is_correct == other_is_correct && grading::equivalent(extracted, text, mode_);
  }
};

stats::Outcome judge(std::string_view text, AnswerBook& book) {
  stats::Outcome outcome;
  if (const auto extracted = grading::extract_boxed(text)) {
    const auto& entry = book.entry(*extracted);
    outcome.is_extracted = true;
    outcome.is_correct = entry.is_correct;
    outcome.answer = entry.number;
  }
  return outcome;
}

// The texts of the responses that are present, in sample order.
std::vector<std::string> texts_of(const ResponseFile& responses, uint32_t benchmark, uint32_t question,
                                  uint32_t samples) {
  std::vector<std::string> texts;
  for (uint32_t sample = 0; sample < samples; ++sample) {
    const ResponseId id{benchmark, question, sample};
    if (const auto line = responses.line(id)) texts.push_back(response_text(*line, responses.where(id)));
  }
  return texts;
}

void check_complete(const Suite& suite, const ResponseFile& responses, const GradingConfig& config) {
  const uint64_t expected = suite.num_responses();
  if (responses.num_present() == 0) fail("suite '", suite.name, "': no responses to score");
  if (config.allows_missing || responses.num_present() == expected) return;
  const ResponseId first = responses.missing().front();
  const auto& benchmark = suite.benchmarks[first.benchmark];
  fail("suite '", suite.name, "': ", expected - responses.num_present(), " of ", expected,
       " responses are missing, the first is sample ", first.sample, " of ", benchmark.name, " question '",
       benchmark.questions[first.question].id, "' (interrupted evaluation? run it again to go on)");
}

}  // namespace

std::vector<stats::QuestionOutcomes> grade_question(const std::vector<std::string>& responses,
                                                    const std::string& answer,
                                                    const text::Tokenizer& tokenizer,
                                                    const GradingConfig& config) {
  std::vector<stats::QuestionOutcomes> outcomes(config.budgets.size());
  AnswerBook book(answer, config.grader);
  for (const std::string& response : responses) {
    const auto ids = tokenizer.encode_first(response, config.budgets.back());
    // encode_first stops at the largest budget, so only a text below it is known to be whole.
    const bool is_whole = ids.size() < config.budgets.back();
    std::optional<stats::Outcome> whole;
    for (size_t b = 0; b < config.budgets.size(); ++b) {
      const uint32_t budget = config.budgets[b];
      stats::Outcome outcome;
      if (is_whole && ids.size() <= budget) {
        if (!whole) whole = judge(response, book);
        outcome = *whole;
      } else {
        const auto kept = std::span(ids).first(std::min<size_t>(budget, ids.size()));
        outcome = judge(tokenizer.decode(kept), book);
      }
      outcome.num_tokens = uint32_t(std::min<size_t>(budget, ids.size()));
      outcome.is_at_cap = ids.size() >= budget;
      outcomes[b].push_back(outcome);
    }
  }
  return outcomes;
}

Evaluation grade_responses(const Suite& suite, const ResponseFile& responses,
                           const text::Tokenizer& tokenizer, const GradingConfig& config) {
  if (config.budgets.empty() || !std::is_sorted(config.budgets.begin(), config.budgets.end()))
    fail("scoring: budgets must be ascending and at least one");
  check_complete(suite, responses, config);
  Evaluation evaluation{
      .suite = suite.name, .suite_fingerprint = suite.fingerprint, .budgets = config.budgets};
  evaluation.num_responses = responses.num_present();
  evaluation.num_missing = suite.num_responses() - responses.num_present();
  Progress progress("scoring", responses.num_present(), "responses");
  std::mutex reporting;     // of the progress line
  uint64_t num_scored = 0;  // responses
  for (uint32_t b = 0; b < suite.benchmarks.size(); ++b) {
    const Benchmark& benchmark = suite.benchmarks[b];
    const auto num_questions = uint32_t(benchmark.questions.size());
    std::vector<std::vector<stats::QuestionOutcomes>> scored(num_questions);  // [questions][budgets]
    parallel_tasks(num_questions, [&](size_t q, size_t) {
      const auto texts = texts_of(responses, b, static_cast<uint32_t>(q), benchmark.samples);
      scored[q] = grade_question(texts, benchmark.questions[q].answer, tokenizer, config);
      const std::lock_guard lock(reporting);
      num_scored += texts.size();
      progress.update(num_scored, num_scored);
    });
    GradedBenchmark result{
        .name = benchmark.name, .questions_sha256 = benchmark.questions_sha256, .samples = benchmark.samples};
    result.outcomes.resize(config.budgets.size());
    for (uint32_t q = 0; q < num_questions; ++q) {
      if (scored[q].front().empty()) continue;  // only when missing responses are allowed
      result.question_ids.push_back(benchmark.questions[q].id);
      for (size_t i = 0; i < config.budgets.size(); ++i)
        result.outcomes[i].push_back(std::move(scored[q][i]));
    }
    if (!result.question_ids.empty()) evaluation.benchmarks.push_back(std::move(result));
  }
  return evaluation;
}

std::vector<uint32_t> parse_budgets(const std::string& text) {
  std::vector<uint32_t> budgets;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view part = std::string_view(text).substr(begin, end - begin);
    constexpr uint64_t kMost = uint64_t{1} << 24;
    uint64_t unit = 1, value = 0;
    if (part.ends_with('K') || part.ends_with('k')) {
      unit = 1024;
      part.remove_suffix(1);
    }
    const auto [last, status] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (status != std::errc() || last != part.data() + part.size() || value == 0 || value > kMost / unit)
      fail("budgets '", text, "': '", text.substr(begin, end - begin),
           "' is not a number of tokens from 1 to ", kMost, " (4096 or 4K)");
    budgets.push_back(uint32_t(value * unit));
    begin = end + 1;
  }
  std::sort(budgets.begin(), budgets.end());
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

}  // namespace ropd::eval
