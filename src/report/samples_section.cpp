#include "report/samples_section.h"

#include <algorithm>
#include <cmath>

#include "report/html.h"
#include "report/token_marks.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxResponseCharacters = 2400, kMaxQuestionCharacters = 1600, kMaxName = 90, kMaxLabel = 60;
constexpr size_t kMaxTokens = 320, kMaxTokenCharacters = 80;
constexpr size_t kNumStrongest = 6;

bool has_marks(const SampleResponse& response) {
  return std::ranges::any_of(response.tokens,
                             [](const SampleToken& token) { return log_ratio(token.chosen).has_value(); });
}

std::string signed_number(double value) { return (value >= 0 ? "+" : "") + format_number(value, 2); }

std::string mean_log_ratio(const SampleResponse& response) {
  double sum = 0;
  size_t count = 0;
  for (const SampleToken& token : response.tokens)
    if (const auto ratio = log_ratio(token.chosen)) {
      sum += *ratio;
      ++count;
    }
  return count == 0 ? "" : " · mean log-ratio " + signed_number(sum / static_cast<double>(count));
}

std::string tokens_html(const SampleResponse& response) {
  std::string html;
  const size_t count = std::min(response.tokens.size(), kMaxTokens);
  for (size_t t = 0; t < count; ++t) {
    const SampleToken& token = response.tokens[t];
    const std::string mark = mark_of(token.chosen);
    // Within reach of a finger (focus), but no stop for the tabulator: there are hundreds.
    html += "<span class=\"token" + (mark.empty() ? "" : " " + mark) + "\" tabindex=\"-1\" data-about=\"" +
            escape_html(token_details(token)) + "\">" +
            escape_html(token_text(token.chosen.text, kMaxTokenCharacters)) + "</span>";
  }
  const auto rest =
      static_cast<size_t>(response.num_tokens) - std::min(count, static_cast<size_t>(response.num_tokens));
  if (rest > 0) html += "<span class=\"muted\"> … " + std::to_string(rest) + " more tokens</span>";
  return html;
}

// The tokens about which the two disagree most, in the order of the response.
std::string strongest_html(const SampleResponse& response) {
  std::vector<size_t> order;
  for (size_t t = 0; t < response.tokens.size(); ++t)
    if (std::fabs(log_ratio(response.tokens[t].chosen).value_or(0)) >= kMarkSteps[0]) order.push_back(t);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t t) { return std::fabs(*log_ratio(response.tokens[t].chosen)); });
  if (order.size() > kNumStrongest) order.resize(kNumStrongest);
  std::ranges::sort(order);
  if (order.empty()) return "";
  std::string rows;
  for (const size_t t : order) {
    const SampleToken& token = response.tokens[t];
    const auto best = std::ranges::max_element(token.candidates, {}, [](const SampleChoice& choice) {
      return choice.teacher_logprob.value_or(-INFINITY);
    });
    rows +=
        "<tr><td>" + std::to_string(t + 1) + "</td><td class=\"text\"><code>" +
        escape_html(token_text(token.chosen.text, 24)) + "</code></td><td>" +
        escape_html(probability_text(token.chosen.student_logprob)) + "</td><td>" +
        escape_html(probability_text(token.chosen.teacher_logprob)) + "</td><td>" +
        signed_number(*log_ratio(token.chosen)) + "</td><td class=\"text\">" +
        (best == token.candidates.end() ? ""
                                        : "<code>" + escape_html(token_text(best->text, 24)) + "</code>") +
        "</td></tr>\n";
  }
  return "<details class=\"data\"><summary>Strongest disagreements</summary>\n<div class=\"scroll\" "
         "role=\"region\" "
         "aria-label=\"strongest disagreements\" tabindex=\"0\"><table class=\"small\"><thead><tr><th "
         "scope=\"col\">at</th>"
         "<th scope=\"col\" class=\"text\">token</th><th scope=\"col\">student</th><th "
         "scope=\"col\">teacher</th>"
         "<th scope=\"col\">log-ratio</th><th scope=\"col\" class=\"text\">teacher "
         "prefers</th></tr></thead>\n<tbody>\n" +
         rows + "</tbody></table></div></details>\n";
}

std::string response_html(const ShownResponse& shown) {
  const SampleResponse& response = shown.response;
  // Without the grader's verdict equal texts are equal answers; other spellings get none here.
  const bool is_equal = response.boxed && !response.answer.empty() && *response.boxed == response.answer;
  const bool is_right = response.correct.value_or(is_equal);
  std::string facts = std::to_string(response.num_tokens) + (response.num_tokens == 1 ? " token" : " tokens");
  if (response.is_cut) facts += " · cut at the limit";
  facts +=
      response.boxed ? " · boxed " + escape_html(shorten(*response.boxed, kMaxLabel)) : " · nothing boxed";
  facts += is_right ? " · right" : response.correct ? " · wrong" : "";
  facts += mean_log_ratio(response);
  const std::string text = response.tokens.empty()
                               ? escape_html(shorten(response.text, kMaxResponseCharacters))
                               : tokens_html(response);
  const std::string label = escape_html(shorten(shown.label, kMaxLabel));
  return "<div><p class=\"whose\">" + label + "</p><p class=\"meta\">" + facts + "</p><div class=\"response" +
         (is_right           ? " right"
          : response.correct ? " wrong"
                             : "") +
         "\" tabindex=\"0\" role=\"group\" aria-label=\"response of " + label + "\">" + text + "</div>" +
         strongest_html(response) + "</div>\n";
}

}  // namespace

std::string marks_legend(const std::vector<SampleQuestion>& samples) {
  const bool has_any = std::ranges::any_of(samples, [](const SampleQuestion& question) {
    return std::ranges::any_of(question.responses,
                               [](const ShownResponse& shown) { return has_marks(shown.response); });
  });
  if (!has_any) return "";
  const auto scale = [](const std::string& kind, const std::string& sign) {
    std::string html;
    for (size_t i = 0; i < kMarkSteps.size(); ++i)
      html += " <span class=\"token " + kind + std::to_string(i + 1) + "\">" + sign +
              format_brief(kMarkSteps[i]) + "</span>";
    return html;
  };
  return "<p class=\"legend\">A marked token is one that the teacher finds less likely than the student does"
         " (solid line, log-ratio from" +
         scale("less", "−") + ") or more likely (dotted line, from" + scale("more", "+") +
         "). Point at a token, or tap it: its candidates with both probabilities appear at the foot of the "
         "window.</p>\n";
}

std::string samples_html(const std::vector<SampleQuestion>& samples) {
  std::string html;
  for (const SampleQuestion& question : samples) {
    const QueryKey& query = question.query;
    const bool is_named = query.benchmark.empty() || query.query_id.starts_with(query.benchmark);
    html +=
        "<section class=\"sample\">\n<h3>" +
        escape_html(shorten(is_named ? query.query_id : query.benchmark + ": " + query.query_id, kMaxName)) +
        "</h3>\n";
    if (!question.question.empty())
      html += "<p class=\"question\">" + escape_html(shorten(question.question, kMaxQuestionCharacters)) +
              "</p>\n";
    if (!question.answer.empty())
      html += "<p class=\"expected\">expected answer <code>" +
              escape_html(shorten(question.answer, kMaxName)) + "</code></p>\n";
    html += "<div class=\"side-by-side\">\n";
    for (const ShownResponse& response : question.responses) html += response_html(response);
    html += "</div>\n</section>\n";
  }
  return html;
}

}  // namespace ropd::report
