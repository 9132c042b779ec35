#include "watch/responses.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/visible_text.h"
#include "io/sample_file.h"
#include "report/token_marks.h"

namespace ropd::watch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxResponses = 24, kMaxFiles = 64, kMaxProblems = 4;
constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20, kMaxReadBytes = uint64_t{128} << 20;
constexpr size_t kMaxTokenText = 200, kMaxQuestion = 4000, kMaxAnswer = 400, kMaxTokens = 1024;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view wanted) {
  return !std::ranges::search(text, wanted, {}, lower, lower).empty() || wanted.empty();
}

std::string response_text(const ResponseSample& sample) {
  std::string text;
  for (const SampleToken& token : sample.tokens) text += token.chosen.text;
  return text;
}

Json choice_json(const SampleChoice& choice) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  return {visible_text(choice.text, kMaxTokenText), number(choice.student_logprob),
          number(choice.teacher_logprob)};
}

Json response_json(const ResponseSample& sample) {
  Json json = {{"iteration", sample.iteration},
               {"query", visible_text(sample.query_id, kMaxAnswer)},
               {"sample", sample.sample},
               {"question", visible_text(sample.question, kMaxQuestion)},
               {"answer", visible_text(sample.answer, kMaxAnswer)},
               {"correct", nullptr},
               {"finish", sample.finish == Finish::eos ? "eos" : "length"},
               {"length", sample.num_tokens},
               {"tokens", Json::array()}};
  if (sample.correct) json["correct"] = *sample.correct;
  for (size_t t = 0; t < std::min(sample.tokens.size(), kMaxTokens); ++t) {
    Json token = choice_json(sample.tokens[t].chosen);
    Json candidates = Json::array();
    for (const SampleChoice& candidate : sample.tokens[t].candidates)
      candidates.push_back(choice_json(candidate));
    token.push_back(std::move(candidates));
    token.push_back(report::mark_of(sample.tokens[t].chosen));
    json["tokens"].push_back(std::move(token));
  }
  return json;
}

// Newest first: their names hold the iteration.
std::vector<Path> sample_files(const Path& run) {
  std::vector<Path> files;
  std::error_code ignored;
  for (fs::directory_iterator entry(run / "samples", ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (entry->path().extension() == ".jsonl") files.push_back(entry->path());
  std::ranges::sort(files, std::greater<>());
  if (files.size() > kMaxFiles) files.resize(kMaxFiles);
  return files;
}

}  // namespace

bool passes(const ResponseSample& sample, const ResponseFilter& filter) {
  if (filter.correct && sample.correct != filter.correct) return false;
  if (filter.finish && sample.finish != *filter.finish) return false;
  if (filter.iteration && sample.iteration != *filter.iteration) return false;
  if (sample.num_tokens < filter.min_tokens || sample.num_tokens > filter.max_tokens) return false;
  return filter.text.empty() || contains(sample.query_id, filter.text) ||
         contains(sample.question, filter.text) || contains(sample.answer, filter.text) ||
         contains(response_text(sample), filter.text);
}

Json find_responses(const Path& run, const ResponseFilter& filter) {
  Json found = {{"responses", Json::array()},
                {"num_read", 0},
                {"problems", Json::array()},
                {"steps", report::kMarkSteps}};
  uint64_t num_read = 0, num_bytes = 0;
  for (const Path& file : sample_files(run)) {
    std::error_code ignored;
    const uint64_t size = fs::file_size(file, ignored);
    try {
      if (ignored || size > kMaxFileBytes) fail(file.string(), ": too large to show");
      num_bytes += size;
      if (num_bytes > kMaxReadBytes) break;
      for (const ResponseSample& sample : io::read_samples(file)) {
        ++num_read;
        if (!passes(sample, filter)) continue;
        if (found["responses"].size() == kMaxResponses) break;
        found["responses"].push_back(response_json(sample));
      }
    } catch (const Error& error) {  // of one file; the others can be shown
      if (found["problems"].size() < kMaxProblems)
        found["problems"].push_back(visible_text(error.what(), kMaxAnswer));
    }
    if (found["responses"].size() == kMaxResponses) break;
  }
  found["num_read"] = num_read;
  return found;
}

}  // namespace ropd::watch
