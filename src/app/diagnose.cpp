// ropd diagnose: students on fixed prefixes of several sources (method.md section 10): KL matrix with its
// decomposition and concentration, change of prefix likelihood, gradient probes.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "app/commands.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/bytes.h"
#include "base/config_fields.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/stop.h"
#include "comm/agreement.h"
#include "comm/lots.h"
#include "diagnostics/fit_and_shift.h"
#include "diagnostics/prefixes.h"
#include "diagnostics/probes.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "io/rollout_file.h"
#include "stats/answer_metrics.h"
#include "train/run_parts.h"

namespace ropd::app {
namespace {

constexpr const char* kExamples =
    R"(The configuration names the teacher, the students that are scored and the sources of fixed prefixes, each a file of responses
made by `ropd generate` for this purpose (eight a query in the paper, not the training bank):
  teacher: models/Qwen3-4B
  output: runs/diagnosis
  students: [{name: theta0, model: models/Qwen3-0.6B}, {name: R20, model: runs/a/checkpoints/step-000020}]
  sources: [{name: theta0, rollouts: theta0.jsonl}, {name: R20, rollouts: r20.jsonl}]
  positions: 32
  probes: {trajectories: 128, minibatch: 8, coordinates: 16}
Results: OUTPUT/diagnosis.json, and tables on the console.
Example:
  ropd diagnose --config diagnosis.yaml probes.trajectories=32)";

struct StudentConfig {
  std::string name, model;
  void fields(auto&& field) {
    field("name", name, "in tables; the same as a source's when that source is its own rollouts");
    field("model", model, "model directory or checkpoint");
  }
};

struct SourceConfig {
  std::string name, rollouts;
  void fields(auto&& field) {
    field("name", name, "in tables");
    field("rollouts", rollouts, "responses of this source, JSON lines as ropd generate writes them");
  }
};

struct ProbesConfig {
  uint32_t trajectories = 128, minibatch = 8, coordinates = 16, top_k = 16;
  uint64_t microbatch_tokens = 8192;
  void fields(auto&& field) {
    field("trajectories", trajectories, "of every source, from its beginning; 0 = no probes",
          between(0, 1e6));
    field("minibatch", minibatch, "trajectories of one gradient", between(1, 1e6));
    field("coordinates", coordinates, "of every parameter tensor, for cosines", between(1, 1e6));
    field("top_k", top_k, "candidates of the objective", between(1, 1024));
    field("microbatch_tokens", microbatch_tokens, "tokens of one pass", between(1, 1e7));
  }
};

struct DiagnoseConfig {
  std::string teacher, output;
  std::vector<StudentConfig> students;
  std::vector<SourceConfig> sources;
  uint32_t positions = 32;
  uint64_t seed = 1;
  ProbesConfig probes;
  void fields(auto&& field) {
    field("teacher", teacher, "model directory");
    field("output", output, "folder for diagnosis.json");
    field("students", students, "the models that are scored; changes are counted from the first");
    field("sources", sources, "whose prefixes they are scored on");
    field("positions", positions, "of every response, drawn without replacement", between(1, 1e6));
    field("seed", seed, "of positions and coordinates");
    field("probes", probes, "gradients on the sources' trajectories");
  }
};

template <class Item>
void check_names(const std::vector<Item>& items, const char* what) {
  if (items.empty()) fail("diagnose: ", what, " is empty; expected at least one");
  std::set<std::string> names;
  for (const Item& item : items)
    if (item.name.empty() || !names.insert(item.name).second)
      fail("diagnose: ", what, ": name \"", item.name, "\" is ", item.name.empty() ? "empty" : "there twice");
}

using Values = std::vector<std::vector<double>>;  // [rollouts][positions]

void put(ByteWriter& writer, const Values& values) {
  writer.put(uint64_t{values.size()});
  for (const auto& row : values) writer.put(row);
}
void get(ByteReader& reader, Values& values) {
  values.resize(reader.get<uint64_t>());
  for (auto& row : values) reader.get(row);
}

// Cells of the matrix (a student on a source) are dealt out to the ranks, if there are several.
class Diagnosis {
 public:
  Diagnosis(DiagnoseConfig config, comm::Crew& crew)
      : config_(std::move(config)), crew_(crew), duty_(crew.enlist([this](ByteReader&) { serve(); })) {
    check_names(config_.students, "students");
    check_names(config_.sources, "sources");
    if (config_.output.empty()) fail("diagnose: output is required, a folder for diagnosis.json");
    teacher_ = load(config_.teacher);
    for (const SourceConfig& source : config_.sources) {
      auto rollouts = io::read_rollouts(source.rollouts, {.vocab_size = teacher_.config.vocab_size});
      if (rollouts.empty()) fail(source.rollouts, ": holds no responses");
      distill::check_rollouts(rollouts, teacher_.config);
      prefixes_.push_back(
          diagnostics::choose_positions(std::move(rollouts), config_.positions, config_.seed));
    }
  }

  // Nothing when it was interrupted.
  std::optional<Json> run() {
    const size_t count = config_.students.size() * config_.sources.size();
    Progress progress("diagnosis", count);
    size_t done = 0;  // under the dealer's mutex, as results_
    results_.assign(config_.students.size(), std::vector<Cell>(config_.sources.size()));
    const auto keep = [&](size_t index, Cell&& cell) {
      results_[index / config_.sources.size()][index % config_.sources.size()] = std::move(cell);
      progress.update(++done);
    };
    const auto call = crew_.call(duty_, "diagnosis");
    comm::Dealer dealer(crew_.world(), count, {.on_result = [&](size_t index, ByteReader& reader) {
                          keep(index, get_cell(reader));
                        }});
    for (auto lot = dealer.take(1); !lot.empty(); lot = dealer.take(1)) {
      Cell cell = make_cell(lot.front());
      if (stop_requested()) break;  // a probe may have ended early
      const std::lock_guard lock(dealer.mutex());
      keep(lot.front(), std::move(cell));
    }
    dealer.finish();
    if (done < count) return std::nullopt;
    progress.finish();
    return Json{{"students", names(config_.students)},
                {"sources", names(config_.sources)},
                {"positions", config_.positions},
                {"seed", config_.seed},
                {"kl", kl_matrix()},
                {"fit_and_shift", fit_and_shift()},
                {"concentration", concentration()},
                {"likelihood", likelihood()},
                {"probes", probes()}};
  }

 private:
  struct Cell {  // one student on one source
    Values kl, likelihood;
    diagnostics::Probe probe;
  };

  struct Student {
    size_t number = 0;
    model::Weights weights;
    std::optional<model::Parameters> parameters;  // for probes
  };

  const DiagnoseConfig config_;
  comm::Crew& crew_;
  const size_t duty_;
  std::optional<Student> student_;  // the last one asked for
  model::Weights teacher_;
  std::vector<diagnostics::PrefixSet> prefixes_;  // [sources]
  std::vector<std::vector<Cell>> results_;        // [students][sources]

  const Student& student(size_t number) {
    if (student_ && student_->number == number) return *student_;
    student_.reset();
    const std::string& path = config_.students[number].model;
    student_.emplace(Student{number, load(path), std::nullopt});
    if (config_.probes.trajectories > 0)
      student_->parameters.emplace(model::Parameters::load(io::ModelDirectory(path)));
    return *student_;
  }

  Cell make_cell(size_t index) {
    const Student& of = student(index / config_.sources.size());
    const diagnostics::PrefixSet& prefixes = prefixes_[index % config_.sources.size()];
    distill::check_rollouts(prefixes.rollouts, of.weights.config);
    Cell cell{.kl = diagnostics::position_kl(of.weights, teacher_, prefixes),
              .likelihood = diagnostics::prefix_log_likelihood(of.weights, prefixes),
              .probe = {}};
    if (of.parameters) cell.probe = probe(*of.parameters, prefixes.rollouts);
    return cell;
  }

  static Cell get_cell(ByteReader& reader) {
    Cell cell;
    get(reader, cell.kl);
    get(reader, cell.likelihood);
    reader.get(cell.probe.norms);
    get(reader, cell.probe.coordinates);
    return cell;
  }

  void serve() {
    comm::Taker taker(crew_.world());
    while (const auto lot = taker.take(1, /*may_wait=*/true)) {
      const Cell cell = make_cell(lot->front());
      if (stop_requested()) break;
      ByteWriter writer;
      put(writer, cell.kl);
      put(writer, cell.likelihood);
      writer.put(cell.probe.norms);
      put(writer, cell.probe.coordinates);
      taker.send_result(lot->front(), writer);
    }
    taker.finish();
  }

  model::Weights load(const std::string& path) const {
    auto weights = model::map_weights(std::make_shared<const io::ModelDirectory>(path));
    model::check_finite(weights, path);
    if (!prefixes_.empty() && weights.config.vocab_size != teacher_.config.vocab_size)
      fail(path, ": has a vocabulary of ", weights.config.vocab_size, " entries, the teacher ",
           teacher_.config.vocab_size, "; KL over the full vocabulary needs one vocabulary");
    return weights;
  }

  diagnostics::Probe probe(const model::Parameters& student, const std::vector<Rollout>& rollouts) const {
    diagnostics::ProbeConfig config;
    config.minibatch = config_.probes.minibatch;
    config.coordinates = config_.probes.coordinates;
    config.seed = config_.seed;
    config.scoring.top_k = config_.probes.top_k;
    config.microbatch_tokens = static_cast<int64_t>(config_.probes.microbatch_tokens);
    const size_t count = std::min<size_t>(config_.probes.trajectories, rollouts.size());
    return diagnostics::probe_gradients(student, teacher_, std::span(rollouts).first(count), config,
                                        [](size_t) { return !stop_requested(); });
  }

  template <class Item>
  static Json names(const std::vector<Item>& items) {
    Json list = Json::array();
    for (const Item& item : items) list.push_back(item.name);
    return list;
  }

  std::vector<std::vector<double>> kl_matrix() const {
    std::vector<std::vector<double>> matrix(results_.size());
    for (size_t i = 0; i < results_.size(); ++i)
      for (const Cell& cell : results_[i]) matrix[i].push_back(diagnostics::mean_over_responses(cell.kl));
    return matrix;
  }

  std::optional<size_t> source_of(const StudentConfig& student) const {
    for (size_t j = 0; j < config_.sources.size(); ++j)
      if (config_.sources[j].name == student.name) return j;
    return std::nullopt;
  }

  Json fit_and_shift() const {
    std::vector<std::optional<size_t>> own_source;
    for (const StudentConfig& student : config_.students) own_source.push_back(source_of(student));
    Json list = Json::array();
    for (const auto& pair : diagnostics::fit_and_shift(kl_matrix(), own_source))
      list.push_back({{"from", config_.students[pair.from].name},
                      {"to", config_.students[pair.to].name},
                      {"change", pair.change},
                      {"fit", pair.fit},
                      {"shift", pair.shift}});
    return list;
  }

  // Positions ranked by the first student's KL; the first student against every other.
  Json concentration() const {
    Json list = Json::array();
    for (size_t j = 0; j < prefixes_.size(); ++j)
      for (size_t b = 1; b < results_.size(); ++b) {
        const Values& first = results_[0][j].kl;
        const auto c = diagnostics::concentration(first, first, results_[b][j].kl);
        list.push_back({{"source", config_.sources[j].name},
                        {"first", config_.students[0].name},
                        {"second", config_.students[b].name},
                        {"top_tenth", {c.top_first, c.top_second}},
                        {"rest", {c.rest_first, c.rest_second}},
                        {"top_share_of_difference", c.top_share},
                        {"positions_first_lower", c.positions_first_lower},
                        {"responses_first_lower", c.responses_first_lower}});
      }
    return list;
  }

  Json likelihood() const {
    Json list = Json::array();
    for (size_t j = 0; j < prefixes_.size(); ++j)
      for (size_t b = 1; b < results_.size(); ++b) {
        const auto change = diagnostics::likelihood_change(prefixes_[j], results_[0][j].likelihood,
                                                           results_[b][j].likelihood);
        Json cumulative = Json::array();
        for (const auto& [value, share] : change.cumulative) cumulative.push_back({value, share});
        list.push_back({{"source", config_.sources[j].name},
                        {"from", config_.students[0].name},
                        {"to", config_.students[b].name},
                        {"less_likely", change.less_likely},
                        {"cumulative", cumulative}});
      }
    return list;
  }

  Json probes() const {
    Json list = Json::array();
    if (config_.probes.trajectories == 0) return list;
    for (size_t i = 0; i < results_.size(); ++i) {
      Json norms = Json::array(), cosines = Json::array();
      for (size_t j = 0; j < prefixes_.size(); ++j) {
        const auto norm = stats::mean_and_deviation(results_[i][j].probe.norms);
        norms.push_back({{"source", config_.sources[j].name},
                         {"minibatches", norm.count},
                         {"mean", norm.mean},
                         {"deviation", norm.deviation}});
        for (size_t k = j + 1; k < prefixes_.size(); ++k) {
          const auto cosine = diagnostics::paired_cosine(results_[i][j].probe, results_[i][k].probe);
          cosines.push_back({{"first", config_.sources[j].name},
                             {"second", config_.sources[k].name},
                             {"pairs", cosine.pairs},
                             {"mean", cosine.mean},
                             {"standard_error", cosine.standard_error}});
        }
      }
      list.push_back({{"student", config_.students[i].name}, {"norms", norms}, {"cosines", cosines}});
    }
    return list;
  }
};

void print(const Json& d) {
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  std::printf(
      "KL to the teacher, mean over responses (rows: students; columns: sources of the prefixes)\n%-16s", "");
  for (const Json& source : d["sources"]) std::printf(" %12.12s", text(source).c_str());
  for (size_t i = 0; i < d["students"].size(); ++i) {
    std::printf("\n%-16.16s", text(d["students"][i]).c_str());
    for (const Json& value : d["kl"][i]) std::printf(" %12.4f", value.get<double>());
  }
  std::printf("\n");
  for (const Json& x : d["fit_and_shift"])
    std::printf("%s -> %s: change of KL on own states %.4f = fit %.4f + shift %.4f\n",
                text(x["from"]).c_str(), text(x["to"]).c_str(), x["change"].get<double>(),
                x["fit"].get<double>(), x["shift"].get<double>());
  for (const Json& x : d["likelihood"])
    std::printf("prefixes of %s less likely under %s than under %s: %.2f%%\n", text(x["source"]).c_str(),
                text(x["to"]).c_str(), text(x["from"]).c_str(), 100 * x["less_likely"].get<double>());
  for (const Json& x : d["concentration"])
    std::printf("prefixes of %s, %s / %s: top tenth %.4f / %.4f, rest %.4f / %.4f\n",
                text(x["source"]).c_str(), text(x["first"]).c_str(), text(x["second"]).c_str(),
                x["top_tenth"][0].get<double>(), x["top_tenth"][1].get<double>(), x["rest"][0].get<double>(),
                x["rest"][1].get<double>());
  for (const Json& student : d["probes"]) {
    for (const Json& x : student["norms"])
      std::printf("gradient of %s on %s: norm %.5g ± %.2g over %llu minibatches\n",
                  text(student["student"]).c_str(), text(x["source"]).c_str(), x["mean"].get<double>(),
                  x["deviation"].get<double>(),
                  static_cast<unsigned long long>(x["minibatches"].get<uint64_t>()));
    for (const Json& x : student["cosines"]) {
      const std::string what = "gradient of " + text(student["student"]) + ", cosine of " + text(x["first"]) +
                               " and " + text(x["second"]);
      if (x["pairs"].get<uint64_t>() == 0)
        std::printf("%s: none, a gradient is zero everywhere\n", what.c_str());
      else
        std::printf("%s: %.3f ± %.3f\n", what.c_str(), x["mean"].get<double>(),
                    x["standard_error"].get<double>());
    }
  }
}

}  // namespace

void add_diagnose(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    bool overwrites = false;
  };
  auto options = std::make_shared<Options>();
  auto* command =
      app.add_subcommand("diagnose", "students on fixed prefixes: KL matrix, likelihood, gradients");
  command->add_option("--config", options->config, "YAML file")->required();
  command->add_option("overrides", options->overrides, "key=value settings on top of the file");
  command->add_flag("--overwrite", options->overwrites, "replace a diagnosis.json that exists");
  command->footer(kExamples);
  command->callback([options, command] {
    install_stop_handlers();
    auto config = load_config<DiagnoseConfig>(options->config, options->overrides);
    config.teacher = io::find_model(config.teacher).string();
    for (StudentConfig& student : config.students) student.model = io::find_model(student.model).string();
    comm::Crew& crew = join_crew();
    if (crew.leads())
      check_output({(Path(config.output) / "diagnosis.json").string(), options->overwrites}, {});
    Diagnosis diagnosis(config, crew);
    comm::Facts facts = train::program_facts();
    facts["settings"] = config_to_yaml(config);
    comm::require_agreement(crew.world(), facts);
    if (!crew.leads()) assist(crew);
    crew.expect_service();
    const auto result = diagnosis.run();
    if (!result) end_stopped("stopped; nothing was written, the same command begins again");
    std::filesystem::create_directories(config.output);
    const std::string text = result->dump(2) + "\n";
    write_file_atomically(Path(config.output) / "diagnosis.json", text);
    if (wants_json(*command))
      std::fputs(text.c_str(), stdout);
    else
      print(*result);
  });
}

}  // namespace ropd::app
