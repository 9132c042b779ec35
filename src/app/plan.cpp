// ropd plan and the body of ropd train --dry-run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "app/plan.h"
#include "app/stage_speeds.h"
#include "base/json.h"
#include "base/log.h"
#include "base/visible_text.h"
#include "train/plan.h"
#include "train/proposals.h"
#include "train/session.h"

namespace ropd::app {
namespace {

Json teacher_json(const train::TeacherPlan& teacher) {
  Json json = {{"streamed", teacher.is_streamed}, {"stored_bytes", teacher.stored_bytes}};
  if (!teacher.is_streamed) return json;
  json["positions"] = teacher.positions;
  json["passes"] = teacher.passes;
  json["read_bytes"] = teacher.read_bytes;
  json["read_seconds"] = teacher.read_seconds;
  return json;
}

Json plan_json(const train::Plan& plan, const std::optional<train::Proposal>& proposal) {
  Json proposed = nullptr;
  if (proposal) {
    proposed = {{"memory_bytes", proposal->plan.memory_bytes}, {"settings", Json::array()}};
    for (const auto& setting : proposal->settings) proposed["settings"].push_back(setting.setting);
  }
  Json memory = Json::object();
  for (const auto& item : plan.memory) memory[train::phase_name(item.phase)][item.name] = item.bytes;
  return {{"iterations", plan.iterations},
          {"C", plan.consumed},
          {"U", plan.steps},
          {"minibatches", plan.minibatches},
          {"curriculum", plan.curriculum},
          {"memory", memory},
          {"teacher", teacher_json(plan.teacher)},
          {"proposal", proposed},
          {"memory_peak", train::phase_name(plan.peak)},
          {"memory_bytes", plan.memory_bytes},
          {"available_bytes", plan.available_bytes},
          {"disk_bytes", plan.disk_bytes},
          {"free_disk_bytes", plan.free_disk_bytes},
          {"checkpoint_bytes", plan.checkpoint_bytes},
          {"flops", plan.flops},
          {"read_bytes_per_second", plan.read_bytes_per_second},
          {"assumed_length", plan.assumed_length},
          {"seconds_per_iteration", plan.seconds_per_iteration},
          {"seconds",
           {{"sampling", plan.seconds.sampling},
            {"scoring by the student", plan.seconds.student},
            {"scoring by the teacher", plan.seconds.teacher},
            {"updates", plan.seconds.updates},
            {"bank", plan.bank_seconds},
            {"measured", plan.is_time_measured}}},
          {"ranks", plan.ranks},
          {"step_bytes", plan.step_bytes}};
}

// Everything that training would refuse, and what the student will read.
void show_start(const train::TrainConfig& config, bool as_json, int ranks) {
  const auto [models, queries] = train::check_start(config, ranks);
  if (as_json) {
    Json start = {{"notes", models.notes},
                  {"queries", queries.queries.size()},
                  {"queries_in_file", queries.num_in_file}};
    if (!queries.queries.empty()) {
      const auto& shown = queries.queries.front();
      start["first_prompt"] = {{"query_id", shown.query.id},
                               {"ids", *shown.prompt},
                               {"text", models.student_renderer->render_text(shown.query)}};
    }
    print_json(start);
    return;
  }
  std::string text;
  for (const std::string& note : models.notes) text += fmt::format("note         {}\n", visible_line(note));
  if (!queries.queries.empty()) {
    const auto& first = queries.queries.front();
    text += fmt::format("queries      {} of {} in {} ({} too long)\n", queries.queries.size(),
                        queries.num_in_file, visible_line(config.data.queries), queries.num_too_long);
    text += fmt::format("template     {}\n", models.student_renderer->chat_template().hash());
    text += fmt::format("first prompt {}, {} ids: {}\n", visible_line(first.query.id), first.prompt->size(),
                        fmt::join(*first.prompt, " "));
    text += models.student_renderer->render_text(first.query) + "\n";
  }
  print_text(text);
}

}  // namespace

void print_plan(const CLI::App& command, const train::TrainConfig& config, bool checks_start,
                const PlanOptions& options) {
  (void)train::assumed_length(config, options.mean_tokens);  // refused before anything is tried
  train::Machine machine{.flops = train::measure_flops(),
                         .read_bytes_per_second = train::measure_teacher_reads(config),
                         .ranks = options.ranks,
                         .mean_tokens = options.mean_tokens};
  if (options.tries_stages) {
    show_live_line("trying the stages of an iteration for some seconds (--guess-time does without) ...");
    machine.speeds = measure_stages(config);
    show_live_line("");
  }
  if (options.memory_gb) machine.memory_bytes = static_cast<uint64_t>(*options.memory_gb * 1e9);
  const auto plan = train::make_plan(config, machine);
  const auto proposal = train::propose(config, machine);
  if (wants_json(command))
    print_json(plan_json(plan, proposal));
  else
    print_text(train::plan_text(plan) + (proposal ? train::proposal_text(*proposal) : ""));
  for (const std::string& warning : train::config_warnings(config)) log_warning(warning);
  if (checks_start) show_start(config, wants_json(command), options.ranks);
  train::check_plan(plan, proposal ? train::proposal_sentence(*proposal) : "");
}

void add_ranks(CLI::App& command, int& ranks) {
  command
      .add_option("--ranks", ranks,
                  "plan for so many processes of mpirun or srun, each on a machine like this")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void add_plan(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    PlanOptions machine;
    bool guesses_time = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plan", "memory, disk and time of a run, before anything is loaded");
  command->add_option("config", options->config, "YAML file of ropd train")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("overrides", options->overrides, "key=value, e.g. rollout.max_response_tokens=4096");
  command
      ->add_option("--memory-gb", options->machine.memory_gb,
                   "plan for a machine with so much free memory instead of this one")
      ->check(number_in("a number above 0 and up to 1e6", [](double x) { return x > 0 && x <= 1e6; }));
  command
      ->add_option("--mean-tokens", options->machine.mean_tokens,
                   "time and disk for responses of so many tokens on average, as a trial "
                   "showed them, instead of a quarter of rollout.max_response_tokens")
      ->check(number_in("a number of at least 1 and up to 1e9", [](double x) { return x >= 1 && x <= 1e9; }));
  command->add_flag("--guess-time", options->guesses_time,
                    "guess the time from the speed of a product instead of trying the stages, which "
                    "takes some seconds");
  add_ranks(*command, options->machine.ranks);
  command->footer(
      "Examples:\n  ropd plan recipes/qwen3-0.6b-ropd.yaml train.microbatch_tokens=4096\n"
      "  ropd plan recipes/qwen3-8b-ropd.yaml --ranks 8 --mean-tokens 3000");
  command->callback([options, command] {
    options->machine.tries_stages = !options->guesses_time;
    print_plan(*command, train::load_train_config(options->config, options->overrides),
               /*checks_start=*/false, options->machine);
  });
}

}  // namespace ropd::app
