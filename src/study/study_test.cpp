// Whole studies on the tiny world: what is shared is equal to what runs of their own would make, and only
// what changed is made again.
#include "study/study.h"

#include <gmock/gmock.h>

#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/stop.h"
#include "support/adapters.h"
#include "support/whole_run.h"
#include "train/adapter_learner.h"

namespace ropd::study {
namespace {

using test::final_weights;
using testing::HasSubstr;

class Studies : public testing::Test {
 protected:
  Studies() {
    set_log_level(LogLevel::quiet);
    set_progress_mode(ProgressMode::quiet);
    write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
    write_file_atomically(world.path("suite.yaml"),
                          "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                          "  - {name: first, file: queries.jsonl, samples: 2}\n");
  }
  ~Studies() override {
    clear_stop_request();
    set_log_level(LogLevel::info);
    set_progress_mode(ProgressMode::automatic);
  }
  const test::TinyWorld world;

  static constexpr const char* kMethods = R"(methods:
  - {name: current, stages: [{source: current}]}
  - {name: fixed, stages: [{source: current, iterations: 3}, {source: initial}]}
  - {name: R-OPD, set: [trigger.persistence=1], stages: [{source: current, until: trigger}, {source: initial}]}
)";

  Study study(const std::string& methods = kMethods, const std::string& more = "",
              const std::string& output = "study") const {
    write_file_atomically(world.path("study.yaml"),
                          "name: tiny\nbase: base.yaml\noutput: " + world.path(output).string() +
                              "\nset: [train.iterations=7]\n" + methods + evaluations() + more);
    return Study(world.path("study.yaml"));
  }
  std::string evaluations() const {
    return "evaluations:\n  - {name: tiny, suite: " + world.path("suite.yaml").string() +
           ", data: " + world.path("").string() +
           ", max_tokens: 8, budgets: [4, 8], precision: f32, models: true}\n";
  }
  // Weights at the end of a run of the study.
  static std::string end_of(Study& study, size_t run) {
    const Plan plan = study.plan();
    const auto found = study.store().find_state(plan.runs[run].states.back());
    return found ? sha256_file(found->checkpoint / "model" / "model.safetensors") : "not there";
  }
  // Nodes that are not done, by id.
  static std::set<std::string> open_nodes(Study& study) {
    std::set<std::string> open;
    const Plan plan = study.plan();
    for (const Node& node : plan.graph.nodes)
      if (!study.store().is_done(node)) open.insert(node.id);
    return open;
  }
};

TEST_F(Studies, GiveEveryMethodTheBitsOfARunOfItsOwn) {
  Study all = study();
  ASSERT_TRUE(all.work({}));
  const auto real = [&](const std::string& name, std::vector<std::string> more) {
    more.push_back("train.iterations=7");
    const auto config = world.config(name, more);
    test::run_to_the_end(config);
    return final_weights(config);
  };
  EXPECT_EQ(end_of(all, 0), real("current", {"curriculum.stages=[{source: current}]"}));
  EXPECT_EQ(end_of(all, 1),
            real("fixed", {"curriculum.stages=[{source: current, iterations: 3}, {source: initial}]"}));
  EXPECT_EQ(end_of(all, 2), real("ropd", {"trigger.persistence=1"}));
  const Plan plan = all.plan();
  ASSERT_TRUE(plan.runs[2].tau.has_value());
  EXPECT_EQ(plan.runs[2].tau,
            io::read_metrics(world.path("ropd") / "metrics.jsonl").iterations.back().trigger.tau);
  EXPECT_TRUE(open_nodes(all).empty());
  EXPECT_THAT(all.write_tables().text, HasSubstr("R-OPD"));
}

TEST_F(Studies, OtherTriggersAndRatiosThatMoveGiveTheBitsOfRunsOfTheirOwn) {
  const std::string plateau = "trigger.kind=kl_plateau, trigger.tolerance=0.5, trigger.earliest=3";
  const std::string stages =
      "[{source: current, until: trigger}, {source: mix, of: [current, initial], ratio: "
      "[1, 0], ratio_to: [0, 1]}]";
  const std::string mix = "[{source: mix, of: [current, initial], ratio: [3, 1], ratio_to: [1, 3]}]";
  Study all =
      study("methods:\n  - {name: anneal, stages: " + mix + "}\n  - {name: plateau, set: [" + plateau +
                "], stages: " + stages + "}\n  - {name: current, stages: [{source: current}]}\n",
            "diagnoses:\n  - {name: kl, sources: [{name: theta0}], students: [{name: mid, method: "
            "anneal, iteration: 3}], samples: 1, positions: 2}\n");
  ASSERT_TRUE(all.work({}));
  const auto real = [&](const std::string& name, std::vector<std::string> more) {
    more.push_back("train.iterations=7");
    const auto config = world.config(name, more);
    test::run_to_the_end(config);
    return final_weights(config);
  };
  EXPECT_EQ(end_of(all, 0), real("anneal", {"curriculum.stages=" + mix})) << "cut behind iteration 3";
  EXPECT_EQ(end_of(all, 1), real("plateau", {"trigger.kind=kl_plateau", "trigger.tolerance=0.5",
                                             "trigger.earliest=3", "curriculum.stages=" + stages}));
  EXPECT_EQ(all.plan().runs[1].tau,
            io::read_metrics(world.path("plateau") / "metrics.jsonl").iterations.back().trigger.tau);
  EXPECT_TRUE(all.plan().runs[1].tau.has_value());
}

TEST_F(Studies, AMethodWithATriggerAloneFindsItToo) {
  Study alone = study(
      "methods:\n  - {name: R-OPD, set: [trigger.persistence=1], stages: [{source: current, until: trigger}, "
      "{source: initial}]}\n");
  ASSERT_TRUE(alone.work({}));
  const auto config = world.config("ropd", {"train.iterations=7", "trigger.persistence=1"});
  test::run_to_the_end(config);
  EXPECT_EQ(end_of(alone, 0), final_weights(config));
}

TEST_F(Studies, AChangedOptionRedoesItsDependentsAndNothingElse) {
  Study before = study();
  ASSERT_TRUE(before.work({}));
  // The objective of one method: its training, its evaluation; the bank and all others stay.
  std::string methods = kMethods;
  methods.replace(methods.find("name: fixed,"), 12, "name: fixed, set: [objective.clip=0.1],");
  Study after = study(methods);
  std::set<NodeKind> kinds;
  const Plan plan = after.plan();
  for (const Node& node : plan.graph.nodes)
    if (!after.store().is_done(node)) {
      kinds.insert(node.kind);
      EXPECT_THAT(node.label, HasSubstr("fixed"));
    }
  EXPECT_EQ(kinds, (std::set<NodeKind>{NodeKind::training, NodeKind::evaluation}));
  // A neutral one: nothing.
  methods = kMethods;
  methods.replace(methods.find("name: fixed,"), 12, "name: fixed, set: [alarms.drift=1],");
  Study same = study(methods);
  EXPECT_TRUE(open_nodes(same).empty());
}

TEST_F(Studies, AChangedInputIsRefusedUntilItIsAccepted) {
  const std::string methods = "methods:\n  - {name: current, stages: [{source: current}]}\n";
  Study before = study(methods);
  ASSERT_TRUE(before.work({}));
  const Path queries = world.path("queries.jsonl");
  std::string text = read_file(queries);
  const size_t begin = text.find('\n') + 1;
  write_file_atomically(queries, text.substr(begin) + text.substr(0, begin));
  Study after = study(methods);
  try {
    after.work({});
    FAIL() << "went on in silence";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is not what " + world.path("study").string() + " was made from"));
  }
  EXPECT_TRUE(after.work({.accepts_changed_inputs = true}));
  EXPECT_TRUE(open_nodes(after).empty());
}

TEST_F(Studies, ADamagedCheckpointIsNotEvaluated) {
  const std::string methods = "methods:\n  - {name: current, stages: [{source: current}]}\n";
  Study trained = study(methods);
  ASSERT_TRUE(trained.work({.until = NodeKind::training}));
  const Path weights = trained.store().find_state(trained.plan().runs[0].states.back())->checkpoint /
                       "model/model.safetensors";
  std::string bytes = read_file(weights);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  write_file_atomically(weights, bytes);
  try {
    trained.work({});
    FAIL() << "evaluated in silence";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.safetensors"));
  }
}

TEST_F(Studies, ANewOnsetReusesWhatIsThere) {
  Study before = study();
  ASSERT_TRUE(before.work({}));
  const std::string more =
      std::string(kMethods) +
      "  - {name: onset 5, stages: [{source: current, iterations: 5}, {source: initial}]}\n";
  Study after = study(more);
  const Plan plan = after.plan();
  size_t training = 0;
  for (const Node& node : plan.graph.nodes)
    if (!after.store().is_done(node) && node.kind == NodeKind::training) ++training;
  EXPECT_LE(training, 2u) << "its own two iterations, and those to iteration 5 where no checkpoint was kept";
  ASSERT_TRUE(after.work({}));
  const auto config = world.config(
      "onset",
      {"train.iterations=7", "curriculum.stages=[{source: current, iterations: 5}, {source: initial}]"});
  test::run_to_the_end(config);
  EXPECT_EQ(end_of(after, 3), final_weights(config));
}

TEST_F(Studies, AContinuationTakesOverAStateWithSettingsOfItsOwn) {
  Study continued = study(
      "methods:\n  - {name: current, stages: [{source: current}]}\n"
      "  - {name: no EOS, from: {method: current, iteration: 2}, set: [objective.eos=none, "
      "train.iterations=2], "
      "stages: [{source: initial}]}\n");
  ASSERT_TRUE(continued.work({}));
  const auto current =
      world.config("current", {"train.iterations=2", "curriculum.stages=[{source: current}]"});
  test::run_to_the_end(current);
  const auto rest = world.config(
      "rest", {"train.iterations=2", "curriculum.stages=[{source: initial}]", "objective.eos=none",
               "continue_from=" + (world.path("current") / "checkpoints" / "step-00006").string()});
  test::run_to_the_end(rest);
  EXPECT_EQ(end_of(continued, 1), final_weights(rest));
}

TEST_F(Studies, DiagnosesScoreStatesOnFixedPrefixes) {
  Study diagnosed =
      study("methods: [{name: current, stages: [{source: current}]}]\n",
            "diagnoses:\n  - {name: prefixes, samples: 2, positions: 4, sources: [{name: theta0}, {name: "
            "R, method: current}], students: [{name: theta0}, {name: R, method: current}]}\n");
  ASSERT_TRUE(diagnosed.work({}));
  const Plan plan = diagnosed.plan();
  ASSERT_EQ(plan.diagnoses.size(), 4u);
  for (const PlannedDiagnosis& planned : plan.diagnoses) {
    const Json cell = parse_json(read_file(diagnosed.store().diagnosis(planned.id)), "cell");
    EXPECT_GT(cell.at("kl").get<double>(), 0);
    EXPECT_EQ(cell.at("less_likely").get<double>() > 0, planned.student == 1) << "counted from the first";
  }
}

TEST_F(Studies, StopsOnRequestAndGoesOn) {
  Study stopped = study();
  request_stop();
  EXPECT_FALSE(stopped.work({}));
  clear_stop_request();
  EXPECT_TRUE(stopped.work({}));
  EXPECT_TRUE(open_nodes(stopped).empty());
}

TEST_F(Studies, DoPartsWhenAsked) {
  Study part = study();
  ASSERT_TRUE(part.work({.until = NodeKind::bank}));
  const Plan plan = part.plan();
  for (const Node& node : plan.graph.nodes)
    EXPECT_EQ(part.store().is_done(node), node.kind == NodeKind::bank) << node.label;
  ASSERT_TRUE(part.work({.only = "current"}));
  EXPECT_NE(end_of(part, 0), "not there");
  EXPECT_EQ(end_of(part, 1), "not there");
  EXPECT_THAT(part.status(), HasSubstr("open     training   training of fixed"));
  EXPECT_THAT(part.dry_run(1e9), HasSubstr("nodes to be made"));
}

// A run's adapter lies on its student, the teacher's on a base of its own.
TEST_F(Studies, RunAndTeacherMayBothBeAdapters) {
  const auto teacher = std::make_shared<const io::ModelDirectory>(world.path("teacher"));
  train::AdapterLearner learner(train::AdapterBase(teacher),
                                test::random_adapter(teacher->config(), {.rank = 2}, 5), {});
  learner.save_model(world.path("tuned"), "");
  std::filesystem::rename(world.path("teacher"), world.path("moved"));
  const std::string set =
      "[train.iterations=1, \"adapter={rank: 2}\", teacher=" + world.path("tuned").string() +
      ", teacher_base=" + world.path("moved").string() + "]";
  Study adapters =
      study("methods:\n  - {name: current, set: " + set + ", stages: [{source: current}]}\n",
            "diagnoses:\n  - {name: kl, sources: [{name: theta0}], students: [{name: end, method: current, "
            "iteration: 1}], samples: 1, positions: 2, probes: {trajectories: 1, minibatch: 1}}\n");
  ASSERT_TRUE(adapters.work({}));
  EXPECT_TRUE(open_nodes(adapters).empty());
}

}  // namespace
}  // namespace ropd::study
