#include "model/workspace.h"

#include <gtest/gtest.h>

#include "support/naive_model.h"

namespace ropd::model {
namespace {

TEST(Workspace, RotationsGrowInStepsAndKeepWhatIsThere) {
  const ModelConfig config = test::tiny_config(Architecture::qwen3);
  Workspace workspace;
  EXPECT_EQ(workspace.rope_for(config, 10).num_positions, 20);
  EXPECT_EQ(workspace.rope_for(config, 20).num_positions, 20);
  EXPECT_EQ(workspace.rope_for(config, 200).num_positions, config.max_position_embeddings);
}

TEST(Workspace, ThreadsKeepTheirMemoryWhenMoreAreAskedFor) {
  Workspace workspace;
  workspace.provide_threads(2);
  const Workspace* const first = workspace.of_threads[0].get();
  workspace.provide_threads(3);
  workspace.provide_threads(1);
  ASSERT_EQ(workspace.of_threads.size(), 3u);
  EXPECT_EQ(workspace.of_threads[0].get(), first);
}

}  // namespace
}  // namespace ropd::model
