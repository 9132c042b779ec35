#include "grading/grader.h"

#include "grading/candidates.h"
#include "grading/mathd_normal_form.h"
#include "grading/prm_normal_form.h"
#include "grading/repetition.h"
#include "grading/strict.h"
#include "grading/text_scan.h"
#include "grading/verify.h"

namespace ropd::grading {
namespace {

// Longer answers are equal only literally; no real one comes near, and everything below has bounded cost.
constexpr size_t kMaxAnswerBytes = 8192;
constexpr size_t kRepetitionCharacters = 128;

bool equal_by_parsing(std::string_view given, std::string_view expected) {
  for (const std::string_view text : {given, expected})
    if (count_characters(text) > kRepetitionCharacters && is_repetitive(text)) return false;
  const auto gold = parse_answer(expected);
  if (!gold) return false;
  const auto pred = parse_answer(given);
  return pred && verify(pred, gold, VerifyRules::reference);
}

}  // namespace

bool equivalent(std::string_view given, std::string_view expected, Mode mode) {
  if (given.size() > kMaxAnswerBytes || expected.size() > kMaxAnswerBytes)
    return strip(given) == strip(expected);
  if (mode == Mode::strict) return equivalent_strictly(given, expected);
  return mathd_normal_form(given) == mathd_normal_form(expected) || equal_by_prm(given, expected) ||
         equal_by_parsing(given, expected);
}

Verdict grade(std::string_view response, std::string_view answer, Mode mode) {
  Verdict verdict;
  auto given = extract_boxed(response);
  if (!given) return verdict;
  verdict.answer_found = true;
  verdict.extracted = std::move(*given);
  if (answer.find("\\boxed") == std::string_view::npos) {
    verdict.correct = equivalent(verdict.extracted, answer, mode);
  } else if (const auto expected = extract_boxed(answer)) {
    verdict.correct = equivalent(verdict.extracted, *expected, mode);
  }
  return verdict;
}

}  // namespace ropd::grading
