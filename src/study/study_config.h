// A study file: methods that are compared, over a product of axes (data orders, seeds, query counts, ...), on
// one base recipe of `ropd train`; the evaluations and diagnoses of their states; the comparisons that come
// out. `set` are overrides in the form of the command line (train.learning_rate=2e-6). Every run is
//   base, then study.set, then the set of its value on every axis, then its method's set and stages
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config_fields.h"
#include "base/file.h"
#include "train/train_config.h"

namespace ropd::study {

struct AxisValue {
  std::string name;
  std::vector<std::string> set;
  void fields(auto&& field) {
    field("name", name, "in tables");
    field("set", set, "key=value settings of this value");
  }
};

struct Axis {
  std::string name;
  bool repeats = false;
  std::vector<AxisValue> values;
  void fields(auto&& field) {
    field("name", name, "of the axis, e.g. order");
    field("repeats", repeats, "its values are repetitions: tables show mean and deviation over them");
    field("values", values, "at least one");
  }
};

// Weights and optimizer state of another method's run at the same place of every axis.
struct StartConfig {
  std::string method;
  uint64_t iteration = 0;
  void fields(auto&& field) {
    field("method", method, "whose run is continued");
    field("iteration", iteration, "behind which it is continued", at_least(1));
  }
};

struct Method {
  std::string name;
  std::vector<std::string> set;
  std::vector<train::StageConfig> stages;
  std::optional<StartConfig> from;
  void fields(auto&& field) {
    field("name", name, "in tables");
    field("set", set, "key=value settings of this method");
    field("stages", stages, "its curriculum; none = the base's");
    field("from", from, "a state that it continues with settings of its own; null = the initial student");
  }
};

struct EvaluationConfig {
  std::string name;
  std::string suite;
  std::string data = ".";
  uint64_t max_tokens = 32768;
  std::vector<uint64_t> budgets;
  uint64_t seed = 1;
  train::Precision precision = train::Precision::bf16;
  std::vector<std::string> methods;
  std::vector<uint64_t> iterations;
  bool models = false;
  void fields(auto&& field) {
    field("name", name, "in tables");
    field("suite", suite, "eight, three or a YAML file");
    field("data", data, "folder of the suite's benchmark files");
    field("max_tokens", max_tokens, "of a response", at_least(1));
    field("budgets", budgets, "tokens at which responses are scored; none = max_tokens");
    field("seed", seed, "of its draws");
    field("precision", precision, "of matrix products while sampling");
    field("methods", methods, "whose runs; none = all");
    field("iterations", iterations, "behind which they are evaluated; none = the last");
    field("models", models, "also the initial student and the teacher");
  }
};

// A state by name: the student behind an iteration of a method's run; without a method the initial student.
struct StateConfig {
  std::string name;
  std::string method;
  std::optional<uint64_t> iteration;
  std::vector<std::optional<double>> paper;
  void fields(auto&& field) {
    field("name", name, "in tables");
    field("method", method, "whose run; none = the initial student");
    field("iteration", iteration, "behind which; null = the last", at_least(1));
    field("paper", paper, "of a student: the paper's KL on every source, in their order");
  }
};

// Positions of one source ranked by the KL of one student: how two others differ on the top tenth.
struct ConcentrationConfig {
  std::string source, ranked_by, first, second;
  std::vector<std::optional<double>> paper;
  void fields(auto&& field) {
    field("source", source, "whose prefixes");
    field("ranked_by", ranked_by, "student whose KL ranks the positions");
    field("first", first, "student");
    field("second", second, "student; differences are second - first");
    field("paper", paper,
          "the paper's seven numbers: KL on the top tenth (first, second), on the rest, % of the difference "
          "in the top tenth, % of positions and of responses where the first is lower");
  }
};

struct ProbesConfig {
  uint32_t trajectories = 128, minibatch = 8, coordinates = 16;
  void fields(auto&& field) {
    field("trajectories", trajectories, "of every source, from its beginning", between(1, 1e6));
    field("minibatch", minibatch, "trajectories of one gradient", between(1, 1e6));
    field("coordinates", coordinates, "of every parameter tensor, for cosines", between(1, 1e6));
  }
};

struct DiagnosisConfig {
  std::string name;
  std::vector<std::string> set;
  std::vector<StateConfig> sources;
  std::vector<StateConfig> students;
  uint32_t samples = 8;
  uint32_t positions = 32;
  uint64_t seed = 1;
  std::optional<ProbesConfig> probes;
  std::vector<ConcentrationConfig> concentrations;
  void fields(auto&& field) {
    field("name", name, "in tables");
    field("set", set, "key=value settings of the responses that give the prefixes, e.g. other queries");
    field("sources", sources, "states whose responses give the prefixes");
    field("students", students,
          "states that are scored on them; likelihood changes are counted from the first");
    field("samples", samples, "responses a query", between(1, 1e6));
    field("positions", positions, "of every response, drawn without replacement", between(1, 1e6));
    field("seed", seed, "of responses and positions");
    field("probes", probes, "also gradients of the students on the sources' responses; null = none");
    field("concentrations", concentrations, "how a KL difference is spread over positions");
  }
};

// A claim of the paper: `better` minus `worse` has a sign; the tables say what was measured here.
struct ComparisonConfig {
  std::string label;
  std::string evaluation, diagnosis;
  std::string measure;
  std::string better, worse;
  std::optional<double> against;
  std::optional<std::string> at, minus;
  std::optional<uint64_t> budget;
  bool by_benchmark = false;
  std::optional<double> paper;
  void fields(auto&& field) {
    field("label", label, "of the paper's table or figure");
    field("evaluation", evaluation, "whose results are compared; this or diagnosis");
    field("diagnosis", diagnosis, "whose results are compared");
    field("measure", measure,
          "of an evaluation: accuracy (default), pass@n, extraction, length, ...; of a diagnosis: kl "
          "(default), less_likely, norm, cosine (with the gradient on the student's own responses)");
    field("better", better,
          "method, or method@value@... with a value of every axis that does not repeat; of a diagnosis: "
          "student on source");
    field("worse", worse, "likewise; none with against");
    field("against", against, "a constant in place of worse, in the measure's unit");
    field("at", at, "of an interaction (better - worse) - (at - minus)");
    field("minus", minus, "of an interaction");
    field("budget", budget, "tokens; null = the largest", at_least(1));
    field("by_benchmark", by_benchmark, "also the difference on every benchmark, and the ratio of lengths");
    field("paper", paper, "the paper's difference: percentage points, tokens, nats");
  }
};

// A row or a run of a table, and what the paper has there.
struct TableRowConfig {
  std::string of;
  std::vector<std::optional<double>> paper;
  void fields(auto&& field) {
    field("of", of, "method@value@... as in comparisons, or one run: method, axis value, ...");
    field("paper", paper, "one number a column; null = the paper has none");
  }
};

// A table of the paper; its numbers stand beside ours.
struct TableConfig {
  std::string label;
  std::string evaluation;
  std::vector<std::string> columns;
  std::vector<TableRowConfig> rows;
  bool by_benchmark = false;
  void fields(auto&& field) {
    field("label", label, "of the paper's table or figure");
    field("evaluation", evaluation, "where its numbers come from");
    field("columns", columns, "measure or measure@budget (accuracy@16384, length, pass@n, ...), or tau");
    field("rows", rows, "at least one");
    field("by_benchmark", by_benchmark, "also the same for every benchmark");
  }
};

struct StudyConfig {
  std::string name;
  std::string base;
  std::string output;
  std::vector<std::string> set;
  std::vector<Axis> axes;
  std::vector<Method> methods;
  std::vector<EvaluationConfig> evaluations;
  std::vector<DiagnosisConfig> diagnoses;
  std::vector<TableConfig> tables;
  std::vector<ComparisonConfig> comparisons;
  void fields(auto&& field) {
    field("name", name, "of the study; required");
    field("base", base, "recipe of ropd train, relative to the study file; required");
    field("output", output, "folder of everything, shared by studies that may share parts; required");
    field("set", set, "key=value settings of all runs");
    field("axes", axes, "every method runs at every combination of their values");
    field("methods", methods, "at least one");
    field("evaluations", evaluations, "of which states, on what");
    field("diagnoses", diagnoses, "of which states, on whose prefixes");
    field("tables", tables, "of the paper, with its numbers");
    field("comparisons", comparisons, "what the paper claims");
  }
  void validate(const ConfigPlace& place = {}) const;
};

struct StudyFile {
  StudyConfig config;
  Path path;
};

// Fails with one line for an unknown name, a cycle of `from`, an empty axis, a missing base.
StudyFile load_study(const Path& path, const std::vector<std::string>& overrides = {});

// One run of a study: a method at one combination of axis values. Its output is set where it is made.
struct Run {
  size_t method = 0;
  std::vector<std::string> values;  // names, one an axis
  train::TrainConfig config;
  std::optional<size_t> from;  // the run that it continues
  std::string label;           // fixed, order 1
};

// All of them: methods in order, the last axis fastest. Fails naming the run whose settings cannot be, and for
// tables and comparisons of what is no row.
std::vector<Run> expand_runs(const StudyFile& file);

// The settings that a diagnosis samples a run's prompts with.
train::TrainConfig prompts_of(const Run& run, const DiagnosisConfig& diagnosis);

// The runs that stand in one row: a method at one combination of the axes that do not repeat.
struct Row {
  std::string name;  // fixed, or grid@8@110
  std::vector<size_t> runs;
};
std::vector<Row> rows_of(const StudyConfig& config, const std::vector<Run>& runs);
// The row of this name, or the run with this label as a row of its own; nothing when there is neither.
std::optional<Row> find_row(const StudyConfig& config, const std::vector<Run>& runs, const std::string& name);

// A column of a table: a measure at a budget, or the trigger's iteration.
struct Column {
  std::string measure;  // as stats::parse_measure reads it, or "tau"
  std::optional<uint64_t> budget;
};
// Reads accuracy@16384, pass@4@16384, length, tau; fails for a budget that is no number.
Column parse_column(const std::string& text);
std::string column_text(const Column& column);

// "R20 on initial" -> {R20, initial}; fails for anything else.
struct DiagnosisSide {
  std::string student, source;
};
DiagnosisSide parse_diagnosis_side(const std::string& text);
// The source that holds a student's own responses (of its name); nothing when there is none.
std::optional<size_t> source_of_own(const DiagnosisConfig& diagnosis, const std::string& student);

// The index of a method; fails with the nearest name. `where` begins the text.
size_t find_method(const StudyConfig& config, const std::string& name, const std::string& where);

}  // namespace ropd::study
