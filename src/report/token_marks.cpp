#include "report/token_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/visible_text.h"
#include "report/html.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxCandidates = 5, kMaxCandidateCharacters = 14;

// Padded by characters, not bytes.
std::string padded(const std::string& text, size_t width) {
  const auto count = static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  return text + std::string(width > count ? width - count : 0, ' ');
}

std::string right_aligned(const std::string& text, size_t width) {
  const size_t own = padded(text, width).size() - text.size();
  return std::string(own, ' ') + text;
}

// On one line.
std::string candidate_text(const std::string& text) {
  std::string shown = token_text(text, kMaxCandidateCharacters - 1);  // and an ellipsis
  std::erase(shown, '\n');
  return shown;
}

}  // namespace

std::optional<double> log_ratio(const SampleChoice& choice) {
  if (!choice.student_logprob || !choice.teacher_logprob) return std::nullopt;
  return *choice.teacher_logprob - *choice.student_logprob;
}

std::string mark_of(const SampleChoice& choice) {
  const auto ratio = log_ratio(choice);
  if (!ratio) return "none";
  const auto level =
      std::ranges::count_if(kMarkSteps, [&](double step) { return std::fabs(*ratio) >= step; });
  if (level == 0) return "";
  return (*ratio < 0 ? "less" : "more") + std::to_string(level);
}

std::string probability_text(const std::optional<double>& logprob) {
  if (!logprob) return "–";
  const double percent = 100 * std::exp(*logprob);
  if (percent < 0.1) return "< 0.1 %";
  return fmt::format("{:.{}f} %", percent, percent >= 10 ? 0 : 1);
}

std::string token_text(const std::string& text, size_t max_characters) {
  if (text.empty()) return "·";
  std::string shown;
  for (const char c : visible_text(text, max_characters))
    shown += c == '\n' ? std::string("↵\n") : std::string(1, c);
  return shown;
}

std::string token_details(const SampleToken& token) {
  const auto ratio = log_ratio(token.chosen);
  std::string text = "student " + probability_text(token.chosen.student_logprob) + ", teacher " +
                     probability_text(token.chosen.teacher_logprob);
  if (ratio) text += ", log-ratio " + std::string(*ratio >= 0 ? "+" : "") + format_number(*ratio, 2);
  if (token.candidates.empty()) return text;
  text += "\n" + padded("candidate", kMaxCandidateCharacters) + right_aligned("student", 9) +
          right_aligned("teacher", 9);
  for (size_t i = 0; i < std::min(token.candidates.size(), kMaxCandidates); ++i) {
    const SampleChoice& candidate = token.candidates[i];
    text += "\n" + padded(candidate_text(candidate.text), kMaxCandidateCharacters) +
            right_aligned(probability_text(candidate.student_logprob), 9) +
            right_aligned(probability_text(candidate.teacher_logprob), 9) +
            (candidate.id == token.chosen.id ? "  ◂" : "");
  }
  return text;
}

}  // namespace ropd::report
