// Benchmark suites: which questions are asked, how often, and in which words (method.md section 9,
// docs/formats.md). A suite is a YAML file, or one of the built-in `three` (AIME24, AIME25, AMC23) and
// `eight`, whose question counts are the paper's and are checked. Everything is verified on load: counts,
// ids, answers. Constant afterwards.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_fields.h"
#include "base/file.h"
#include "records/query.h"

namespace ropd::eval {

// What every answer of a benchmark must look like.
enum class AnswerFormat { math, integer };
constexpr auto enum_names(AnswerFormat) {
  return std::array{EnumName{AnswerFormat::math, "math"}, EnumName{AnswerFormat::integer, "integer"}};
}

inline constexpr const char* kDefaultPromptSuffix =
    " Please reason step by step, and put your final answer within \\boxed{}.";

// One benchmark as the suite file names it; absent prompt settings are the suite's.
struct BenchmarkConfig {
  std::string name;
  std::string file;
  uint32_t samples = 1;
  std::optional<uint64_t> questions;
  AnswerFormat answers = AnswerFormat::math;
  std::optional<std::string> prompt_prefix;
  std::optional<std::string> prompt_suffix;
  std::optional<bool> thinking;
  void fields(auto&& field) {
    field("name", name, "of the benchmark in tables and files");
    field("file", file, "JSONL or parquet; relative to --data");
    field("samples", samples, "responses to each question", between(1, 4096));
    field("questions", questions, "expected number of questions; null = any");
    field("answers", answers, "what every answer must be");
    field("prompt_prefix", prompt_prefix, "instead of the suite's");
    field("prompt_suffix", prompt_suffix, "instead of the suite's");
    field("thinking", thinking, "instead of the suite's");
  }
};

struct SuiteConfig {
  std::string name;
  std::string prompt_prefix;
  std::string prompt_suffix = kDefaultPromptSuffix;
  bool thinking = false;
  std::vector<BenchmarkConfig> benchmarks;
  void fields(auto&& field) {
    field("name", name, "of the suite");
    field("prompt_prefix", prompt_prefix, "put before every question");
    field("prompt_suffix", prompt_suffix, "put behind every question");
    field("thinking", thinking, "the chat template's enable_thinking");
    field("benchmarks", benchmarks, "what is asked, in the order of the tables");
  }
  void validate(const ConfigPlace& place = {}) const;
};

// One benchmark with its questions.
struct Benchmark {
  std::string name;
  uint32_t samples = 1;
  std::string prompt_prefix;
  std::string prompt_suffix;
  bool thinking = false;
  std::vector<Query> questions;
  std::string questions_sha256;  // of ids, prompts and answers

  // The question as it is asked: prefix and suffix around the last message.
  std::vector<Message> messages_of(const Query& question) const;
};

struct Suite {
  std::string name;
  std::vector<Benchmark> benchmarks;
  std::string fingerprint;  // of all that determines the requests

  uint64_t num_responses() const;
};

// `name_or_file` is a built-in name or a YAML file; benchmark files are found in `data_directory`.
// Fails for a missing file, a wrong count, an absent answer or one of the wrong format, and repeated ids,
// naming file and line.
Suite load_suite(const std::string& name_or_file, const Path& data_directory);

// Where the questions of each benchmark lie, by its name, whether the files exist or not. Reads the suite only.
std::map<std::string, Path> benchmark_files(const std::string& name_or_file, const Path& data_directory);

// The built-in suite's YAML text, or nothing for another name.
std::optional<std::string_view> built_in_suite(std::string_view name);

// True for an integer as benchmarks write it: 42, -7, 1,000, 336^\circ, 142.0.
bool is_integer_answer(std::string_view answer);

}  // namespace ropd::eval
