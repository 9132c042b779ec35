#include "app/difficult_queries.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "eval/evaluate.h"
#include "eval/responses.h"
#include "io/model_directory.h"
#include "model/weights.h"
#include "rollout/fingerprint.h"
#include "rollout/local_generator.h"
#include "stats/evaluation.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ropd::app {
namespace {

constexpr size_t kNumQueries = 48;
constexpr int kTokens = 64;  // the initial student writes about 23
constexpr const char* kSuite =
    "name: difficulty\nprompt_prefix: \"\"\nprompt_suffix: \"\"\nbenchmarks:\n"
    "  - {name: queries, file: queries.jsonl, samples: 8, answers: integer}\n";

bool evaluate(const Path& student, const Path& output, const Path& folder) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "suite.yaml", kSuite);
  const auto suite = eval::load_suite((folder / "suite.yaml").string(), output / "data");
  const auto tokenizer = text::Tokenizer::load(student);
  const auto directory = std::make_shared<const io::ModelDirectory>(student);
  const auto weights = model::map_weights(directory);
  rollout::EngineConfig config;
  config.max_response_tokens = kTokens;
  config.eos_ids = directory->generation().eos_ids;
  rollout::LocalGenerator engine(weights, kernels::Precision::f32, config);
  const auto generated =
      eval::generate_responses(engine, suite, tokenizer, text::ChatTemplate::load(student), folder,
                               {"difficulty of the queries", rollout::weights_fingerprint(weights), 1});
  if (!generated.is_finished) return false;
  eval::GradingConfig scoring;
  scoring.budgets = {kTokens};
  const eval::ResponseFile responses(folder / "responses.jsonl", suite);
  eval::write_evaluation(folder, eval::grade_responses(suite, responses, tokenizer, scoring),
                         eval::read_generation_record(folder));
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> difficult_queries(const Path& student, const Path& output) {
  const Path folder = output / "difficulty";
  if (!std::filesystem::exists(folder / "summary.json") && !evaluate(student, output, folder))
    return std::nullopt;
  const auto benchmark = stats::read_summary(folder).benchmarks.front();
  std::vector<size_t> order(benchmark.question_ids.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto distance = [&](size_t i) { return std::abs(benchmark.questions[0][i].accuracy - 0.5); };
    return distance(a) < distance(b);
  });
  order.resize(std::min(order.size(), kNumQueries));
  std::vector<std::string> ids;
  for (const size_t i : order) ids.push_back(benchmark.question_ids[i]);
  return ids;
}

}  // namespace ropd::app
