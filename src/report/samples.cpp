#include "report/samples.h"

#include <algorithm>

#include "base/json.h"
#include "io/jsonl.h"

namespace ropd::report {
namespace {

constexpr size_t kMaxSources = 12;

std::string text_at(const Json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end()) return "";
  return found->is_string() ? found->get<std::string>()
                            : found->dump(-1, ' ', false, Json::error_handler_t::replace);
}

QueryKey key_of(const Json& line) { return {text_at(line, "benchmark"), text_at(line, "query_id")}; }

SampleResponse to_sample(const Json& line) {
  SampleResponse sample{
      .query = key_of(line), .answer = text_at(line, "answer"), .text = text_at(line, "text"), .boxed = {}};
  if (const auto ids = line.find("response_ids"); ids != line.end() && ids->is_array())
    sample.num_tokens = static_cast<int64_t>(ids->size());
  sample.is_cut = text_at(line, "finish") == "length";
  sample.boxed = last_boxed(sample.text);
  return sample;
}

}  // namespace

std::optional<std::string> last_boxed(std::string_view text) {
  constexpr std::string_view kBegin = "\\boxed{";
  for (size_t begin = text.rfind(kBegin); begin != std::string_view::npos;
       begin = begin == 0 ? std::string_view::npos : text.rfind(kBegin, begin - 1)) {
    const size_t content = begin + kBegin.size();
    int depth = 1;
    for (size_t i = content; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return std::string(text.substr(content, i - content));
    }
  }
  return std::nullopt;
}

std::vector<QueryKey> choose_queries(const Path& responses, size_t count) {
  std::vector<QueryKey> queries;
  io::JsonlReader reader(responses);
  for (size_t i = 0; i < count; ++i) {
    // The middle of the i-th of `count` equal parts of the file.
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    std::optional<io::JsonlLine> line;
    do line = reader.next();
    while (line && static_cast<double>(reader.position()) < share * static_cast<double>(reader.size()));
    if (!line) break;
    const Json json = parse_json(line->text, reader.where(line->number));
    if (!json.is_object()) continue;
    QueryKey query = key_of(json);
    if (!query.query_id.empty() && std::find(queries.begin(), queries.end(), query) == queries.end())
      queries.push_back(std::move(query));
  }
  return queries;
}

std::vector<SampleResponse> find_responses(const Path& responses, const std::vector<QueryKey>& queries) {
  std::vector<std::optional<SampleResponse>> found(queries.size());
  size_t num_missing = queries.size();
  io::JsonlReader reader(responses);
  while (num_missing > 0) {
    const auto line = reader.next();
    if (!line) break;
    for (size_t i = 0; i < queries.size(); ++i) {
      // A cheap test first; the id may also stand elsewhere in the line, so the parsed fields decide.
      if (found[i] || line->text.find(Json(queries[i].query_id).dump()) == std::string_view::npos) continue;
      const Json json = parse_json(line->text, reader.where(line->number));
      if (!json.is_object() || key_of(json) != queries[i]) continue;
      found[i] = to_sample(json);
      --num_missing;
    }
  }
  std::vector<SampleResponse> samples;
  for (auto& sample : found)
    if (sample) samples.push_back(std::move(*sample));
  return samples;
}

std::vector<SampleQuestion> compare_samples(const Comparison& comparison, size_t count) {
  struct Source {
    std::string label;
    Path file;
  };
  std::vector<Source> sources;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      Path newest;
      for (const EvaluationData& evaluation : run->evaluations)
        if (!evaluation.responses.empty()) newest = evaluation.responses;
      if (newest.empty() || sources.size() >= kMaxSources) continue;
      sources.push_back({method.label, newest});
      break;  // one run speaks for its method
    }
  if (sources.empty())
    for (const Method& method : comparison.methods)
      for (const RunData* run : method.runs)
        if (!run->first_rollouts.empty() && !run->last_rollouts.empty())
          sources = {{method.label + ", first rollouts", run->first_rollouts},
                     {method.label + ", last rollouts", run->last_rollouts}};
  std::vector<SampleQuestion> questions;
  if (sources.empty()) return questions;
  const auto queries = choose_queries(sources.front().file, count);
  for (const QueryKey& query : queries) questions.push_back({.query = query, .answer = "", .responses = {}});
  for (const Source& source : sources)
    for (SampleResponse& response : find_responses(source.file, queries)) {
      const auto at = std::find(queries.begin(), queries.end(), response.query) - queries.begin();
      SampleQuestion& question = questions[static_cast<size_t>(at)];
      if (question.answer.empty()) question.answer = response.answer;
      question.responses.push_back({source.label, std::move(response)});
    }
  const size_t least = std::min<size_t>(2, sources.size());
  std::erase_if(questions, [&](const SampleQuestion& question) { return question.responses.size() < least; });
  return questions;
}

}  // namespace ropd::report
