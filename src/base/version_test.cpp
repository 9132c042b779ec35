#include "base/version.h"

#include <gtest/gtest.h>

namespace ropd {
namespace {

TEST(ProgramVersion, IsUnknownUntilMainSetsIt) {
  EXPECT_EQ(program_version().revision, "unknown");
  set_program_version({.number = "1.2.3", .revision = "abc"});
  EXPECT_EQ(program_version().number, "1.2.3");
  EXPECT_EQ(program_version().revision, "abc");
  set_program_version({});
}

}  // namespace
}  // namespace ropd
