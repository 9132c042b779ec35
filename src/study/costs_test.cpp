#include "study/costs.h"

#include <gtest/gtest.h>

#include "support/tiny_world.h"

namespace ropd::study {
namespace {

class Costs : public testing::Test {
 protected:
  const test::TinyWorld world;
  StudyFile file() const {
    write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
    write_file_atomically(
        world.path("study.yaml"),
        "name: n\nbase: base.yaml\noutput: " + world.path("out").string() +
            "\nmethods:\n  - {name: current, stages: [{source: current}]}\n  - {name: fixed, "
            "stages: [{source: current, iterations: 3}, {source: initial}]}\n");
    return load_study(world.path("study.yaml"));
  }
};

TEST_F(Costs, OfTrainingCountTheIterationsOfThePieceOnly) {
  const StudyFile study = file();
  const auto runs = expand_runs(study);
  InputCatalog inputs;
  const Store store(study.config.output);
  const Plan plan = make_plan(study, runs, inputs, store);
  CostEstimator costs(study, runs, 1e9);
  const uint64_t batch = runs[0].config.train.responses_per_iteration;
  uint64_t rollouts = 0;
  for (const Node& node : plan.graph.nodes)
    if (node.kind == NodeKind::training) rollouts += costs.of(plan, node).rollouts;
  EXPECT_EQ(rollouts, (4 + 1) * batch) << "four of current, and the fourth of fixed behind the shared three";
  const NodeCost slow = CostEstimator(study, runs, 1e6).of(plan, plan.graph.nodes.back());
  // All but what waits for memory follows the speed of products.
  EXPECT_NEAR(slow.seconds, 1000 * costs.of(plan, plan.graph.nodes.back()).seconds, 0.01 * slow.seconds);
}

TEST(Stopwatches, CountProcessorTimeOfThisProcess) {
  const Stopwatch watch;
  volatile double sum = 0;
  while (watch.spent().processor_seconds < 0.01) sum = sum + 1;
  EXPECT_GT(watch.spent().seconds, 0);
}

}  // namespace
}  // namespace ropd::study
