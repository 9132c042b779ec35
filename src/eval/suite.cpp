#include "eval/suite.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "grading/grader.h"
#include "io/dataset.h"

namespace ropd::eval {
namespace {

constexpr std::string_view kThree = R"(name: three
benchmarks:
  - {name: aime24, file: aime24.jsonl, samples: 32, questions: 30, answers: integer}
  - {name: aime25, file: aime25.jsonl, samples: 32, questions: 30, answers: integer}
  - {name: amc23, file: amc23.jsonl, samples: 32, questions: 83, answers: integer}
)";

constexpr std::string_view kEight = R"(name: eight
benchmarks:
  - {name: aime24, file: aime24.jsonl, samples: 32, questions: 30, answers: integer}
  - {name: aime25, file: aime25.jsonl, samples: 32, questions: 30, answers: integer}
  - {name: aime26, file: aime26.jsonl, samples: 32, questions: 30, answers: integer}
  - {name: amc23, file: amc23.jsonl, samples: 32, questions: 83, answers: integer}
  - {name: hmmt25_nov, file: hmmt25_nov.jsonl, samples: 32, questions: 30, answers: math}
  - {name: hmmt26_feb, file: hmmt26_feb.jsonl, samples: 32, questions: 33, answers: math}
  - {name: math500, file: math500.jsonl, samples: 4, questions: 500, answers: math}
  - {name: olympiadbench, file: olympiadbench.jsonl, samples: 4, questions: 675, answers: math}
)";

// An answer can be graded when it survives being put into a box: it is not empty and its braces close.
void check_answer(const Query& question, AnswerFormat format, const std::string& where) {
  if (question.answer.empty())
    fail(where, ": question '", question.id, "' has no answer, expected one to grade against");
  if (format == AnswerFormat::integer && !is_integer_answer(question.answer))
    fail(where, ": question '", question.id, "' has the answer '", question.answer, "', expected an integer");
  const bool is_boxed = question.answer.find("\\boxed") != std::string::npos;
  const auto boxed = grading::extract_boxed(is_boxed ? question.answer : "\\boxed{" + question.answer + "}");
  if (!boxed || (!is_boxed && *boxed != question.answer))
    fail(where, ": question '", question.id, "' has the answer '", question.answer.substr(0, 80),
         "', expected braces that close");
}

std::string digest_of_questions(const std::vector<Query>& questions) {
  std::string content;
  for (const auto& question : questions) {
    content += question.id + '\0' + question.answer + '\0';
    for (const auto& message : question.messages) content += message.role + '\0' + message.content + '\0';
    content += '\n';
  }
  return sha256(content);
}

SuiteConfig read_suite(const std::string& name_or_file) {
  const auto built_in = built_in_suite(name_or_file);
  if (!built_in && !std::filesystem::exists(name_or_file))
    fail("suite '", name_or_file, "': neither a file nor a built-in suite (three, eight)");
  auto config =
      built_in ? parse_config<SuiteConfig>(*built_in, name_or_file) : load_config<SuiteConfig>(name_or_file);
  if (config.name.empty()) config.name = Path(name_or_file).stem().string();
  return config;
}

Benchmark load_benchmark(const BenchmarkConfig& config, const SuiteConfig& suite,
                         const Path& data_directory) {
  const Path path = data_directory / config.file;  // an absolute one stays as it is
  if (!std::filesystem::exists(path))
    fail("suite '", suite.name, "': benchmark '", config.name, "' names ", path.string(),
         ", which does not exist (wrong --data?)");
  auto dataset = io::read_dataset(path);
  if (config.questions && *config.questions != dataset.queries.size())
    fail(path.string(), ": ", dataset.queries.size(), " questions, suite '", suite.name, "' expects ",
         *config.questions, " (another version of the benchmark?)");
  for (size_t i = 0; i < dataset.queries.size(); ++i)
    check_answer(dataset.queries[i], config.answers, dataset.where(i));
  Benchmark benchmark;
  benchmark.name = config.name;
  benchmark.samples = config.samples;
  benchmark.prompt_prefix = config.prompt_prefix.value_or(suite.prompt_prefix);
  benchmark.prompt_suffix = config.prompt_suffix.value_or(suite.prompt_suffix);
  benchmark.thinking = config.thinking.value_or(suite.thinking);
  benchmark.questions = std::move(dataset.queries);
  benchmark.questions_sha256 = digest_of_questions(benchmark.questions);
  return benchmark;
}

std::string fingerprint_of(const Suite& suite) {
  std::string content;
  for (const auto& benchmark : suite.benchmarks)
    content += benchmark.name + '\0' + std::to_string(benchmark.samples) + '\0' + benchmark.prompt_prefix +
               '\0' + benchmark.prompt_suffix + '\0' + (benchmark.thinking ? "1" : "0") + '\0' +
               benchmark.questions_sha256 + '\n';
  return sha256(content);
}

}  // namespace

void SuiteConfig::validate(const ConfigPlace& place) const {
  if (benchmarks.empty()) place.refuse({"benchmarks"}, ": no benchmarks, expected at least one");
  std::set<std::string> names;
  for (size_t i = 0; i < benchmarks.size(); ++i) {
    const auto& benchmark = benchmarks[i];
    const std::string key = "benchmarks[" + std::to_string(i) + "]";
    if (benchmark.name.empty() || benchmark.file.empty())
      place.refuse({key}, ": '", benchmark.name, "' with file '", benchmark.file,
                   "', expected both a name and a file");
    if (!names.insert(benchmark.name).second)
      place.refuse({key}, ": the benchmark '", benchmark.name, "' occurs twice");
  }
}

bool is_integer_answer(std::string_view answer) {
  for (const std::string_view unit : {"^\\circ", "^{\\circ}", ".0", "."})
    if (answer.ends_with(unit)) {
      answer.remove_suffix(unit.size());
      break;
    }
  if (answer.starts_with('-') || answer.starts_with('+')) answer.remove_prefix(1);
  if (answer.empty() || !std::isdigit(uint8_t(answer.front())) || !std::isdigit(uint8_t(answer.back())))
    return false;
  return std::all_of(answer.begin(), answer.end(),
                     [](char c) { return std::isdigit(uint8_t(c)) || c == ','; });
}

std::vector<Message> Benchmark::messages_of(const Query& question) const {
  std::vector<Message> messages = question.messages;
  messages.back().content = prompt_prefix + messages.back().content + prompt_suffix;
  return messages;
}

uint64_t Suite::num_responses() const {
  uint64_t count = 0;
  for (const auto& benchmark : benchmarks) count += benchmark.questions.size() * benchmark.samples;
  return count;
}

std::optional<std::string_view> built_in_suite(std::string_view name) {
  if (name == "three") return kThree;
  if (name == "eight") return kEight;
  return std::nullopt;
}

std::map<std::string, Path> benchmark_files(const std::string& name_or_file, const Path& data_directory) {
  std::map<std::string, Path> files;
  for (const auto& benchmark : read_suite(name_or_file).benchmarks)
    files[benchmark.name] = data_directory / benchmark.file;
  return files;
}

Suite load_suite(const std::string& name_or_file, const Path& data_directory) {
  const SuiteConfig config = read_suite(name_or_file);
  Suite suite;
  suite.name = config.name;
  for (const auto& benchmark : config.benchmarks)
    suite.benchmarks.push_back(load_benchmark(benchmark, config, data_directory));
  suite.fingerprint = fingerprint_of(suite);
  return suite;
}

}  // namespace ropd::eval
