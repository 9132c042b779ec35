// Bad study files get one clear line each; good ones become runs.
#include "study/study_config.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StudyFiles : public testing::Test {
 protected:
  const test::TemporaryDirectory directory_;
  StudyFiles() {
    write_file_atomically(
        directory_ / "base.yaml",
        "student: s\nteacher: t\noutput: o\ndata: {queries: q.jsonl}\ntrain: {iterations: 15}\n");
  }
  StudyFile load(const std::string& text) const {
    write_file_atomically(directory_ / "study.yaml", text);
    return load_study(directory_ / "study.yaml");
  }
  std::string error_of(const std::string& text) const {
    try {
      expand_runs(load(text));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static std::string with(const std::string& more) {
    return "name: n\nbase: base.yaml\noutput: out\n" + more;
  }
};

TEST_F(StudyFiles, AreAProductOfMethodsAndAxes) {
  const auto file = load(with(
      "set: [train.learning_rate=2e-6]\n"
      "axes:\n"
      "  - {name: order, repeats: true, values: [{name: 1, set: [seed=1, data.order_seed=1]}, {name: 2, set: "
      "[seed=2, data.order_seed=2]}]}\n"
      "methods:\n"
      "  - {name: current, stages: [{source: current}]}\n"
      "  - {name: fixed, stages: [{source: current, iterations: 10}, {source: initial}], set: "
      "[train.learning_rate=3e-6]}\n"));
  const auto runs = expand_runs(file);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[1].label, "current, order 2");
  EXPECT_EQ(runs[1].config.seed, 2u);
  EXPECT_EQ(runs[1].config.data.order_seed, 2u);
  EXPECT_EQ(runs[1].config.train.learning_rate, 2e-6);
  EXPECT_EQ(runs[2].config.train.learning_rate, 3e-6) << "the method's setting comes last";
  EXPECT_EQ(runs[3].config.curriculum.stages.size(), 2u);
  EXPECT_THAT(runs[3].values, ElementsAre("2"));
}

TEST_F(StudyFiles, FindTheRunThatAContinuationBeginsWith) {
  const auto runs = expand_runs(load(with(
      "axes: [{name: order, values: [{name: a}, {name: b, set: [seed=2]}]}]\n"
      "methods:\n  - {name: eos, from: {method: current, iteration: 5}, stages: [{source: initial}], set: "
      "[objective.eos=none, train.iterations=5]}\n  - {name: current, stages: [{source: current}]}\n")));
  ASSERT_TRUE(runs[1].from.has_value());
  EXPECT_EQ(runs[*runs[1].from].label, "current, order b");
}

TEST_F(StudyFiles, BadOnesGetOneClearLine) {
  const std::string current = "methods: [{name: current, stages: [{source: current}]}]\n";
  EXPECT_THAT(error_of("base: base.yaml\noutput: o\n" + current), HasSubstr("name is required"));
  EXPECT_THAT(error_of("name: n\nbase: absent.yaml\noutput: o\n" + current),
              HasSubstr("absent.yaml does not exist"));
  EXPECT_THAT(error_of(with("methods: []\n")), HasSubstr("methods is empty"));
  EXPECT_THAT(error_of(with(current + "axes: [{name: order, values: []}]\n")),
              HasSubstr("axis \"order\" has no values"));
  EXPECT_THAT(error_of(with(current + "evaluations: [{name: e, suite: three, methods: [curent]}]\n")),
              HasSubstr("no method \"curent\" (did you mean \"current\"?)"));
  EXPECT_THAT(
      error_of(with("methods:\n  - {name: a, from: {method: b, iteration: 1}}\n  - {name: b, from: {method: "
                    "a, iteration: 1}}\n")),
      HasSubstr("goes round in a circle: a -> b -> a"));
  EXPECT_THAT(error_of(with("methods: [{name: late, stages: [{source: current, iterations: 15}, {source: "
                            "initial}]}]\n")),
              HasSubstr("late: "))
      << "an onset behind the end";
  EXPECT_THAT(error_of(with("methods: [{name: a}, {name: a}]\n")), HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(
      error_of(with(current + "comparisons: [{label: x, evaluation: e, better: current, worse: current}]\n")),
      HasSubstr("no evaluation \"e\""));
  EXPECT_THAT(error_of(with("methods:\n  - {name: a}\n  - {name: b, from: {method: a, iteration: 99}}\n")),
              HasSubstr("continues a behind iteration 99, which has 15"));
  const std::string evaluated = current + "evaluations: [{name: e, suite: three}]\n";
  EXPECT_THAT(error_of(with(evaluated + "tables: [{label: x, evaluation: e, columns: [acuracy], rows: [{of: "
                                        "current}]}]\n")),
              HasSubstr("measure 'acuracy'"));
  EXPECT_THAT(error_of(with(evaluated + "tables: [{label: x, evaluation: e, columns: [accuracy@16K], rows: "
                                        "[{of: current}]}]\n")),
              HasSubstr("\"16K\" is no budget"));
  EXPECT_THAT(error_of(with(evaluated + "tables: [{label: x, evaluation: e, columns: [accuracy], rows: [{of: "
                                        "curent}]}]\n")),
              HasSubstr("x: no row \"curent\" (did you mean \"current\"?)"));
  EXPECT_THAT(error_of(with(evaluated + "comparisons: [{label: x, better: current, worse: current}]\n")),
              HasSubstr("either an evaluation or a diagnosis"));
  const std::string diagnosed =
      current + "diagnoses: [{name: d, sources: [{name: a}], students: [{name: b}]}]\n";
  EXPECT_THAT(error_of(with(diagnosed + "comparisons: [{label: x, diagnosis: d, better: b, against: 0}]\n")),
              HasSubstr("expected STUDENT on SOURCE"));
  EXPECT_THAT(
      error_of(with(diagnosed + "comparisons: [{label: x, diagnosis: d, better: c on a, against: 0}]\n")),
      HasSubstr("no student \"c\""));
  EXPECT_THAT(
      error_of(with(diagnosed + "comparisons: [{label: x, diagnosis: d, measure: norm, better: b on a, "
                                "against: 0}]\n")),
      HasSubstr("diagnosis d has no probes"));
  EXPECT_THAT(
      error_of(with(current + "diagnoses: [{name: d, sources: [{name: a}], students: [{name: b}], probes: "
                              "{trajectories: 8}}]\ncomparisons: [{label: x, diagnosis: d, measure: cosine, "
                              "better: b on a, against: 0}]\n")),
      HasSubstr("no source b"));
  for (const std::string& text :
       {with("methods: []\n"), with(current + "axes: [{name: order, values: []}]\n")})
    EXPECT_EQ(error_of(text).find('\n'), std::string::npos);
}

TEST(Columns, AreAMeasureAndPerhapsABudget) {
  EXPECT_EQ(parse_column("accuracy@16384").budget, 16384u);
  EXPECT_EQ(parse_column("pass@n").measure, "pass@n");
  EXPECT_FALSE(parse_column("pass@4").budget.has_value());
  EXPECT_EQ(parse_column("pass@4@64").measure, "pass@4");
  for (const char* text : {"accuracy@16384", "pass@n", "pass@4@64", "tau"})
    EXPECT_EQ(column_text(parse_column(text)), text);
}

TEST(Rows, JoinRepetitionsAndKeepOtherAxesApart) {
  StudyConfig config;
  config.methods = {{.name = "grid"}};
  config.axes = {{.name = "N", .values = {{"8", {}}, {"48", {}}}},
                 {.name = "order", .repeats = true, .values = {{"1", {}}, {"2", {}}}}};
  std::vector<study::Run> runs;
  for (const char* n : {"8", "48"})
    for (const char* order : {"1", "2"})
      runs.push_back(
          {.method = 0, .values = {n, order}, .label = std::string("grid, N ") + n + ", order " + order});
  const auto rows = rows_of(config, runs);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].name, "grid@48");
  EXPECT_THAT(rows[1].runs, ElementsAre(2, 3));
  EXPECT_THAT(find_row(config, runs, "grid@8")->runs, ElementsAre(0, 1));
  EXPECT_THAT(find_row(config, runs, "grid, N 8, order 2")->runs, ElementsAre(1)) << "one run by its label";
  EXPECT_FALSE(find_row(config, runs, "grid").has_value());
}

}  // namespace
}  // namespace ropd::study
