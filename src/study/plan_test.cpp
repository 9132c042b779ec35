// What a plan says before anything is made; studies that are worked on are in study_test.cpp.
#include "study/plan.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/tiny_world.h"

namespace ropd::study {
namespace {

using testing::HasSubstr;

class Plans : public testing::Test {
 protected:
  const test::TinyWorld world;
  Plan plan(const std::string& text) const {
    write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
    write_file_atomically(world.path("study.yaml"),
                          "name: n\nbase: base.yaml\noutput: " + world.path("out").string() + "\n" + text);
    const StudyFile file = load_study(world.path("study.yaml"));
    const auto runs = expand_runs(file);
    InputCatalog inputs;
    Store store(file.config.output);
    return make_plan(file, runs, inputs, store);
  }
};

TEST_F(Plans, NodesBehindATriggerAppearWhenItIsKnown) {
  const Plan alone = plan("methods: [{name: R-OPD}]\n");
  ASSERT_EQ(alone.graph.nodes.size(), 1u);
  EXPECT_EQ(alone.graph.nodes[0].iteration, 1u) << "one iteration at a time";
  EXPECT_FALSE(alone.is_complete());
  const Plan beside = plan("methods: [{name: R-OPD}, {name: current, stages: [{source: current}]}]\n");
  ASSERT_EQ(beside.graph.nodes.size(), 1u);
  EXPECT_EQ(beside.graph.nodes[0].iteration, 4u) << "another run passes there anyway";
}

TEST_F(Plans, SeedsAndOrdersShareNothingButTheModels) {
  const Plan two = plan(
      "axes: [{name: order, values: [{name: 1, set: [seed=1, data.order_seed=1]}, {name: 2, set: [seed=2, "
      "data.order_seed=2]}]}]\nmethods: [{name: initial, stages: [{source: initial}]}]\n");
  size_t banks = 0;
  for (const Node& node : two.graph.nodes) banks += node.kind == NodeKind::bank;
  EXPECT_EQ(banks, 2u);
  EXPECT_EQ(two.graph.nodes.size(), 4u);
}

TEST_F(Plans, AnIterationThatARunDoesNotHaveIsRefused) {
  const auto ask = [&] {
    (void)plan(
        "methods: [{name: current, stages: [{source: current}]}]\ndiagnoses: [{name: d, sources: [{name: "
        "a}], "
        "students: [{name: b, method: current, iteration: 9}]}]\n");
  };
  EXPECT_THAT(test::error_of(ask), HasSubstr("d asks for iteration 9 of current, which has 4"));
}

}  // namespace
}  // namespace ropd::study
