#include "train/verify_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tiny_world.h"

namespace ropd::train {
namespace {

// What it finds in runs is in session_integrity_test.cpp.
TEST(VerifyRun, OfNoRunIsAnError) {
  const test::TemporaryDirectory directory;
  EXPECT_THAT(test::error_of([&] { (void)verify_run(directory.path()); }), testing::HasSubstr("has no config.yaml"));
}

}  // namespace
}  // namespace ropd::train
