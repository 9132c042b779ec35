// How far student and teacher disagree about a token: log-ratio = log p(teacher) - log p(student), in three steps each
// way. Marks differ in colour and in underline (less: solid, more: dotted; wider for more), so that they can be told
// apart without colours. One place for the report and the live page.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "records/response_sample.h"

namespace ropd::report {

inline constexpr std::array<double, 3> kMarkSteps = {0.25, 1.0, 2.5};  // of |log-ratio|, nats

// Nothing where one of them has no log-probability.
std::optional<double> log_ratio(const SampleChoice& choice);

// The CSS class: less1 to less3 (the teacher finds it less likely), more1 to more3, "" for agreement, "none" where one
// side is absent.
std::string mark_of(const SampleChoice& choice);

// "78 %", "0.4 %", "< 0.1 %"; a dash where there is none.
std::string probability_text(const std::optional<double>& logprob);

// A token as it is shown: line ends visible, an empty one (the beginning of a character) as a dot.
std::string token_text(const std::string& text, size_t max_characters);

// What a hand or a finger on the token shows, plain text of several lines: both probabilities, the log-ratio, and the
// student's candidates with both probabilities.
std::string token_details(const SampleToken& token);

}  // namespace ropd::report
