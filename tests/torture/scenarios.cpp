#include "torture/scenarios.h"

#include <ropd_source_directory.h>

#include <filesystem>

#include "base/error.h"
#include "io/checkpoint.h"
#include "torture/traced_program.h"

namespace ropd::torture {

namespace fs = std::filesystem;

namespace {

bool is_run_result(const std::string& inside) {
  return inside.ends_with(".safetensors") || inside.ends_with("banks/initial.jsonl");
}

bool is_rollout(const std::string& inside) {
  return inside.find("rollouts/iter-") != std::string::npos && inside.ends_with(".jsonl") &&
         inside.find(".partial.") == std::string::npos;
}

bool is_study_result(const std::string& inside) {
  return inside.ends_with("/model.safetensors") || inside.ends_with("responses.jsonl") ||
         inside.ends_with("/states.json") || inside.find("diagnoses/") != std::string::npos;
}

// Inside of a checkpoint that is not the newest of its run.
bool is_older_checkpoint(const Path& path) {
  for (Path folder = path.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (folder.parent_path().filename() != "checkpoints") continue;
    const auto all = io::list_checkpoints(folder.parent_path());
    return all.empty() || all.back().path != folder;
  }
  return false;
}

}  // namespace

Tree results_of(const Scenario& scenario, bool with_records) {
  Tree results;
  for (const auto& [inside, entry] : read_tree(scenario.folder)) {
    const bool is_wanted =
        scenario.is_result(inside) || (with_records && scenario.is_record && scenario.is_record(inside));
    if (entry.kind == TreeEntry::Kind::file && is_wanted && !is_older_checkpoint(scenario.folder / inside))
      results[inside] = entry;
  }
  return results;
}

std::string difference(const Tree& found, const Tree& expected) {
  for (const auto& [name, entry] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) return name + ": missing";
    if (!(other->second == entry)) return name + ": another content";
  }
  for (const auto& [name, entry] : found)
    if (!expected.contains(name)) return name + ": not expected";
  return "";
}

Scenarios::Scenarios(std::string program) : program_(std::move(program)) {
  write_file_atomically(world_.path("suite.yaml"),
                        "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                        "  - {name: first, file: queries.jsonl, samples: 2}\n");
  add_train();
  add_resume();
  add_branch();
  add_sft();
  add_generate();
  add_score();
  add_eval();
  add_diagnose();
  add_study();
  add_lab();
}

Path Scenarios::new_folder(const std::string& name) const {
  const Path folder = world_.path("work-" + name);
  fs::create_directory(folder);
  return folder;
}

Command Scenarios::with_program(std::vector<std::string> words) const {
  words.insert(words.begin(), program_);
  words.insert(words.end(), {"--threads", "1", "--quiet"});
  return words;
}

void Scenarios::run(const Command& command) const {
  const ProgramEnd end = StartedProgram(command, world_.path("log")).wait();
  if (end.exit_code != 0) fail(command[1], " of the set-up failed: ", end.err);
}

std::vector<Path> Scenarios::model_inputs() const {
  std::vector<Path> files;
  for (const char* model : {"student", "teacher"})
    for (const char* file : {"model.safetensors", "config.json", "tokenizer.json"})
      files.push_back(world_.path(model) / file);
  return files;
}

void Scenarios::add_train() {
  Scenario s{.name = "train", .folder = new_folder("train")};
  const Path run = s.folder / "run";
  write_file_atomically(
      world_.path("train.yaml"),
      config_to_yaml(world_.config("work-train/run",
                                   {"train.iterations=3", "checkpoint.keep=2", "trigger.persistence=1"})));
  s.command = with_program({"train", world_.path("train.yaml").string()});
  s.go_on = [this, run, begin = s.command] {
    return fs::exists(run / "config.yaml") ? with_program({"resume", run.string()}) : begin;
  };
  s.is_result = is_run_result;
  s.is_record = is_rollout;
  s.inputs = model_inputs();
  s.inputs.push_back(world_.path("queries.jsonl"));
  s.verify = with_program({"verify", run.string()});
  all_.push_back(std::move(s));
}

// A finished run that goes on for longer than it was meant to.
void Scenarios::add_resume() {
  Scenario s{.name = "resume", .folder = new_folder("resume")};
  const Path run = s.folder / "run";
  write_file_atomically(
      world_.path("resume.yaml"),
      config_to_yaml(world_.config(
          "work-resume/run", {"train.iterations=2", "checkpoint.keep=2",
                              "curriculum.stages=[{source: current, iterations: 1}, {source: initial}]"})));
  this->run(with_program({"train", world_.path("resume.yaml").string()}));
  s.start = read_tree(s.folder);
  s.command = with_program({"resume", run.string(), "train.iterations=3"});
  s.go_on = [command = s.command] { return command; };
  s.is_result = is_run_result;
  s.is_record = is_rollout;
  s.inputs = model_inputs();
  s.inputs.push_back(world_.path("queries.jsonl"));
  s.verify = with_program({"verify", run.string()});
  all_.push_back(std::move(s));
}

// The run that it begins with lies in the folder too, so that damages meet it.
void Scenarios::add_branch() {
  Scenario s{.name = "branch", .folder = new_folder("branch")};
  const auto write_config = [&](const char* file, const char* output, const char* iterations,
                                const char* stages) {
    write_file_atomically(world_.path(file),
                          config_to_yaml(world_.config(output, {iterations, stages, "checkpoint.keep=0"})));
    return world_.path(file).string();
  };
  run(with_program({"train", write_config("parent.yaml", "work-branch/parent", "train.iterations=2",
                                          "curriculum.stages=[{source: current}]")}));
  s.start = read_tree(s.folder);
  s.command =
      with_program({"branch", (s.folder / "parent").string(), "3",
                    write_config("branch.yaml", "work-branch/run", "train.iterations=2",
                                 "curriculum.stages=[{source: current, iterations: 1}, {source: initial}]")});
  s.go_on = [command = s.command] { return command; };
  s.is_result = [](const std::string& inside) { return inside.starts_with("run/") && is_run_result(inside); };
  s.is_record = [](const std::string& inside) { return inside.starts_with("run/") && is_rollout(inside); };
  s.inputs = model_inputs();
  s.inputs.push_back(world_.path("queries.jsonl"));
  s.verify = with_program({"verify", (s.folder / "run").string()});
  s.middle = 0.25;  // while it takes over what the other run has
  all_.push_back(std::move(s));
}

void Scenarios::add_sft() {
  Scenario s{.name = "sft", .folder = new_folder("sft")};
  std::string pairs;
  for (int i = 0; i < 12; ++i)
    pairs += "{\"prompt\": \"ab" + std::to_string(i) + "\", \"response\": \"cd" + std::to_string(i) + "\"}\n";
  write_file_atomically(world_.path("pairs.jsonl"), pairs);
  write_file_atomically(world_.path("sft.yaml"),
                        "model: " + world_.path("student").string() + "\ndata: " +
                            world_.path("pairs.jsonl").string() + "\noutput: " + (s.folder / "run").string() +
                            "\nsteps: 6\nbatch_tokens: 24\ncheckpoint_every: 2\nlearning_rate: 0.001\n");
  s.command = with_program({"sft", world_.path("sft.yaml").string()});
  s.go_on = [command = s.command] { return command; };
  s.is_result = [](const std::string& inside) { return inside == "run/model/model.safetensors"; };
  s.inputs = {world_.path("student") / "model.safetensors", world_.path("student") / "tokenizer.json",
              world_.path("pairs.jsonl")};
  s.verify = with_program({"verify", (s.folder / "run").string()});
  all_.push_back(std::move(s));
}

void Scenarios::add_generate() {
  Scenario s{.name = "generate", .folder = new_folder("generate")};
  s.command = with_program({"generate", "--model", world_.path("student").string(), "--prompts",
                            world_.path("queries.jsonl").string(), "--n", "3", "--max-tokens", "8",
                            "--precision", "f32", "--out", (s.folder / "out.jsonl").string()});
  s.go_on = [command = s.command] { return command; };
  s.is_result = [](const std::string& inside) { return inside == "out.jsonl"; };
  s.inputs = {world_.path("student") / "model.safetensors", world_.path("queries.jsonl")};
  s.verify = with_program({"verify", (s.folder / "out.jsonl").string()});
  all_.push_back(std::move(s));
}

void Scenarios::add_score() {
  Scenario s{.name = "score", .folder = new_folder("score")};
  const Path out = s.folder / "scores.jsonl";
  const Path bank = world_.write_bank("bank.jsonl", test::random_rollouts(12, 37, 5));
  s.command = with_program({"score", "--model", world_.path("student").string(), "--teacher",
                            world_.path("teacher").string(), "--rollouts", bank.string(), "--top-k", "4",
                            "--batch-tokens", "16", "--out", out.string()});
  s.go_on = [out, command = s.command] { return fs::exists(out) ? Command() : command; };
  s.is_result = [](const std::string& inside) { return inside == "scores.jsonl"; };
  s.inputs = {world_.path("student") / "model.safetensors", world_.path("teacher") / "model.safetensors",
              bank};
  all_.push_back(std::move(s));
}

void Scenarios::add_eval() {
  Scenario s{.name = "eval", .folder = new_folder("eval")};
  s.command =
      with_program({"eval", "--model", world_.path("student").string(), "--suite",
                    world_.path("suite.yaml").string(), "--data", world_.path("").string(), "--max-tokens",
                    "8", "--budgets", "4,8", "--precision", "f32", "--out", (s.folder / "eval").string()});
  s.go_on = [command = s.command] { return command; };
  s.is_result = [](const std::string& inside) {
    return inside == "eval/responses.jsonl" || inside == "eval/summary.json";
  };
  s.inputs = {world_.path("student") / "model.safetensors", world_.path("queries.jsonl"),
              world_.path("suite.yaml")};
  all_.push_back(std::move(s));
}

void Scenarios::add_diagnose() {
  Scenario s{.name = "diagnose", .folder = new_folder("diagnose")};
  const Path out = s.folder / "diagnosis";
  const Path prefixes = world_.path("prefixes.jsonl");
  run(with_program({"generate", "--model", world_.path("student").string(), "--prompts",
                    world_.path("queries.jsonl").string(), "--max-tokens", "8", "--precision", "f32", "--out",
                    prefixes.string()}));
  write_file_atomically(world_.path("diagnose.yaml"),
                        "teacher: " + world_.path("teacher").string() + "\noutput: " + out.string() +
                            "\nstudents: [{name: student, model: " + world_.path("student").string() +
                            "}]\nsources: [{name: own, rollouts: " + prefixes.string() +
                            "}]\npositions: 3\nsamples: 1\nprobes: {trajectories: 4, minibatch: 2, "
                            "coordinates: 2, top_k: 4}\n");
  s.command = with_program({"diagnose", "--config", world_.path("diagnose.yaml").string()});
  s.go_on = [out, command = s.command] { return fs::exists(out / "diagnosis.json") ? Command() : command; };
  s.is_result = [](const std::string& inside) {
    return inside == "diagnosis/diagnosis.json" || inside == "diagnosis/samples.jsonl";
  };
  s.inputs = {prefixes};  // models are read anew: nothing of it was there before
  all_.push_back(std::move(s));
}

void Scenarios::add_study() {
  Scenario s{.name = "study", .folder = new_folder("study")};
  write_file_atomically(world_.path("base.yaml"), config_to_yaml(world_.config("unused")));
  write_file_atomically(
      world_.path("study.yaml"),
      "name: tiny\nbase: base.yaml\noutput: " + (s.folder / "study").string() +
          "\nset: [train.iterations=2]\nmethods:\n  - {name: current, stages: [{source: current}]}\n"
          "  - {name: fixed, stages: [{source: current, iterations: 1}, {source: initial}]}\n"
          "evaluations:\n  - {name: tiny, suite: " +
          world_.path("suite.yaml").string() + ", data: " + world_.path("").string() +
          ", max_tokens: 8, budgets: [4, 8], precision: f32, models: true}\n"
          "diagnoses:\n  - {name: own, samples: 1, positions: 2, sources: [{name: initial}], "
          "students: [{name: initial}, {name: current, method: current}]}\n");
  s.command = with_program({"study", world_.path("study.yaml").string()});
  s.go_on = [command = s.command] { return command; };
  s.is_result = is_study_result;
  s.rests = [](const std::string& inside) { return inside.find("/checkpoints/") != std::string::npos; };
  s.inputs = model_inputs();
  all_.push_back(std::move(s));
}

void Scenarios::add_lab() {
  Scenario s{.name = "lab", .folder = new_folder("lab"), .is_long = true};
  s.command = {program_,
               "lab",
               "--fast",
               "--responses",
               "32",
               "--models",
               ROPD_SOURCE_DIR "/lab/models",
               "--out",
               (s.folder / "lab").string(),
               "--quiet"};
  s.go_on = [command = s.command] { return command; };
  s.is_result = is_study_result;
  all_.push_back(std::move(s));
}

}  // namespace ropd::torture
