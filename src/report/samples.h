// Responses of the initial student, the teacher and every method to the same queries, for reading side by side. Those
// kept for reading (samples.jsonl, with what both models thought of every token) go first; files of all responses may be
// many gigabytes: they are scanned as text and only the few chosen lines are parsed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/response_sample.h"
#include "report/methods.h"

namespace ropd::report {

// Query ids are unique inside a benchmark; rollouts of a training have no benchmark.
struct QueryKey {
  std::string benchmark, query_id;
  bool operator==(const QueryKey&) const = default;
};

struct SampleResponse {
  QueryKey query;
  std::string answer, text;
  int64_t num_tokens = 0;
  bool is_cut = false;
  std::optional<std::string> boxed;      // content of the last complete \boxed{}
  std::string question = {};             // only of responses kept for reading
  std::optional<bool> correct = {};      // likewise: the grader's verdict
  std::vector<SampleToken> tokens = {};  // likewise: the beginning of the response
};

struct ShownResponse {
  std::string label;  // whose
  SampleResponse response;
};

struct SampleQuestion {
  QueryKey query;
  std::string question = {}, answer = {};  // the expected one; empty when unknown
  std::vector<ShownResponse> responses = {};
};

// The content of the last \boxed{} whose braces are closed.
std::optional<std::string> last_boxed(std::string_view text);

// `count` queries spread over the file.
std::vector<QueryKey> choose_queries(const Path& responses, size_t count);
// The first response to each of these queries, in this order; queries without one are left out.
std::vector<SampleResponse> find_responses(const Path& responses, const std::vector<QueryKey>& queries);

// As it was kept for reading.
SampleResponse to_response(const ResponseSample& sample);

// Every method's evaluation (its first run's newest, of the first set of questions) on the same `count` queries;
// without evaluations, the first against the last sampled rollouts of the last trained method. Queries that fewer than
// two have answered are left out, unless there is only one to ask.
std::vector<SampleQuestion> compare_samples(const Comparison& comparison, size_t count);

// Of a diagnosis: the same responses as every student sees them, grouped by source and query.
std::vector<SampleQuestion> diagnosis_samples(const DiagnosisData& diagnosis);

}  // namespace ropd::report
