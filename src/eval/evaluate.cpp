#include "eval/evaluate.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/sealed_json.h"
#include "base/sha256.h"
#include "eval/responses.h"
#include "eval/summary.h"
#include "io/checked_lines.h"
#include "io/damages.h"
#include "io/durable_folder.h"
#include "rollout/streams.h"
#include "stats/evaluation.h"
#include "stats/scored_responses.h"
#include "text/prompt_renderer.h"

namespace ropd::eval {
namespace {

constexpr std::chrono::milliseconds kSyncInterval{500};

// One request for each missing response; responses to one question share its prompt.
std::vector<rollout::Request> make_requests(const Suite& suite, const std::vector<ResponseId>& missing,
                                            const text::Tokenizer& tokenizer,
                                            const text::ChatTemplate& chat_template,
                                            const RandomStream& stream) {
  std::vector<std::vector<std::vector<Token>>> prompts;  // [benchmarks][questions]
  for (const auto& benchmark : suite.benchmarks) {
    const text::PromptRenderer renderer(
        tokenizer, chat_template, {benchmark.prompt_prefix, benchmark.prompt_suffix, benchmark.thinking});
    prompts.push_back(renderer.render_all(benchmark.questions));
  }
  std::vector<rollout::Request> requests;
  std::shared_ptr<const std::vector<Token>> prompt;
  for (size_t i = 0; i < missing.size(); ++i) {
    const ResponseId id = missing[i];
    const bool is_same =
        i > 0 && missing[i - 1].benchmark == id.benchmark && missing[i - 1].question == id.question;
    if (!is_same)
      prompt = std::make_shared<const std::vector<Token>>(std::move(prompts[id.benchmark][id.question]));
    const auto& benchmark = suite.benchmarks[id.benchmark];
    const auto& question = benchmark.questions[id.question];
    requests.push_back(
        {question.id, id.sample, prompt, rollout::benchmark_stream(stream, benchmark.name), question.answer});
  }
  return requests;
}

RandomStream stream_of(const rollout::Generator& generator, const Suite& suite,
                       const GenerationOrigin& origin) {
  return rollout::evaluation_stream(origin.seed, suite.name, generator.config().max_response_tokens);
}

constexpr const char* kResponses = "responses_sha256";  // of the finished file

// Names of people's labels are not part of what must agree.
bool is_compared(const std::string& key) {
  return key != "model" && key != "suite" && key != "suite_file" && key != "data";
}

// A path need not be UTF-8; those in the record are there for people.
void write_record(const Path& directory, const Json& record) {
  write_file_atomically(directory / "generation.json",
                        sealed(record).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// What generation.json of an evaluation says; written into a new folder. In an old one, fails unless it says
// the same as `record`.
Json check_record(const Path& directory, const Json& record) {
  const Path path = directory / "generation.json";
  if (!std::filesystem::exists(path)) {
    if (std::filesystem::exists(directory / "responses.jsonl") &&
        std::filesystem::file_size(directory / "responses.jsonl") > 0)
      fail(directory.string(),
           ": holds responses.jsonl without generation.json, so their origin is not known (--rescore scores "
           "them; ",
           "use another --out to generate)");
    write_record(directory, record);
    return record;
  }
  const Json found = read_generation_record(directory);
  for (const auto& [key, value] : found.items())
    if (is_compared(key) && key != kResponses && !record.contains(key))
      fail(path.string(), ": unknown field '", key, "' (edited, damaged, or of another version)");
  for (const auto& [key, value] : record.items())
    if (is_compared(key) && found.value(key, Json()) != value)
      fail(path.string(), ": ", key, " is ", found.value(key, Json()).dump(), ", this evaluation has ",
           value.dump(),
           " (responses of another model, suite or setting; --overwrite samples anew, or choose another "
           "--out)");
  return found;
}

// Whether lines still have their checksums. Any of them tells: the first may be what a power cut has left, and a
// finished file has none, however damaged it is.
bool is_unfinished(const Path& responses) {
  const MappedFile file(responses);
  for (std::string_view rest = file.text(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (io::checked_row(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// Puts all responses into request order. Their hash is written first: a finished file without it could be
// changed unnoticed.
void finish(const Path& directory, const Suite& suite, Json record) {
  const Path path = directory / "responses.jsonl";
  const ResponseFile file(path, suite);
  AtomicFile sorted(path);
  Sha256 hash;
  for_each_finished_line(file, suite, [&](std::string_view line) {
    for (const std::string_view part : {line, std::string_view("\n")}) {
      sorted.write(part);
      hash.add(part);
    }
  });
  record[kResponses] = hash.hexadecimal();
  write_record(directory, record);
  sorted.commit();
}

}  // namespace

Json read_generation_record(const Path& directory) {
  const Path path = directory / "generation.json";
  if (!std::filesystem::exists(path)) return nullptr;
  Json record = parse_json(read_file(path, 1 << 20), path.string());
  if (!record.is_object()) fail(path.string(), ": expected a JSON object, got ", record.type_name());
  return unsealed(std::move(record), path.string());
}

void check_generated(const Path& directory) {
  const Json record = read_generation_record(directory);
  const Path path = directory / "responses.jsonl";
  if (!record.is_object() || !record.contains(kResponses) || !std::filesystem::exists(path)) return;
  // A kill between the hash and the file in its place.
  if (is_unfinished(path)) return;
  const Json& hash = record.at(kResponses);
  if (!hash.is_string())
    fail((directory / "generation.json").string(), ": ", kResponses, " is ", hash.dump().substr(0, 60),
         ", expected a text (edited or damaged)");
  stats::check_responses(directory, hash.get<std::string>());
}

std::vector<std::string> evaluation_damages(const Path& directory) {
  std::vector<std::string> damages;
  io::finds_whole(damages, [&] { check_generated(directory); });
  io::finds_whole(damages, [&] {
    if (std::filesystem::exists(directory / "summary.json")) (void)stats::read_summary(directory);
  });
  return damages;
}

Json generation_record(const rollout::Generator& generator, const Suite& suite,
                       const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
                       const GenerationOrigin& origin) {
  const auto& sampling = generator.config().sampling;
  Json record = {{"suite", suite.name},
                 {"suite_fingerprint", suite.fingerprint},
                 {"model", origin.model},
                 {"model_fingerprint", origin.model_fingerprint},
                 {"policy_step", generator.policy_step()},
                 {"tokenizer_fingerprint", tokenizer.fingerprint()},
                 {"template_hash", chat_template.hash()},
                 {"max_tokens", generator.config().max_response_tokens},
                 {"temperature", sampling.temperature},
                 {"top_p", sampling.top_p},
                 {"top_k", sampling.top_k},
                 {"greedy", sampling.greedy},
                 {"seed", origin.seed},
                 {"stream", stream_of(generator, suite, origin).name},
                 {"precision", name_of(generator.precision())}};
  if (!origin.suite_file.empty()) record.update({{"suite_file", origin.suite_file}, {"data", origin.data}});
  return record;
}

GenerationResult generate_responses(rollout::Generator& generator, const Suite& suite,
                                    const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
                                    const Path& directory, const GenerationOrigin& origin,
                                    const std::function<void()>& check) {
  const Path path = directory / "responses.jsonl";
  io::make_durable_folder(directory);
  const Json record =
      check_record(directory, generation_record(generator, suite, tokenizer, chat_template, origin));
  check_generated(directory);
  GenerationResult result;
  std::vector<ResponseId> missing;
  std::optional<AppendFile> file;  // cuts a torn last line off; nobody else writes while we read
  if (std::filesystem::exists(path)) file.emplace(path);
  {
    const ResponseFile present(path, suite);
    missing = present.missing();
    result.num_kept = present.num_present();
    if (present.num_broken() > 0)
      log_warning(path.string(), ": ", present.num_broken(),
                  " lines do not fit their checksums; their responses are sampled again");
  }
  result.is_finished = missing.empty();
  if (result.num_kept > 0)
    log_info(path.string(), ": ", result.num_kept, " of ", suite.num_responses(), " responses are there",
             missing.empty() ? "" : ", going on with the others");
  if (missing.empty()) {
    if (!record.contains(kResponses) || is_unfinished(path))
      finish(directory, suite, record);  // a kill came first
    return result;
  }
  const auto requests =
      make_requests(suite, missing, tokenizer, chat_template, stream_of(generator, suite, origin));
  generator.check(requests);
  if (!file) file.emplace(path);
  Progress progress("responses", requests.size(), "tok");
  auto last_sync = std::chrono::steady_clock::now();
  uint64_t num_durable = 0;
  rollout::RunHooks hooks;
  hooks.on_done = [&](size_t index, Rollout&& rollout) {
    if (check) check();
    rollout.text = tokenizer.decode(rollout.response_ids);
    file->append_unsynced(
        io::with_checksum(response_line(rollout, suite.benchmarks[missing[index].benchmark].name)));
  };
  hooks.on_step = [&](const rollout::RunSummary& so_far) {
    const auto now = std::chrono::steady_clock::now();
    if (so_far.num_done > num_durable && now - last_sync >= kSyncInterval) {
      file->sync();
      last_sync = now;
      num_durable = so_far.num_done;
    }
    progress.update(so_far.num_done, so_far.num_tokens, so_far.note());
  };
  result.run = generator.run(requests, hooks);
  file->sync();
  progress.update(result.run.num_done, result.run.num_tokens, result.run.note());
  result.is_finished = !result.run.was_stopped;
  if (result.is_finished) finish(directory, suite, record);
  return result;
}

void write_evaluation(const Path& directory, const Evaluation& evaluation, const Json& about) {
  std::string markdown;
  for (const stats::Table& table : summary_tables(evaluation))
    markdown += (markdown.empty() ? "" : "\n") + stats::to_markdown(table);
  write_file_atomically(directory / "summary.md", markdown);
  write_file_atomically(directory / "summary.json", sealed(summary_json(evaluation, about)).dump(1) + "\n");
}

}  // namespace ropd::eval
