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
#include "app/models.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/bytes.h"
#include "base/config_fields.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/sha256.h"
#include "base/stop.h"
#include "base/visible_text.h"
#include "comm/agreement.h"
#include "comm/lots.h"
#include "diagnostics/fit_and_shift.h"
#include "diagnostics/prefixes.h"
#include "diagnostics/probes.h"
#include "eval/samples.h"
#include "io/durable_folder.h"
#include "io/files_in_use.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "io/rollout_file.h"
#include "io/sample_file.h"
#include "rollout/fingerprint.h"
#include "stats/answer_metrics.h"
#include "text/tokenizer.h"
#include "train/run_parts.h"

namespace ropd::diagnostics {
constexpr auto enum_names(ProbeMean) {
  return std::array{EnumName{ProbeMean::sequences, "sequences"}, EnumName{ProbeMean::tokens, "tokens"}};
}
constexpr auto enum_names(ProbeUnits) {
  return std::array{EnumName{ProbeUnits::layers, "layers"}, EnumName{ProbeUnits::tensors, "tensors"}};
}
}  // namespace ropd::diagnostics

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
  concentration: [{rank_by: R40, first: replay, second: continued}]
  probes: {trajectories: 128, minibatch: 8, coordinates: 16}
Results: OUTPUT/diagnosis.json, samples.jsonl (responses for reading), and tables on the console.
Example:
  ropd diagnose --config diagnosis.yaml probes.trajectories=32)";

struct StudentConfig {
  std::string name, model, base;
  void fields(auto&& field) {
    field("name", name, "in tables; the same as a source's when that source is its own rollouts");
    field("model", model, "model or adapter directory, checkpoint or run");
    field("base", base, "of an adapter: folder of its base, where its own config names none that is here");
  }
};

struct SourceConfig {
  std::string name, rollouts;
  void fields(auto&& field) {
    field("name", name, "in tables");
    field("rollouts", rollouts, "responses of this source, JSON lines as ropd generate writes them");
  }
};

struct ConcentrationConfig {
  std::string rank_by, first, second;
  void fields(auto&& field) {
    field("rank_by", rank_by, "the student whose KL ranks the positions (R40 in the paper)");
    field("first", first, "a student; shares count where it is lower");
    field("second", second, "another; differences are second minus first");
  }
};

struct ProbesConfig {
  uint32_t trajectories = 128, minibatch = 8, coordinates = 16, ranks = 8, top_k = 16;
  diagnostics::ProbeMean mean = diagnostics::ProbeMean::sequences;
  diagnostics::ProbeUnits units = diagnostics::ProbeUnits::layers;
  uint64_t microbatch_tokens = 8192;
  void fields(auto&& field) {
    field("trajectories", trajectories, "of every source, from its beginning; 0 = no probes",
          between(0, 1e6));
    field("minibatch", minibatch, "trajectories of one gradient", between(1, 1e6));
    field("mean", mean,
          "what a gradient is a mean over: sequences, each a token mean (one trajectory a rank), or all "
          "tokens");
    field("coordinates", coordinates, "of every unit of parameters and rank, for cosines", between(1, 1e6));
    field("units", units,
          "of parameters: layers, with one unit for the rest (the paper's 3,712 coordinates), or tensors");
    field("ranks", ranks, "equal pieces of every unit", between(1, 1e4));
    field("top_k", top_k, "candidates of the objective", between(1, 1024));
    field("microbatch_tokens", microbatch_tokens, "tokens of one pass", between(1, 1e7));
  }
};

struct DiagnoseConfig {
  std::string teacher, teacher_base, output;
  std::vector<StudentConfig> students;
  std::vector<SourceConfig> sources;
  std::vector<ConcentrationConfig> concentration;
  uint32_t positions = 32;
  uint64_t seed = 1;
  uint32_t samples = 2;
  ProbesConfig probes;
  void fields(auto&& field) {
    field("teacher", teacher, "model or adapter directory");
    field("teacher_base", teacher_base, "of an adapter: folder of its base");
    field("output", output, "folder for diagnosis.json and samples.jsonl");
    field("students", students, "the models that are scored; changes are counted from the first");
    field("sources", sources, "whose prefixes they are scored on");
    field("concentration", concentration,
          "how two students differ on the top tenth of positions by a third one's KL; on every source");
    field("positions", positions, "of every response, drawn without replacement", between(1, 1e6));
    field("seed", seed, "of positions and coordinates");
    field("samples", samples, "responses of every source kept for reading (samples.jsonl); 0 = none",
          between(0, 1000));
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
  // teacher_memory_gb: nothing = what is free.
  Diagnosis(DiagnoseConfig config, std::optional<double> teacher_memory_gb, comm::Crew& crew)
      : config_(std::move(config)), crew_(crew), duty_(crew.enlist([this](ByteReader&) { serve(); })) {
    check_names(config_.students, "students");
    check_names(config_.sources, "sources");
    for (const ConcentrationConfig& c : config_.concentration) {
      for (const std::string* name : {&c.rank_by, &c.first, &c.second}) (void)student_index(*name);
      if (c.first == c.second)
        fail("diagnose: concentration compares ", c.first, " with itself; expected two students");
    }
    if (config_.output.empty()) fail("diagnose: output is required, a folder for diagnosis.json");
    note_files(config_.teacher, config_.teacher_base);
    for (const StudentConfig& student : config_.students) note_files(student.model, student.base);
    teacher_.emplace(bounded_model(config_.teacher, config_.teacher_base, teacher_memory_gb));
    const Path text_path = teacher_->directory().text_path();
    if (config_.samples > 0 && std::filesystem::exists(text_path / "tokenizer.json"))
      tokenizer_.emplace(text::Tokenizer::load(text_path));
    for (const SourceConfig& source : config_.sources) {
      auto rollouts = io::read_rollouts(source.rollouts, {.vocab_size = teacher_->config().vocab_size});
      if (rollouts.empty()) fail(source.rollouts, ": holds no responses");
      distill::check_rollouts(rollouts, teacher_->config());
      prefixes_.push_back(
          diagnostics::choose_positions(std::move(rollouts), config_.positions, config_.seed));
    }
    open_students();
    teacher_states_.resize(prefixes_.size());
  }

  // What ranks must agree on, files by their content.
  comm::Facts facts() {
    comm::Facts facts = train::program_facts();
    facts["settings"] = config_to_yaml(config_);
    facts["teacher"] = rollout::weights_fingerprint(teacher());
    for (size_t i = 0; i < students_.size(); ++i)
      facts["student " + config_.students[i].name] = rollout::weights_fingerprint(model::map_weights(students_[i]));
    for (const SourceConfig& source : config_.sources)
      facts["source " + source.name] = sha256_file(source.rollouts);
    return facts;
  }

  // Of a finished run(): the same responses of a source as every student sees them.
  std::vector<ResponseSample> samples() const {
    std::vector<ResponseSample> all;
    for (const auto& row : results_)
      for (const Cell& cell : row) all.insert(all.end(), cell.samples.begin(), cell.samples.end());
    return all;
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
    for (auto lot = dealer.take({}); !lot.empty(); lot = dealer.take({})) {
      Cell cell = make_cell(lot.begin);
      if (stop_requested()) break;  // a probe may have ended early
      const std::lock_guard lock(dealer.mutex());
      keep(lot.begin, std::move(cell));
    }
    dealer.finish();
    if (done < count) return std::nullopt;
    files_.check();
    progress.finish();
    log_streamed("teacher", teacher_->counts());
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
    std::vector<ResponseSample> samples;
  };

  struct Student {
    size_t number = 0;
    model::Weights weights;
    std::optional<model::Parameters> parameters;  // for probes
  };

  const DiagnoseConfig config_;
  comm::Crew& crew_;
  const size_t duty_;
  io::FilesInUse files_;
  std::vector<std::shared_ptr<const io::ModelDirectory>> students_;  // open from the beginning to the end
  std::optional<Student> student_;                                   // the last one asked for
  std::optional<model::BoundedModel> teacher_;
  std::vector<std::optional<Buffer>> teacher_states_;  // [sources], of those asked for
  std::vector<diagnostics::PrefixSet> prefixes_;       // [sources]
  std::vector<std::vector<Cell>> results_;             // [students][sources]
  std::optional<text::Tokenizer> tokenizer_;           // absent: no samples

  model::Weights teacher() { return teacher_->weights(diagnostics::kBatchTokens); }

  const Student& student(size_t number) {
    if (student_ && student_->number == number) return *student_;
    student_.reset();
    student_.emplace(Student{number, model::map_weights(students_[number]), std::nullopt});
    if (config_.probes.trajectories > 0)
      student_->parameters.emplace(model::Parameters::load(*students_[number]));
    return *student_;
  }

  Cell make_cell(size_t index) {
    const Student& of = student(index / config_.sources.size());
    const size_t source = index % config_.sources.size();
    const diagnostics::PrefixSet& prefixes = prefixes_[source];
    auto& teacher_states = teacher_states_[source];
    if (!teacher_states) teacher_states = diagnostics::states_at(teacher(), prefixes);
    Cell cell{.kl = diagnostics::position_kl(of.weights, teacher(), *teacher_states, prefixes),
              .likelihood = diagnostics::prefix_log_likelihood(of.weights, prefixes),
              .probe = {},
              .samples = samples_of(config_.students[of.number].name, of.weights, source)};
    if (of.parameters) cell.probe = probe(*of.parameters, prefixes.rollouts);
    return cell;
  }

  static void put_cell(ByteWriter& writer, const Cell& cell) {
    put(writer, cell.kl);
    put(writer, cell.likelihood);
    writer.put(cell.probe.norms);
    put(writer, cell.probe.coordinates);
    writer.put(uint64_t{cell.samples.size()});
    for (const ResponseSample& sample : cell.samples) writer.put(io::sample_line(sample));
  }

  static Cell get_cell(ByteReader& reader) {
    Cell cell;
    get(reader, cell.kl);
    get(reader, cell.likelihood);
    reader.get(cell.probe.norms);
    get(reader, cell.probe.coordinates);
    cell.samples.resize(reader.get<uint64_t>());
    for (ResponseSample& sample : cell.samples)
      sample = io::parse_sample(parse_json(reader.get<std::string>(), "a rank's sample"), "a rank's sample");
    return cell;
  }

  void serve() {
    comm::Taker taker(crew_.world());
    while (const auto lot = taker.take({}, /*may_wait=*/true)) {
      const Cell cell = make_cell(lot->begin);
      if (stop_requested()) break;
      ByteWriter writer;
      put_cell(writer, cell);
      taker.send_result(lot->begin, writer);
    }
    taker.finish();
  }

  void note_files(const Path& model, const Path& base) {
    if (std::filesystem::is_directory(model)) files_.add(io::model_files(model, base));
  }

  // Everything that would end the work on one of them, before that on the first begins; weights are read last.
  void open_students() {
    for (const StudentConfig& student : config_.students) {
      const ModelConfig& shape =
          students_.emplace_back(std::make_shared<const io::ModelDirectory>(student.model, student.base))->config();
      if (shape.vocab_size != teacher_->config().vocab_size)
        fail(student.model, ": has a vocabulary of ", shape.vocab_size, " entries, the teacher ",
             teacher_->config().vocab_size, "; KL over the full vocabulary needs one vocabulary");
      if (config_.probes.trajectories > 0 && shape.is_moe())
        fail(student.model,
             ": a mixture of experts has no gradient here (none through its router); set "
             "probes.trajectories=0");
      for (const diagnostics::PrefixSet& prefixes : prefixes_)
        distill::check_rollouts(prefixes.rollouts, shape);
    }
    for (const auto& student : students_)
      model::check_finite(model::map_weights(student), student->path().string());
  }

  std::vector<ResponseSample> samples_of(const std::string& student, const model::Weights& weights,
                                         size_t source) {
    std::vector<ResponseSample> samples;
    if (!tokenizer_) return samples;
    const std::vector<Rollout>& all = prefixes_[source].rollouts;
    std::vector<Rollout> chosen;
    for (const size_t i : eval::choose_samples(all.size(), config_.samples)) chosen.push_back(all[i]);
    const auto scores = eval::score_by(weights, teacher(), model::Precision::f32)(chosen);
    for (size_t i = 0; i < chosen.size(); ++i) {
      ResponseSample sample = eval::make_sample(chosen[i], scores[i], nullptr, *tokenizer_);
      sample.source = config_.sources[source].name;
      sample.student = student;
      samples.push_back(std::move(sample));
    }
    return samples;
  }

  diagnostics::Probe probe(const model::Parameters& student, const std::vector<Rollout>& rollouts) {
    diagnostics::ProbeConfig config;
    config.minibatch = config_.probes.minibatch;
    config.mean = config_.probes.mean;
    config.units = config_.probes.units;
    config.ranks = config_.probes.ranks;
    config.coordinates = config_.probes.coordinates;
    config.seed = config_.seed;
    config.scoring.top_k = config_.probes.top_k;
    config.microbatch_tokens = static_cast<int64_t>(config_.probes.microbatch_tokens);
    const size_t count = std::min<size_t>(config_.probes.trajectories, rollouts.size());
    return diagnostics::probe_gradients(student, teacher(), std::span(rollouts).first(count), config,
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

  size_t student_index(const std::string& name) const {
    for (size_t i = 0; i < config_.students.size(); ++i)
      if (config_.students[i].name == name) return i;
    std::vector<std::string> known;
    for (const StudentConfig& student : config_.students) known.push_back(student.name);
    const std::string nearest = nearest_name(name, known);
    fail("diagnose: concentration names \"", name, "\", which is no student",
         nearest.empty() ? "" : "; did you mean " + nearest + "?");
  }

  Json concentration() const {
    Json list = Json::array();
    for (size_t j = 0; j < prefixes_.size(); ++j)
      for (const ConcentrationConfig& wanted : config_.concentration) {
        const auto kl = [&](const std::string& name) { return results_[student_index(name)][j].kl; };
        const auto c = diagnostics::concentration(kl(wanted.rank_by), kl(wanted.first), kl(wanted.second));
        list.push_back({{"source", config_.sources[j].name},
                        {"rank_by", wanted.rank_by},
                        {"first", wanted.first},
                        {"second", wanted.second},
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
  const auto text = [](const Json& value) { return visible_line(value.get<std::string>()); };
  std::printf(
      "KL to the teacher, mean over responses (rows: students; columns: sources of the prefixes)\n%-16s", "");
  for (const Json& source : d["sources"]) fmt::print(" {:>12.12}", text(source));
  for (size_t i = 0; i < d["students"].size(); ++i) {
    fmt::print("\n{:<16.16}", text(d["students"][i]));
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
    std::printf("prefixes of %s, %s / %s: top tenth by %s %.4f / %.4f, rest %.4f / %.4f\n",
                text(x["source"]).c_str(), text(x["first"]).c_str(), text(x["second"]).c_str(),
                text(x["rank_by"]).c_str(), x["top_tenth"][0].get<double>(), x["top_tenth"][1].get<double>(),
                x["rest"][0].get<double>(), x["rest"][1].get<double>());
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

// kUnfinished lies beside samples whose diagnosis is still to come: they are this command's own, to be replaced.
constexpr const char *kResult = "diagnosis.json", *kSamples = "samples.jsonl",
                     *kUnfinished = "diagnosis.unfinished";

void check_outputs(const DiagnoseConfig& config, const std::string& config_file, bool overwrites) {
  std::vector<std::string> inputs = {config_file, config.teacher, config.teacher_base};
  for (const StudentConfig& student : config.students) {
    inputs.push_back(student.model);
    inputs.push_back(student.base);
  }
  for (const SourceConfig& source : config.sources) {
    inputs.push_back(source.rollouts);
    inputs.push_back(io::bank_meta_path(source.rollouts).string());
  }
  const Path folder = config.output;
  const bool owns_samples =
      std::filesystem::exists(folder / kUnfinished) && !std::filesystem::exists(folder / kResult);
  check_output({(folder / kResult).string(), overwrites}, inputs);
  check_output({(folder / kSamples).string(), overwrites || owns_samples}, inputs);
  check_output({(folder / kUnfinished).string(), /*overwrites=*/true}, inputs);
}

// The diagnosis last: what is there is done.
void write_results(const Path& folder, const std::vector<ResponseSample>& samples,
                   const std::string& diagnosis) {
  io::make_durable_folder(folder);
  write_file_atomically(folder / kUnfinished, "");
  if (!samples.empty()) io::write_samples(folder / kSamples, samples);
  write_file_atomically(folder / kResult, diagnosis);
  std::error_code ignored;  // of no account beside a diagnosis
  std::filesystem::remove(folder / kUnfinished, ignored);
}

}  // namespace

void add_diagnose(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    bool overwrites = false;
    std::optional<double> teacher_memory_gb;
  };
  auto options = std::make_shared<Options>();
  auto* command =
      app.add_subcommand("diagnose", "students on fixed prefixes: KL matrix, likelihood, gradients");
  command->add_option("--config", options->config, "YAML file")->required();
  command->add_option("overrides", options->overrides, "key=value settings on top of the file");
  command->add_flag("--overwrite", options->overwrites,
                    "replace diagnosis.json and samples.jsonl that exist");
  add_teacher_memory(*command, options->teacher_memory_gb);
  command->footer(kExamples);
  command->callback([options, command] {
    install_stop_handlers();
    comm::Crew& crew = join_crew();
    DiagnoseConfig config;
    std::optional<Diagnosis> prepared;
    leader_first(crew, [&] {
      config = load_config<DiagnoseConfig>(options->config, options->overrides);
      config.teacher = io::find_model(config.teacher).string();
      for (StudentConfig& student : config.students) student.model = io::find_model(student.model).string();
      if (crew.leads()) check_outputs(config, options->config, options->overwrites);
      prepared.emplace(config, options->teacher_memory_gb, crew);
    });
    Diagnosis& diagnosis = *prepared;
    if (!crew.is_alone()) comm::require_agreement(crew.world(), diagnosis.facts());
    if (!crew.leads()) assist(crew);
    crew.expect_service();
    const auto result = diagnosis.run();
    if (!result) end_stopped("stopped; nothing was written, the same command begins again");
    write_results(config.output, diagnosis.samples(), result->dump(2) + "\n");
    if (wants_json(*command))
      std::printf("%s\n", result->dump().c_str());  // one line, as everywhere
    else
      print(*result);
  });
}

}  // namespace ropd::app
