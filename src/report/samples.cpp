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

SampleResponse to_sample(const Json& line) {
  SampleResponse sample{.query_id = text_at(line, "query_id"),
                        .problem = text_at(line, "problem"),
                        .answer = text_at(line, "answer"),
                        .text = text_at(line, "text"),
                        .is_correct = {}};
  if (const auto ids = line.find("response_ids"); ids != line.end() && ids->is_array())
    sample.num_tokens = static_cast<int64_t>(ids->size());
  sample.is_cut = text_at(line, "finish") == "length";
  if (const auto correct = line.find("correct"); correct != line.end() && correct->is_boolean())
    sample.is_correct = correct->get<bool>();
  return sample;
}

}  // namespace

std::vector<std::string> choose_queries(const Path& responses, size_t count) {
  std::vector<std::string> ids;
  io::JsonlReader reader(responses);
  for (size_t i = 0; i < count; ++i) {
    // The middle of the i-th of `count` equal parts of the file.
    const double target =
        (static_cast<double>(i) + 0.5) / static_cast<double>(count) * static_cast<double>(reader.size());
    std::optional<io::JsonlLine> line;
    do line = reader.next();
    while (line && static_cast<double>(reader.position()) < target);
    if (!line) break;
    const Json json = parse_json(line->text, reader.where(line->number));
    const std::string id = json.is_object() ? text_at(json, "query_id") : "";
    if (!id.empty() && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

std::vector<SampleResponse> find_responses(const Path& responses, const std::vector<std::string>& query_ids) {
  std::vector<std::optional<SampleResponse>> found(query_ids.size());
  size_t num_missing = query_ids.size();
  io::JsonlReader reader(responses);
  while (num_missing > 0) {
    const auto line = reader.next();
    if (!line) break;
    for (size_t i = 0; i < query_ids.size(); ++i) {
      // Cheap test first; the id may also stand elsewhere in the line, so the parsed field decides.
      if (found[i] || line->text.find(Json(query_ids[i]).dump()) == std::string_view::npos) continue;
      const Json json = parse_json(line->text, reader.where(line->number));
      if (!json.is_object() || text_at(json, "query_id") != query_ids[i]) continue;
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
  const auto ids = choose_queries(before, count);
  for (SampleResponse& response : find_responses(before, ids))
    for (SampleResponse& other : find_responses(after, {response.query_id}))
      samples.pairs.push_back({response, other});
  return samples;
}

}  // namespace ropd::report
