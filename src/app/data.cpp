// ropd data: query sets as the paper prepares them. prepare, select, order, overlap, stats.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/visible_text.h"
#include "io/adapter_directory.h"
#include "io/dataset.h"
#include "text/prompt_renderer.h"
#include "train/query_operations.h"

namespace ropd::app {
namespace {

constexpr const char* kDataExamples = R"(Examples:
  ropd data prepare --in dapo-math-17k.parquet --out queries.jsonl --no-han --model models/Qwen3-0.6B --max-prompt-tokens 1024
  ropd data select --in queries.jsonl --out q48.jsonl --count 48 --seed 20260829
  ropd data order --in q48.jsonl --out q48-order1.jsonl --seed 1
  ropd data overlap --in queries.jsonl --benchmark aime24.jsonl --benchmark math500.jsonl
  ropd data stats --in queries.jsonl --model models/Qwen3-0.6B)";

// How a query becomes a prompt, for counting its tokens.
struct PromptOptions {
  std::string model, base;
  std::string prefix;
  std::string suffix;
  bool thinking = false;
};

void add_prompt_options(CLI::App& command, PromptOptions& options) {
  command
      .add_option("--model", options.model,
                  "whose chat template and tokenizer count prompt tokens: model or adapter directory, "
                  "checkpoint or run")
      ->transform(to_model());
  add_base(command, "--base", options.base);
  command.add_option("--prompt-prefix", options.prefix, "put before the question when counting");
  command.add_option("--prompt-suffix", options.suffix, "put behind the question when counting");
  command.add_flag("--thinking", options.thinking, "count with enable_thinking=true");
}

// Tokens of every prompt with the generation prompt.
std::vector<uint32_t> count_prompt_tokens(const std::vector<Query>& queries, const PromptOptions& options) {
  const auto renderer = text::PromptRenderer::load(io::text_directory(options.model, options.base),
                                                   {options.prefix, options.suffix, options.thinking});
  Progress progress("counting prompt tokens", queries.size());
  std::vector<uint32_t> counts;
  for (const auto& prompt : renderer.render_all(queries)) counts.push_back(uint32_t(prompt.size()));
  progress.update(queries.size());
  return counts;
}

void print_result(const CLI::App& command, const Json& json, const std::string& text) {
  const CLI::Option* out = command.get_option_no_throw("--out");
  if (out && out->count() > 0 && out->as<std::string>() == kStandardOutput) return;  // it holds the data
  if (wants_json(command))
    print_json(json);
  else
    print_text(text);
}

std::string counted(uint64_t count, const char* what) { return format_count(double(count)) + " " + what; }

// What DAPO-Math-17K puts around every question.
constexpr const char* kDapoPrefix =
    "Solve the following math problem step by step. The last line of your response should be of the form "
    "Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n";
constexpr const char* kDapoSuffix = "\n\nRemember to put your answer on its own line after \"Answer:\".";

struct PrepareOptions {
  std::string in, strip_prefix, strip_suffix, wrapper = "keep";
  Output out;
  bool keeps_duplicates = false, excludes_han = false;
  uint32_t max_prompt_tokens = 0;
  PromptOptions prompt;
};

// A filter of `prepare`, as it is told to people and machines.
struct FilterStep {
  std::string name;
  std::string said;
  uint64_t num_dropped = 0;
  uint64_t num_left = 0;
};

template <class Keep>
void keep_if(std::vector<Query>& queries, std::vector<FilterStep>& steps, const char* name, std::string said,
             Keep&& keep) {
  std::vector<Query> kept;
  for (size_t i = 0; i < queries.size(); ++i)
    if (keep(i)) kept.push_back(std::move(queries[i]));
  steps.push_back({name, std::move(said), queries.size() - kept.size(), kept.size()});
  queries = std::move(kept);
}

void report_steps(const CLI::App& command, const PrepareOptions& options, uint64_t num_read,
                  const std::vector<FilterStep>& steps) {
  std::string text = options.in + ": " + counted(num_read, "rows\n");
  Json json = {{"in", options.in}, {"out", options.out.path}, {"read", num_read}, {"steps", Json::array()}};
  for (const auto& step : steps) {
    text +=
        "  " + counted(step.num_dropped, "dropped: ") + step.said + " -> " + counted(step.num_left, "left\n");
    json["steps"].push_back({{"filter", step.name}, {"dropped", step.num_dropped}, {"left", step.num_left}});
  }
  const uint64_t written = steps.empty() ? num_read : steps.back().num_left;
  json["written"] = written;
  print_result(command, json, text + options.out.path + ": " + counted(written, "queries\n"));
}

void run_prepare(const CLI::App& command, const PrepareOptions& options) {
  if (options.max_prompt_tokens > 0 && options.prompt.model.empty())
    throw CLI::ValidationError(
        "--max-prompt-tokens needs --model, whose template and tokenizer count the tokens");
  auto dataset = io::read_dataset(options.in, io::DuplicateIds::keep);
  std::vector<Query>& queries = dataset.queries;
  const uint64_t num_read = queries.size();
  std::vector<FilterStep> steps;
  if (dataset.num_generated_ids > 0)
    log_info(options.in, ": ", format_count(double(dataset.num_generated_ids)),
             " rows have no id; ids are made from their prompts");
  if (!options.keeps_duplicates) {
    const auto unique = train::deduplicate_by_prompt(queries);
    const std::set<size_t> kept(unique.kept.begin(), unique.kept.end());
    std::string said = "the prompt occurs before";
    if (unique.num_conflicts > 0)
      said += " (" + format_count(double(unique.num_conflicts)) + " with another answer)";
    keep_if(queries, steps, "duplicate_prompt", said, [&](size_t i) { return kept.contains(i); });
  }
  if (options.excludes_han)
    keep_if(queries, steps, "han", "Chinese characters",
            [&](size_t i) { return !train::has_han(queries[i]); });
  const bool strips_dapo = options.wrapper == "strip-dapo";
  const std::string prefix = strips_dapo ? kDapoPrefix : options.strip_prefix,
                    suffix = strips_dapo ? kDapoSuffix : options.strip_suffix;
  if (!prefix.empty() || !suffix.empty())
    log_info("the wrapper was removed from ",
             format_count(double(train::strip_wrapper(queries, prefix, suffix))), " of ",
             format_count(double(queries.size())), " queries");
  if (options.max_prompt_tokens > 0) {
    const auto tokens = count_prompt_tokens(queries, options.prompt);
    keep_if(queries, steps, "prompt_tokens",
            "prompt longer than " + std::to_string(options.max_prompt_tokens) + " tokens",
            [&](size_t i) { return tokens[i] <= options.max_prompt_tokens; });
  }
  if (queries.empty()) fail(options.in, ": no query is left after the filters");
  io::Dataset result{.path = options.out.path, .queries = queries};
  result.places.resize(queries.size());
  std::iota(result.places.begin(), result.places.end(), uint64_t{1});
  io::check_unique_ids(result);
  io::write_queries(options.out.path, queries);
  report_steps(command, options, num_read, steps);
}

void add_prepare(CLI::App& data) {
  auto options = std::make_shared<PrepareOptions>();
  CLI::App* command =
      data.add_subcommand("prepare", "filter a dataset: repeated prompts, language, prompt length");
  command->add_option("--in", options->in, "JSONL or parquet file; - is standard input (JSONL)")
      ->required()
      ->transform(or_standard_input());
  add_output(*command, options->out, "JSONL file to write")->required();
  command->add_flag("--keep-duplicates", options->keeps_duplicates,
                    "keep queries whose prompt occurs before");
  command->add_flag("--no-han", options->excludes_han, "drop queries with Chinese characters");
  command
      ->add_option("--max-prompt-tokens", options->max_prompt_tokens,
                   "drop longer prompts, counted under --model's chat template")
      ->check(CLI::Range(0, 1 << 24));
  command
      ->add_option(
          "--wrapper", options->wrapper,
          "keep: the dataset's own instruction around the question stays, as in the paper's count of "
          "14,107; strip-dapo: that of DAPO-Math-17K is removed (14,108)")
      ->check(CLI::IsMember({"keep", "strip-dapo"}))
      ->capture_default_str();
  command->add_option("--strip-prefix", options->strip_prefix,
                      "remove this text from the beginning of the question");
  command->add_option("--strip-suffix", options->strip_suffix,
                      "remove this text from the end of the question");
  add_prompt_options(*command, options->prompt);
  command->footer(
      "Example:\n  ropd data prepare --in dapo-math-17k.parquet --out queries.jsonl --no-han --model "
      "models/Qwen3-0.6B "
      "--max-prompt-tokens 1024");
  command->callback([command, options] {
    check_output(options->out, {options->in});
    run_prepare(*command, *options);
  });
}

struct SelectOptions {
  std::string in;
  Output out;
  std::optional<uint64_t> count, seed, first;
  std::vector<std::string> ids;
};

void run_select(const CLI::App& command, const SelectOptions& options) {
  if (options.count.has_value() + options.first.has_value() + !options.ids.empty() != 1)
    throw CLI::ValidationError("exactly one of --count, --first and --ids is needed");
  if (options.count && !options.seed) throw CLI::ValidationError("--count needs --seed");
  const auto dataset = io::read_dataset(options.in);
  const auto chosen = train::select_queries(
      dataset.queries,
      {.count = options.count, .seed = options.seed.value_or(0), .first = options.first, .ids = options.ids});
  io::write_queries(options.out.path, chosen);
  print_result(
      command,
      {{"in", options.in},
       {"out", options.out.path},
       {"read", dataset.queries.size()},
       {"written", chosen.size()}},
      options.out.path + ": " + counted(chosen.size(), "of ") + counted(dataset.queries.size(), "queries\n"));
}

void add_select(CLI::App& data) {
  auto options = std::make_shared<SelectOptions>();
  CLI::App* command =
      data.add_subcommand("select", "choose queries: at random by seed, the first n, or by id");
  command->add_option("--in", options->in, "JSONL or parquet file; - is standard input (JSONL)")
      ->required()
      ->transform(or_standard_input());
  add_output(*command, options->out, "JSONL file to write")->required();
  command->add_option("--count", options->count,
                      "this many at random; smaller choices of one seed are part of larger ones");
  command->add_option("--seed", options->seed, "of the random choice")->check(is_seed());
  command->add_option("--first", options->first, "the first n");
  command->add_option("--ids", options->ids, "these, in this order")->delimiter(',');
  command->footer(
      "Example:\n  ropd data select --in queries.jsonl --out q48.jsonl --count 48 --seed 20260829");
  command->callback([command, options] {
    check_output(options->out, {options->in});
    run_select(*command, *options);
  });
}

struct OrderOptions {
  std::string in;
  Output out;
  uint64_t seed = 0;
};

void add_order(CLI::App& data) {
  auto options = std::make_shared<OrderOptions>();
  CLI::App* command = data.add_subcommand("order", "permute queries by seed");
  command->add_option("--in", options->in, "JSONL or parquet file; - is standard input (JSONL)")
      ->required()
      ->transform(or_standard_input());
  add_output(*command, options->out, "JSONL file to write")->required();
  command->add_option("--seed", options->seed, "of the permutation; 0 keeps the order")
      ->required()
      ->check(is_seed());
  command->footer("Example:\n  ropd data order --in q48.jsonl --out q48-order1.jsonl --seed 1");
  command->callback([command, options] {
    check_output(options->out, {options->in});
    const auto ordered = train::order_queries(io::read_dataset(options->in).queries, options->seed);
    io::write_queries(options->out.path, ordered);
    print_result(*command,
                 {{"in", options->in},
                  {"out", options->out.path},
                  {"seed", options->seed},
                  {"written", ordered.size()}},
                 options->out.path + ": " + counted(ordered.size(), "queries in the order of seed ") +
                     std::to_string(options->seed) + "\n");
  });
}

struct OverlapOptions {
  std::string in;
  Output out;
  std::vector<std::string> benchmarks;
  double threshold = 0.5;
};

void run_overlap(const CLI::App& command, const OverlapOptions& options) {
  const auto dataset = io::read_dataset(options.in, io::DuplicateIds::keep);
  Json json = {{"in", options.in},
               {"queries", dataset.queries.size()},
               {"threshold", options.threshold},
               {"benchmarks", Json::array()}};
  std::string text;
  std::set<size_t> repeated;
  for (const auto& path : options.benchmarks) {
    const auto benchmark = io::read_dataset(path);
    const auto overlaps = train::find_overlaps(dataset.queries, benchmark.queries, options.threshold);
    std::set<size_t> questions;
    Json pairs = Json::array();
    std::string lines;
    for (const auto& overlap : overlaps) {
      questions.insert(overlap.benchmark);
      repeated.insert(overlap.query);
      const char* kind = overlap.is_equal ? "equal" : overlap.share == 1 ? "contained" : "similar";
      pairs.push_back({{"query", dataset.queries[overlap.query].id},
                       {"question", benchmark.queries[overlap.benchmark].id},
                       {"kind", kind},
                       {"share", overlap.share}});
      char share[16];
      std::snprintf(share, sizeof share, "%5.1f%%", 100 * overlap.share);
      lines += "  " + std::string(share) + "  " + kind + "  " +
               visible_line(benchmark.queries[overlap.benchmark].id) + "  in  " +
               dataset.where(overlap.query) + " (" + visible_line(dataset.queries[overlap.query].id) + ")\n";
    }
    text += path + ": " + std::to_string(questions.size()) + " of " +
            counted(benchmark.queries.size(), "questions repeat in ") + std::to_string(overlaps.size()) +
            " pairs\n" + lines;
    json["benchmarks"].push_back({{"file", path},
                                  {"questions", benchmark.queries.size()},
                                  {"repeated", questions.size()},
                                  {"pairs", pairs}});
  }
  json["repeated_queries"] = repeated.size();
  if (!options.out.path.empty()) {
    std::vector<Query> clean;
    for (size_t i = 0; i < dataset.queries.size(); ++i)
      if (!repeated.contains(i)) clean.push_back(dataset.queries[i]);
    io::write_queries(options.out.path, clean);
    json["out"] = options.out.path;
    json["written"] = clean.size();
    text += options.out.path + ": " + counted(clean.size(), "queries without repeats\n");
  }
  print_result(command, json,
               text + counted(repeated.size(), "of ") +
                   counted(dataset.queries.size(), "queries repeat a benchmark question\n"));
}

void add_overlap(CLI::App& data) {
  auto options = std::make_shared<OverlapOptions>();
  CLI::App* command = data.add_subcommand("overlap", "find training queries that repeat benchmark questions");
  command
      ->add_option("--in", options->in,
                   "JSONL or parquet file of training queries; - is standard input (JSONL)")
      ->required()
      ->transform(or_standard_input());
  command
      ->add_option("--benchmark", options->benchmarks,
                   "JSONL or parquet file of questions; may be given several times")
      ->required();
  command
      ->add_option("--threshold", options->threshold,
                   "share of a question's 8-word windows that counts as a repeat")
      ->check(number_in("a number from 0.01 to 1", [](double x) { return x >= 0.01 && x <= 1; }))
      ->capture_default_str();
  add_output(*command, options->out, "write the queries that repeat nothing");
  command->footer(
      "Example:\n  ropd data overlap --in queries.jsonl --benchmark aime24.jsonl --benchmark math500.jsonl "
      "--out clean.jsonl");
  command->callback([command, options] {
    check_output(options->out, {options->in});
    for (const std::string& benchmark : options->benchmarks) refuse_inputs(options->out.path, {benchmark});
    run_overlap(*command, *options);
  });
}

// Smallest, median, 95th percentile, largest and mean.
Json quantiles_of(std::vector<uint32_t> values) {
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const auto at = [&](double share) { return values[size_t(share * double(values.size() - 1))]; };
  return {{"min", values.front()},
          {"median", at(0.5)},
          {"p95", at(0.95)},
          {"max", values.back()},
          {"mean", sum / double(values.size())}};
}

std::string quantile_line(const char* name, const Json& quantiles) {
  std::string line = std::string("  ") + name + ":";
  for (const char* key : {"min", "median", "p95", "max"})
    line += std::string("  ") + key + " " + quantiles[key].dump();
  char mean[32];
  std::snprintf(mean, sizeof mean, "  mean %.1f\n", quantiles["mean"].get<double>());
  return line + mean;
}

struct StatsOptions {
  std::string in;
  PromptOptions prompt;
};

void run_stats(const CLI::App& command, const StatsOptions& options) {
  const auto dataset = io::read_dataset(options.in, io::DuplicateIds::keep);
  const auto unique = train::deduplicate_by_prompt(dataset.queries);
  std::set<std::string> ids;
  std::vector<uint32_t> bytes;
  uint64_t num_answers = 0, num_han = 0;
  for (const auto& query : dataset.queries) {
    ids.insert(query.id);
    num_answers += !query.answer.empty();
    num_han += train::has_han(query);
    uint32_t length = 0;
    for (const auto& message : query.messages) length += uint32_t(message.content.size());
    bytes.push_back(length);
  }
  Json json = {{"in", options.in},
               {"queries", dataset.queries.size()},
               {"unique_ids", ids.size()},
               {"generated_ids", dataset.num_generated_ids},
               {"unique_prompts", unique.kept.size()},
               {"conflicting_answers", unique.num_conflicts},
               {"with_answer", num_answers},
               {"with_han", num_han},
               {"prompt_bytes", quantiles_of(bytes)}};
  std::string text =
      options.in + ": " + counted(dataset.queries.size(), "queries\n") + "  " + counted(ids.size(), "ids (") +
      counted(dataset.num_generated_ids, "made from prompts)\n  ") +
      counted(unique.kept.size(), "different prompts, ") +
      counted(unique.num_conflicts, "repeats with another answer\n  ") +
      counted(num_answers, "with an answer\n  ") + counted(num_han, "with Chinese characters\n") +
      quantile_line("bytes a prompt", json["prompt_bytes"]);
  if (!options.prompt.model.empty()) {
    json["prompt_tokens"] = quantiles_of(count_prompt_tokens(dataset.queries, options.prompt));
    text += quantile_line("tokens a prompt", json["prompt_tokens"]);
  }
  print_result(command, json, text);
}

void add_stats(CLI::App& data) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App* command = data.add_subcommand("stats", "count queries, ids, prompts, answers and lengths");
  command->add_option("--in", options->in, "JSONL or parquet file; - is standard input (JSONL)")
      ->required()
      ->transform(or_standard_input());
  add_prompt_options(*command, options->prompt);
  command->footer("Example:\n  ropd data stats --in queries.jsonl --model models/Qwen3-0.6B");
  command->callback([command, options] { run_stats(*command, *options); });
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "prepare, select, order and check sets of queries");
  data->require_subcommand(1);
  data->fallthrough();
  data->footer(kDataExamples);
  add_prepare(*data);
  add_select(*data);
  add_order(*data);
  add_overlap(*data);
  add_stats(*data);
}

}  // namespace ropd::app
