#include "report/samples.h"

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "io/jsonl.h"
#include "io/sample_file.h"

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

SampleResponse to_response(const ResponseSample& sample) {
  SampleResponse response{.query = {sample.benchmark, sample.query_id},
                          .answer = sample.answer,
                          .text = "",
                          .num_tokens = static_cast<int64_t>(sample.num_tokens),
                          .is_cut = sample.finish == Finish::length,
                          .boxed = {},
                          .question = sample.question,
                          .correct = sample.correct,
                          .tokens = sample.tokens};
  for (const SampleToken& token : sample.tokens) response.text += token.chosen.text;
  response.boxed = last_boxed(response.text);
  return response;
}

namespace {

// Where the responses of one column are.
struct Source {
  std::string label;
  Path file;  // all of them; empty when absent
  std::vector<SampleResponse> kept;
};

std::vector<SampleResponse> read_kept(const Path& file) {
  std::vector<SampleResponse> kept;
  if (file.empty() || !std::filesystem::exists(file)) return kept;
  for (const ResponseSample& sample : io::read_samples(file)) kept.push_back(to_response(sample));
  return kept;
}

std::vector<Source> evaluation_sources(const Comparison& comparison) {
  std::vector<Source> sources;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs) {
      const EvaluationData* newest = nullptr;
      for (const EvaluationData& evaluation : run->evaluations)
        if (!evaluation.responses.empty() || !evaluation.samples.empty()) newest = &evaluation;
      if (!newest || sources.size() >= kMaxSources) continue;
      sources.push_back({method.label, newest->responses, read_kept(newest->samples)});
      break;  // one run speaks for its method
    }
  return sources;
}

std::vector<Source> rollout_sources(const Comparison& comparison) {
  std::vector<Source> sources;
  for (const Method& method : comparison.methods)
    for (const RunData* run : method.runs)
      if ((!run->first_rollouts.empty() && !run->last_rollouts.empty()) || !run->last_samples.empty())
        sources = {{method.label + ", first rollouts", run->first_rollouts, read_kept(run->first_samples)},
                   {method.label + ", last rollouts", run->last_rollouts, read_kept(run->last_samples)}};
  return sources;
}

// Queries of responses that were kept for reading go first: those of the source that kept most.
std::vector<QueryKey> shared_queries(const std::vector<Source>& sources, size_t count) {
  const auto best =
      std::ranges::max_element(sources, {}, [](const Source& source) { return source.kept.size(); });
  std::vector<QueryKey> queries;
  if (best->kept.empty()) return choose_queries(sources.front().file, count);
  count = std::min(count, best->kept.size());
  for (size_t i = 0; i < count; ++i) {
    const QueryKey& query = best->kept[i * best->kept.size() / count].query;
    if (std::ranges::find(queries, query) == queries.end()) queries.push_back(query);
  }
  return queries;
}

// The source's response to each query that it has answered.
std::vector<SampleResponse> responses_of(const Source& source, const std::vector<QueryKey>& queries) {
  std::vector<SampleResponse> found;
  std::vector<QueryKey> missing;
  for (const QueryKey& query : queries) {
    const auto kept = std::ranges::find(source.kept, query, &SampleResponse::query);
    if (kept != source.kept.end())
      found.push_back(*kept);
    else
      missing.push_back(query);
  }
  if (missing.empty() || source.file.empty()) return found;
  for (SampleResponse& response : find_responses(source.file, missing)) found.push_back(std::move(response));
  return found;
}

void add_response(SampleQuestion& question, const std::string& label, SampleResponse response) {
  if (question.answer.empty()) question.answer = response.answer;
  if (question.question.empty()) question.question = response.question;
  question.responses.push_back({label, std::move(response)});
}

}  // namespace

std::vector<SampleQuestion> compare_samples(const Comparison& comparison, size_t count) {
  std::vector<Source> sources = evaluation_sources(comparison);
  if (sources.empty()) sources = rollout_sources(comparison);
  std::vector<SampleQuestion> questions;
  if (sources.empty()) return questions;
  const auto queries = shared_queries(sources, count);
  for (const QueryKey& query : queries) questions.push_back({.query = query});
  bool is_any_kept = false;
  for (const Source& source : sources) {
    is_any_kept |= !source.kept.empty();
    for (SampleResponse& response : responses_of(source, queries)) {
      const auto at = std::ranges::find(queries, response.query) - queries.begin();
      add_response(questions[static_cast<size_t>(at)], source.label, std::move(response));
    }
  }
  const size_t least = is_any_kept ? 1 : std::min<size_t>(2, sources.size());
  std::erase_if(questions, [&](const SampleQuestion& question) { return question.responses.size() < least; });
  return questions;
}

std::vector<SampleQuestion> diagnosis_samples(const DiagnosisData& diagnosis) {
  std::vector<SampleQuestion> questions;
  for (const ResponseSample& sample : diagnosis.samples) {
    // The source takes the benchmark's place: it is what tells equal queries apart here.
    const QueryKey key{"prefixes of " + sample.source,
                       sample.query_id + ", sample " + std::to_string(sample.sample)};
    auto found = std::ranges::find(questions, key, &SampleQuestion::query);
    if (found == questions.end()) found = questions.insert(found, {.query = key});
    add_response(*found, "as " + sample.student + " sees it", to_response(sample));
  }
  return questions;
}

}  // namespace ropd::report
