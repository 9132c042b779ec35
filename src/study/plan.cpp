#include "study/plan.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "base/error.h"
#include "eval/suite.h"
#include "io/input_ledger.h"
#include "io/metrics_file.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "model/weights.h"
#include "rollout/fingerprint.h"

namespace ropd::study {
namespace {

bool draws_on_initial(const Source& source) {
  return source.kind == SourceKind::initial ||
         std::any_of(source.of.begin(), source.of.end(), draws_on_initial);
}

class Planner {
 public:
  Planner(const StudyFile& file, const std::vector<Run>& runs, InputCatalog& inputs, const Store& store)
      : study_(file.config), runs_(runs), inputs_(inputs), store_(store) {}

  Plan make() {
    plan_.runs.resize(runs_.size());
    std::vector<bool> is_known(runs_.size(), false);
    for (size_t r = 0; r < runs_.size(); ++r) follow(r, is_known);
    std::vector<RunPath> paths;
    for (size_t r = 0; r < runs_.size(); ++r)
      if (plan_.runs[r].is_complete) paths.push_back(path_of(r, wanted_of(r)));
    // A run that waits for its trigger goes on by one iteration, unless another run passes there anyway.
    std::vector<RunPath> waiting;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const RunProgress& run = plan_.runs[r];
      if (run.is_complete || run.states.empty()) continue;
      const uint64_t next = num_done(r) + 1;
      if (next < run.states.size() && !is_on_a_path(paths, run.states[next]))
        waiting.push_back(path_of(r, {next}));
    }
    paths.insert(paths.end(), waiting.begin(), waiting.end());
    plan_.graph.nodes = training_nodes(paths);
    for (size_t e = 0; e < study_.evaluations.size(); ++e) add_evaluation(e);
    for (size_t d = 0; d < study_.diagnoses.size(); ++d) add_diagnosis(d);
    plan_.graph.check();
    return std::move(plan_);
  }

 private:
  const StudyConfig& study_;
  const std::vector<Run>& runs_;
  InputCatalog& inputs_;
  const Store& store_;
  Plan plan_;

  // Sources and states of a run, and tau where the folder's runs tell it.
  void follow(size_t r, std::vector<bool>& is_known) {
    if (is_known[r]) return;
    is_known[r] = true;
    const Run& run = runs_[r];
    const Inputs inputs = inputs_.of(run.config);
    std::string first;
    if (run.from) {
      follow(*run.from, is_known);
      const auto& states = plan_.runs[*run.from].states;
      const uint64_t iteration = study_.methods[run.method].from->iteration;
      if (!plan_.runs[*run.from].is_complete || iteration >= states.size()) return;  // known later
      first = continued_state(run.config, inputs, states[iteration]);
    } else {
      first = initial_state(run.config, inputs);
    }
    RunProgress& progress = plan_.runs[r];
    set_sources(progress, run.config, inputs, first, std::nullopt);
    if (progress.is_complete) return;
    const uint64_t done = num_done(r);
    if (done == 0) return;
    const Path folder = store_.find_history(progress.states[done])->run, metrics = folder / "metrics.jsonl";
    if (const auto damage = io::metrics_damage(metrics, io::list_checkpoints(folder / "checkpoints"));
        !damage.empty())  // tau depends on it
      fail(damage, "; `ropd resume ", folder.string(), "` brings it back");
    auto records = io::read_metrics(metrics).iterations;
    records.resize(std::min<size_t>(records.size(), done));
    progress.tau = find_tau(records, run.config);
    if (progress.tau)
      set_sources(progress, run.config, inputs, first, progress.tau);
    else if (done == run.config.train.iterations)
      progress.is_complete = true;  // no trigger to the end
  }

  static void set_sources(RunProgress& progress, const train::TrainConfig& config, const Inputs& inputs,
                          const std::string& first, std::optional<uint64_t> tau) {
    auto known = known_sources(config, tau);
    progress.is_complete = known.is_complete;
    progress.sources = std::move(known.sources);
    progress.states = {first};
    for (const Source& source : progress.sources)
      progress.states.push_back(next_state(progress.states.back(), source, config, inputs));
  }

  // Iterations of a run whose record the folder has.
  uint64_t num_done(size_t r) const {
    const auto& states = plan_.runs[r].states;
    for (size_t k = states.size(); k-- > 1;)
      if (store_.find_history(states[k])) return k;
    return 0;
  }

  static bool is_on_a_path(const std::vector<RunPath>& paths, const std::string& state) {
    for (const RunPath& path : paths)
      for (uint64_t k = 1; k <= path.wanted.back(); ++k)
        if (path.states[k] == state) return true;
    return false;
  }

  std::vector<uint64_t> wanted_of(size_t r) const {
    const uint64_t last = runs_[r].config.train.iterations;
    std::set<uint64_t> wanted = {last};
    for (const EvaluationConfig& evaluation : study_.evaluations)
      if (is_evaluated(evaluation, r))
        for (const uint64_t k : evaluation.iterations) wanted.insert(checked(k, r, evaluation.name));
    for (const Method& method : study_.methods)
      if (method.from && method.from->method == study_.methods[runs_[r].method].name)
        wanted.insert(method.from->iteration);
    for (const DiagnosisConfig& diagnosis : study_.diagnoses)
      for (const auto* states : {&diagnosis.sources, &diagnosis.students})
        for (const StateConfig& state : *states)
          if (state.method == study_.methods[runs_[r].method].name)
            wanted.insert(checked(state.iteration.value_or(last), r, diagnosis.name));
    return {wanted.begin(), wanted.end()};
  }

  uint64_t checked(uint64_t iteration, size_t r, const std::string& what) const {
    if (iteration == 0 || iteration > runs_[r].config.train.iterations)
      fail("study: ", what, " asks for iteration ", iteration, " of ", runs_[r].label, ", which has ",
           runs_[r].config.train.iterations);
    return iteration;
  }

  bool is_evaluated(const EvaluationConfig& evaluation, size_t r) const {
    const auto& names = evaluation.methods;
    return names.empty() ||
           std::find(names.begin(), names.end(), study_.methods[runs_[r].method].name) != names.end();
  }

  RunPath path_of(size_t r, std::vector<uint64_t> wanted) const {
    const RunProgress& progress = plan_.runs[r];
    RunPath path{.run = r, .label = runs_[r].label, .states = progress.states, .wanted = std::move(wanted)};
    for (uint64_t k = 1; k <= progress.sources.size(); ++k)
      if (draws_on_initial(progress.sources[k - 1])) path.bank_iterations.push_back(k);
    if (!path.bank_iterations.empty())
      path.bank = initial_bank_identity(runs_[r].config, inputs_.of(runs_[r].config));
    if (runs_[r].from)
      path.from = plan_.runs[*runs_[r].from].states[study_.methods[runs_[r].method].from->iteration];
    return path;
  }

  void add(Node node) {
    if (!plan_.graph.find(node.id)) plan_.graph.nodes.push_back(std::move(node));
  }

  void add_evaluation(size_t e) {
    const EvaluationConfig& evaluation = study_.evaluations[e];
    const std::string suite = inputs_.suite(evaluation);
    const auto plan_one = [&](const std::string& state, PlannedEvaluation planned, Node node) {
      std::vector<std::string> parts = {"evaluation",
                                        arithmetic_version(runs_[node.run].config),
                                        state,
                                        suite,
                                        std::to_string(evaluation.max_tokens),
                                        std::to_string(evaluation.seed),
                                        std::string(enum_text(evaluation.precision))};
      for (const uint64_t budget : evaluation.budgets) parts.push_back(std::to_string(budget));
      planned.id = node.id = identity_of(parts);
      node.kind = NodeKind::evaluation;
      node.item = planned.evaluation = e;
      plan_.evaluations.push_back(planned);
      add(std::move(node));
    };
    if (evaluation.models) {
      const Inputs inputs = inputs_.of(runs_[0].config);
      plan_one(inputs.student, {}, {.label = evaluation.name + " of the initial student"});
      plan_one(inputs.teacher, {.is_teacher = true},
               {.label = evaluation.name + " of the teacher", .is_teacher = true});
    }
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (!is_evaluated(evaluation, r) || !plan_.runs[r].is_complete) continue;
      auto iterations = evaluation.iterations;
      if (iterations.empty()) iterations.push_back(runs_[r].config.train.iterations);
      for (const uint64_t k : iterations) {
        const std::string& state = plan_.runs[r].states[k];
        plan_one(
            state, {.run = r, .iteration = k},
            {.label = evaluation.name + " of " + runs_[r].label + " behind iteration " + std::to_string(k),
             .needs = {state},
             .run = r,
             .iteration = k,
             .state = state});
      }
    }
  }

  // The run of a method at the axis values of another run.
  size_t run_at(const std::string& method, const Run& place) const {
    for (size_t r = 0; r < runs_.size(); ++r)
      if (study_.methods[runs_[r].method].name == method && runs_[r].values == place.values) return r;
    fail("study: no run of ", method);  // names were checked
  }

  struct StateAt {
    std::optional<std::string> state;  // none: the initial student
    size_t run = 0;
    uint64_t iteration = 0;
  };
  // Nothing when it is not known yet.
  std::optional<StateAt> state_at(const StateConfig& wanted, size_t place) const {
    if (wanted.method.empty()) return StateAt{.run = place};
    const size_t r = run_at(wanted.method, runs_[place]);
    if (!plan_.runs[r].is_complete) return std::nullopt;
    const uint64_t k = wanted.iteration.value_or(runs_[r].config.train.iterations);
    return StateAt{plan_.runs[r].states[k], r, k};
  }

  std::string content_of(const StateAt& at) {
    return at.state ? *at.state : inputs_.of(runs_[at.run].config).student;
  }

  void add_diagnosis(size_t d) {
    const DiagnosisConfig& diagnosis = study_.diagnoses[d];
    for (size_t place = 0; place < runs_.size() && runs_[place].method == 0; ++place)
      for (size_t j = 0; j < diagnosis.sources.size(); ++j) {
        const auto source = state_at(diagnosis.sources[j], place);
        if (!source) continue;
        Node prefixes = prefixes_node(diagnosis, diagnosis.sources[j].name, *source);
        prefixes.item = d;
        prefixes.source = j;
        const std::string prefixes_id = prefixes.id;
        add(std::move(prefixes));
        for (size_t i = 0; i < diagnosis.students.size(); ++i) {
          const auto student = state_at(diagnosis.students[i], place),
                     reference = state_at(diagnosis.students[0], place);
          if (!student || !reference) continue;
          Node node{.kind = NodeKind::diagnosis,
                    .label = diagnosis.name + ": " + diagnosis.students[i].name + " on prefixes of " +
                             diagnosis.sources[j].name + ", " + runs_[place].label,
                    .needs = {prefixes_id},
                    .run = student->run,
                    .iteration = student->iteration,
                    .state = student->state,
                    .item = d,
                    .source = j,
                    .student = i};
          for (const auto* at : {&*student, &*reference})
            if (at->state && std::find(node.needs.begin(), node.needs.end(), *at->state) == node.needs.end())
              node.needs.push_back(*at->state);
          node.reference = reference->state;
          node.prefixes = prefixes_id;
          node.id = identity_of({"diagnosis", content_of(*student), content_of(*reference),
                                 inputs_.of(runs_[student->run].config).teacher, prefixes_id,
                                 std::to_string(diagnosis.positions), std::to_string(diagnosis.seed),
                                 probes_text(diagnosis)});
          plan_.diagnoses.push_back({d, j, i, place, node.id});
          add(std::move(node));
        }
      }
  }

  static std::string probes_text(const DiagnosisConfig& diagnosis) {
    return diagnosis.probes ? write_value(config_detail::to_node(*diagnosis.probes)) : "";
  }

  Node prefixes_node(const DiagnosisConfig& diagnosis, const std::string& name, const StateAt& source) {
    const train::TrainConfig config = prompts_of(runs_[source.run], diagnosis);
    Node node{
        .kind = NodeKind::prefixes,
        .label = "diagnostic responses of " + (source.state ? runs_[source.run].label + " behind iteration " +
                                                                  std::to_string(source.iteration)
                                                            : std::string("the initial student")),
        .run = source.run,
        .iteration = source.iteration,
        .state = source.state};
    if (source.state) node.needs.push_back(*source.state);
    std::vector<std::string> parts = {"prefixes",
                                      arithmetic_version(config),
                                      name,  // of its stream of random numbers
                                      content_of(source),
                                      inputs_.of(config).queries,
                                      std::to_string(diagnosis.samples),
                                      std::to_string(diagnosis.seed)};
    for (const std::string& setting : influential_settings(config))
      if ((setting.starts_with("data.") && !setting.starts_with("data.order_seed")) ||
          setting.starts_with("rollout."))
        parts.push_back(setting);
    node.id = identity_of(parts);
    return node;
  }
};

}  // namespace

bool Plan::is_complete() const {
  return std::all_of(runs.begin(), runs.end(), [](const RunProgress& run) { return run.is_complete; });
}

Inputs InputCatalog::of(const train::TrainConfig& config) {
  std::string student = model(config.student, config.student_base);
  if (config.adapter && config.adapter->path) {
    std::vector<std::string> parts = {student};
    for (const io::InputFile& part : io::own_model_files(io::find_model(*config.adapter->path)))
      parts.push_back(file(part.path.string()));
    student = identity_of(parts);
  }
  Inputs inputs{.student = student,
                .teacher = model(config.teacher, config.teacher_base),
                .queries = config.data.queries.empty() ? "" : file(config.data.queries)};
  auto curriculum = config.curriculum;
  train::visit_bank_paths(curriculum, [&](const std::string& path) { inputs.banks[path] = file(path); });
  return inputs;
}

std::string InputCatalog::model(const std::string& path, const std::string& given_base) {
  auto [place, is_new] = known_.try_emplace("model " + path + " on " + given_base);
  if (!is_new) return place->second;
  std::vector<std::string> parts;
  const Path base = io::base_of(path, given_base);
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "chat_template.jinja"})
    if (std::filesystem::exists(base / name)) parts.push_back(sha256_file(base / name));
  if (parts.empty()) fail(path, ": holds no config.json, expected a model directory");
  // Folders without weights serve dry runs.
  if (std::filesystem::exists(base / "model.safetensors") ||
      std::filesystem::exists(base / "model.safetensors.index.json"))
    parts.push_back(rollout::weights_fingerprint(
        model::map_weights(std::make_shared<const io::ModelDirectory>(path, given_base))));
  return place->second = identity_of(parts);
}

std::string InputCatalog::file(const std::string& path) {
  auto [place, is_new] = known_.try_emplace("file " + path);
  if (is_new) place->second = std::filesystem::exists(path) ? sha256_file(path) : "absent " + path;
  return place->second;
}

std::string InputCatalog::suite(const EvaluationConfig& evaluation) {
  auto [place, is_new] = known_.try_emplace("suite " + evaluation.suite + " " + evaluation.data);
  if (is_new)
    place->second = std::filesystem::is_directory(evaluation.data)
                        ? eval::load_suite(evaluation.suite, evaluation.data).fingerprint
                        : "absent " + evaluation.suite + " " + evaluation.data;
  return place->second;
}

Plan make_plan(const StudyFile& file, const std::vector<Run>& runs, InputCatalog& inputs,
               const Store& store) {
  return Planner(file, runs, inputs, store).make();
}

}  // namespace ropd::study
