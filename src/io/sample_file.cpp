#include "io/sample_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "io/jsonl.h"

namespace ropd::io {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr uint64_t kMaxLineBytes = uint64_t{32} << 20;

OrderedJson logprob_json(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return std::round(*value * 1e4) / 1e4;  // more digits than anybody looks at
}

OrderedJson choice_json(const SampleChoice& choice) {
  return {{"text", choice.text},
          {"id", choice.id},
          {"student_logprob", logprob_json(choice.student_logprob)},
          {"teacher_logprob", logprob_json(choice.teacher_logprob)}};
}

std::optional<double> logprob(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// What only samples of evaluations and diagnoses have. `Sample` may be constant.
template <class Sample>
auto origins(Sample& sample) {
  return std::array{std::pair("benchmark", &sample.benchmark), std::pair("source", &sample.source),
                    std::pair("student", &sample.student)};
}

SampleChoice parse_choice(const Json& json) {
  return {json.at("text"), json.at("id"), logprob(json, "student_logprob"), logprob(json, "teacher_logprob")};
}

}  // namespace

std::string sample_line(const ResponseSample& sample) {
  OrderedJson json = {{"iteration", sample.iteration}};
  for (const auto& [name, value] : origins(sample))
    if (!value->empty()) json[name] = *value;
  json.update({{"query_id", sample.query_id},
               {"sample", sample.sample},
               {"question", sample.question},
               {"answer", sample.answer},
               {"correct", nullptr},
               {"finish", sample.finish == Finish::eos ? "eos" : "length"},
               {"num_tokens", sample.num_tokens},
               {"tokens", OrderedJson::array()}});
  if (sample.correct) json["correct"] = *sample.correct;
  for (size_t t = 0; t < std::min(sample.tokens.size(), kMaxSampleTokens); ++t) {
    OrderedJson token = choice_json(sample.tokens[t].chosen);
    const auto& candidates = sample.tokens[t].candidates;
    if (t < kMaxSampleTokensWithChoices && !candidates.empty()) {
      token["candidates"] = OrderedJson::array();
      for (size_t j = 0; j < std::min(candidates.size(), kMaxSampleCandidates); ++j)
        token["candidates"].push_back(choice_json(candidates[j]));
    }
    json["tokens"].push_back(std::move(token));
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

ResponseSample parse_sample(const Json& json, const std::string& where) {
  try {
    ResponseSample sample{.iteration = json.at("iteration"),
                          .query_id = json.at("query_id"),
                          .sample = json.at("sample"),
                          .question = json.at("question"),
                          .answer = json.at("answer"),
                          .finish = json.at("finish") == "eos" ? Finish::eos : Finish::length};
    for (const auto& [name, value] : origins(sample))
      if (const auto found = json.find(name); found != json.end()) *value = found->get<std::string>();
    if (json.at("correct").is_boolean()) sample.correct = json.at("correct").get<bool>();
    for (const Json& entry : json.at("tokens")) {
      if (sample.tokens.size() == kMaxSampleTokens) break;
      SampleToken token{parse_choice(entry), {}};
      if (entry.contains("candidates"))
        for (const Json& candidate : entry.at("candidates")) {
          if (token.candidates.size() == kMaxSampleCandidates) break;
          token.candidates.push_back(parse_choice(candidate));
        }
      sample.tokens.push_back(std::move(token));
    }
    sample.num_tokens = json.value("num_tokens", uint64_t{sample.tokens.size()});
    return sample;
  } catch (const Json::exception& error) {
    fail(where, ": no sample of a response (", error.what(), ")");
  }
}

void write_samples(const Path& path, const std::vector<ResponseSample>& samples) {
  std::filesystem::create_directories(path.parent_path());
  std::string text;
  for (const ResponseSample& sample : samples) text += sample_line(sample) + "\n";
  write_file_atomically(path, text);
}

std::vector<ResponseSample> read_samples(const Path& path) {
  const MappedFile file(path);  // never compressed: an onlooker must not grow with what a file claims
  JsonlReader reader(file.text(), path.string(), kMaxLineBytes);
  std::vector<ResponseSample> samples;
  for_each_json_row(
      reader, [&](Json&& json, const std::string& where) { samples.push_back(parse_sample(json, where)); });
  return samples;
}

}  // namespace ropd::io
