#include "report/samples.h"

#include <algorithm>

#include "base/json.h"
#include "io/jsonl.h"

namespace ropd::report {
namespace {

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

SampleComparison compare_samples(const Comparison& comparison, size_t count) {
  const RunData* trained = nullptr;
  const RunData* reference = nullptr;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      if (!method.is_reference && (!run->evaluation_responses.empty() || !run->last_rollouts.empty()))
        trained = run;
      if (method.is_reference && !reference && !run->evaluation_responses.empty()) reference = run;
    }
  SampleComparison samples;
  if (!trained) return samples;
  const bool has_evaluations = reference && !trained->evaluation_responses.empty();
  const Path before = has_evaluations ? reference->evaluation_responses : trained->first_rollouts;
  const Path after = has_evaluations ? trained->evaluation_responses : trained->last_rollouts;
  if (before.empty() || after.empty()) return samples;
  samples.before_name = has_evaluations ? reference->label : trained->label + ", first rollouts";
  samples.after_name = has_evaluations ? trained->label : trained->label + ", last rollouts";
  const auto queries = choose_queries(before, count);
  for (SampleResponse& response : find_responses(before, queries))
    for (SampleResponse& other : find_responses(after, {response.query}))
      samples.pairs.push_back({response, other});
  return samples;
}

}  // namespace ropd::report
