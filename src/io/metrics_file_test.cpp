#include "io/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::HasSubstr;
using testing::Not;

StepRecord step_record(uint64_t step, uint64_t iteration) {
  StepRecord record;
  record.step = step;
  record.iteration = iteration;
  record.source = "current";
  record.loss = 0.1 + static_cast<double>(step);
  record.grad_norm = 1.0 / 3.0;
  record.distillation.student_mass = 0.97;
  return record;
}

IterationRecord iteration_record(uint64_t iteration, uint64_t step) {
  IterationRecord record;
  record.iteration = iteration;
  record.step = step;
  record.source = "mix(current,bank:\"odd\"\n.jsonl)";
  record.trigger.distance = 2.5;
  record.trigger.noise = 5.0;
  record.trigger.ratio = 0.5;
  record.trigger.qualifies = true;
  record.trigger.watched = {{.name = "kl", .qualifies = false, .consecutive = 0},
                            {.name = "fixed", .qualifies = true, .consecutive = 3, .tau = 1}};
  record.alarms = {"one", "two"};
  return record;
}

// Two iterations of two steps.
void write_run(const Path& path) {
  MetricsFile file(path);
  for (uint64_t iteration : {1u, 2u}) {
    file.append(step_record(2 * iteration - 1, iteration));
    file.append(step_record(2 * iteration, iteration));
    file.append(iteration_record(iteration, 2 * iteration));
  }
}

TEST(MetricsLine, CarriesTheNamesOfTheInterface) {
  const Json step = parse_json(metrics_line(step_record(3, 1)), "line");
  EXPECT_EQ(step["kind"], "step");
  EXPECT_EQ(step["step"], 3);
  for (const char* name :
       {"loss", "grad_norm", "actor/grad_norm", "actor/distillation/student_mass", "perf/throughput"})
    EXPECT_TRUE(step.contains(name)) << name;
  const Json iteration = parse_json(metrics_line(iteration_record(1, 4)), "line");
  EXPECT_EQ(iteration["kind"], "iteration");
  for (const char* name : {"loss", "grad_norm", "D", "V", "ratio", "source", "response_length/mean",
                           "response_length/clip_ratio", "actor/distillation/teacher_mass",
                           "actor/distillation/overlap_ratio", "actor/distillation/kl", "timing_s/gen",
                           "perf/peak_memory_bytes", "C", "U", "N", "M", "skipped_steps"})
    EXPECT_TRUE(iteration.contains(name)) << name;
  EXPECT_FALSE(iteration.contains("tau")) << "absent until the trigger is set";
  EXPECT_EQ(iteration["U"], 4);
}

TEST(MetricsLine, NamesAreUnique) {
  std::set<std::string> names;
  IterationRecord record;
  record.fields([&](std::string_view name, auto&, std::string_view meaning) {
    EXPECT_TRUE(names.emplace(name).second) << name;
    EXPECT_FALSE(meaning.empty()) << name;
  });
}

TEST(MetricsFile, ReadsBackWhatWasWritten) {
  test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  write_run(path);
  const Metrics metrics = read_metrics(path);
  ASSERT_EQ(metrics.iterations.size(), 2u);
  EXPECT_TRUE(metrics.open_steps.empty());
  const IterationRecord& last = metrics.iterations[1];
  ASSERT_EQ(last.steps.size(), 2u);
  EXPECT_EQ(metrics_line(last.steps[1]), metrics_line(step_record(4, 2)));
  EXPECT_EQ(metrics_line(last), metrics_line(iteration_record(2, 4)));
  EXPECT_EQ(last.steps[1].grad_norm, 1.0 / 3.0) << "exact to the last bit";
}

TEST(MetricsFile, WatchedTriggersAreAListOfObjects) {
  const Json line = parse_json(metrics_line(iteration_record(1, 4)), "line");
  EXPECT_EQ(line["watched"], Json::parse(R"([{"name": "kl", "qualifies": false, "consecutive": 0},
                                             {"name": "fixed", "qualifies": true, "consecutive": 3, "tau": 1}])"));
  EXPECT_THAT(metrics_line(IterationRecord{}), Not(HasSubstr("watched")));
  test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  write_run(path);
  EXPECT_EQ(read_metrics(path).iterations[0].trigger.watched, iteration_record(1, 2).trigger.watched);
  for (const char* broken : {"3", "[3]", R"([{"name": 3}])"}) {
    write_file_atomically(
        path, std::string(R"({"kind":"iteration","iteration":1,"step":4,"watched":)") + broken + "}\n");
    EXPECT_THROW((void)read_metrics(path), Error) << broken;
  }
}

TEST(MetricsFile, NonFiniteNumbersAreNullAndReadAsNaN) {
  test::TemporaryDirectory directory;
  StepRecord record = step_record(1, 1);
  record.grad_norm = std::numeric_limits<double>::infinity();
  EXPECT_THAT(metrics_line(record), HasSubstr("\"grad_norm\":null"));
  MetricsFile(directory / "m.jsonl").append(record);
  EXPECT_TRUE(std::isnan(read_metrics(directory / "m.jsonl").open_steps.at(0).grad_norm));
}

TEST(MetricsFile, ATornLastLineIsIgnoredByReadersAndCutByTheWriter) {
  test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  write_run(path);
  const std::string whole = read_file(path);
  write_file_atomically(path, whole + "{\"kind\":\"step\",\"st");
  EXPECT_EQ(read_metrics(path).iterations.size(), 2u);
  MetricsFile(path).append(step_record(5, 3));
  EXPECT_EQ(read_file(path), whole + metrics_line(step_record(5, 3)) + "\n");
}

TEST(MetricsFile, IsCutBackToAStepAndKeepsTheCutLinesAside) {
  test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  write_run(path);
  EXPECT_EQ(cut_metrics_back(path, 4), 0u);
  EXPECT_EQ(cut_metrics_back(path, 2), 3u);
  const Metrics metrics = read_metrics(path);
  ASSERT_EQ(metrics.iterations.size(), 1u);
  EXPECT_TRUE(metrics.open_steps.empty());
  EXPECT_EQ(read_metrics(directory / "metrics.discarded.jsonl").iterations.size(), 1u);
}

TEST(MetricsFile, IsCutBackInsideAnIteration) {
  test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  write_run(path);
  EXPECT_EQ(cut_metrics_back(path, 3), 2u);
  const Metrics metrics = read_metrics(path);
  EXPECT_EQ(metrics.iterations.size(), 1u);
  ASSERT_EQ(metrics.open_steps.size(), 1u);
  EXPECT_EQ(metrics.open_steps[0].step, 3u);
}

TEST(MetricsFile, CuttingAnAbsentFileIsNothing) {
  test::TemporaryDirectory directory;
  EXPECT_EQ(cut_metrics_back(directory / "metrics.jsonl", 3), 0u);
}

TEST(MetricsFile, RefusesAForeignLineWithItsPlace) {
  test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  write_file_atomically(path, metrics_line(step_record(1, 1)) + "\n{\"kind\":\"step\",\"loss\":\"low\"}\n");
  try {
    (void)read_metrics(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("metrics.jsonl:2: loss is \"low\", expected a number"));
  }
}

TEST(Scalars, LeaveOutTextsAndAbsentValues) {
  const Scalars scalars = scalars_of(iteration_record(1, 4));
  const auto value_of = [&](const std::string& name) {
    for (const auto& [tag, value] : scalars)
      if (tag == name) return value;
    return -1.0;
  };
  EXPECT_EQ(value_of("D"), 2.5);
  EXPECT_EQ(value_of("qualifies"), 1.0);
  EXPECT_EQ(value_of("tau"), -1.0);
  EXPECT_EQ(value_of("source"), -1.0);
  EXPECT_EQ(value_of("step"), -1.0);
}

TEST(MetricsReference, IsTheTableInTheDocuments) {
  const std::string document = read_file(Path(ROPD_SOURCE_DIR) / "docs/formats.md");
  EXPECT_NE(document.find(metrics_reference_markdown()), std::string::npos)
      << "docs/formats.md, section metrics.jsonl, must contain:\n"
      << metrics_reference_markdown();
}

std::string lines_of(std::initializer_list<uint64_t> steps) {
  std::string text;
  for (const uint64_t step : steps) {
    StepRecord record;
    record.step = step;
    text += metrics_line(record) + "\n";
  }
  return text;
}

TEST(RestoreMetrics, PutsACheckpointsLinesWhereTheFileLostSome) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl", copy = directory / "copy.jsonl";
  write_file_atomically(copy, lines_of({1, 2, 3}));
  write_file_atomically(path, lines_of({1, 2, 3, 4}));
  EXPECT_EQ(restore_metrics(path, copy), "") << "more than the checkpoint has is no loss";
  write_file_atomically(path, lines_of({1, 3, 4}) + "{\"torn");
  EXPECT_EQ(restore_metrics(path, copy), path.string() + ":2");
  EXPECT_EQ(read_file(path), lines_of({1, 2, 3}));
  EXPECT_EQ(read_file(directory / "metrics.discarded.jsonl"), lines_of({1, 3, 4}));
  std::filesystem::remove(path);
  EXPECT_EQ(restore_metrics(path, copy), path.string() + ":1");
  EXPECT_EQ(read_file(path), lines_of({1, 2, 3}));
}

TEST(MetricsDamage, NamesTheFirstLineThatACheckpointHoldsOtherwise) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  const std::vector<CheckpointEntry> checkpoints = {{2, directory / "step-2"}, {3, directory / "step-3"}};
  for (const auto& entry : checkpoints) std::filesystem::create_directory(entry.path);
  write_file_atomically(path, lines_of({1, 2, 3, 4}));
  EXPECT_EQ(metrics_damage(path, checkpoints), "") << "checkpoints of an earlier version hold none";
  write_file_atomically(checkpoints[0].path / kMetricsCopy, lines_of({1, 2}));
  write_file_atomically(checkpoints[1].path / kMetricsCopy, lines_of({1, 2, 3}));
  EXPECT_EQ(metrics_damage(path, checkpoints), "");
  std::string changed = lines_of({1, 2, 3, 4});
  changed[changed.find("\"loss\":0", changed.find('\n')) + 7] = '7';
  write_file_atomically(path, changed);
  EXPECT_THAT(metrics_damage(path, checkpoints),
              AllOf(testing::StartsWith(path.string() + ":2: "), HasSubstr("step-3/metrics.jsonl")));
  write_file_atomically(checkpoints[1].path / kMetricsCopy, changed);
  EXPECT_THAT(metrics_damage(path, checkpoints), HasSubstr("step-2/metrics.jsonl"));
}

TEST(MetricsFile, KnowsItsLinesWhateverBecomesOfTheFile) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "metrics.jsonl";
  write_file_atomically(path, lines_of({1}));
  MetricsFile file(path);
  StepRecord record;
  record.step = 2;
  file.append(record);
  write_file_atomically(path, "");
  EXPECT_EQ(file.text(), lines_of({1, 2}));
}

TEST(FindGap, NamesTheFirstStepOrIterationThatIsMissing) {
  const auto metrics = [](std::initializer_list<uint64_t> steps) {
    Metrics m;
    for (const uint64_t step : steps) m.open_steps.emplace_back().step = step;
    return m;
  };
  EXPECT_EQ(find_gap(metrics({1, 2, 3}), 0, 3), "");
  EXPECT_EQ(find_gap(metrics({8, 9}), 7, 9), "");
  EXPECT_EQ(find_gap(metrics({1, 4}), 0, 4), "no line of step 2 .. 3");
  EXPECT_EQ(find_gap(metrics({1, 2}), 0, 3), "no line of step 3");
  Metrics whole = metrics({});
  for (const uint64_t iteration : {1, 3}) {
    auto& record = whole.iterations.emplace_back();
    record.iteration = iteration;
    record.steps.emplace_back().step = iteration == 1 ? 1 : 2;
  }
  EXPECT_EQ(find_gap(whole, 0, 2), "no line of iteration 2");
}

}  // namespace
}  // namespace ropd::io
