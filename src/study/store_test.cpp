#include "study/store.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::study {
namespace {

TEST(Store, FindsStatesByIdentityAndTheirCheckpointsWhereTheyWereKept) {
  const test::TemporaryDirectory directory;
  Store store(directory / "study");
  std::filesystem::create_directories(store.run("b") / "checkpoints" / "step-00008");
  write_file_atomically(store.run("b") / "checkpoints" / "step-00008" / "MANIFEST.json", "{}");
  store.add_run("b", {"s0", "s1", "s2"}, {0, 4, 8});
  store.refresh();
  ASSERT_TRUE(store.find_history("s1").has_value());
  EXPECT_EQ(store.find_history("s1")->iteration, 1u);
  EXPECT_FALSE(store.find_state("s1").has_value()) << "its checkpoint was not kept";
  ASSERT_TRUE(store.find_state("s2").has_value());
  EXPECT_EQ(store.find_state("s2")->checkpoint, store.run("b") / "checkpoints" / "step-00008");
  EXPECT_FALSE(store.find_history("s0").has_value()) << "the initial student is no state of a run";
  EXPECT_TRUE(store.is_done({.id = "s2"}));
  EXPECT_FALSE(store.is_done({.id = "s1"}));
}

TEST(Store, RefusesAForeignFile) {
  const test::TemporaryDirectory directory;
  Store store(directory / "study");
  std::filesystem::create_directories(store.run("x"));
  write_file_atomically(store.run("x") / "states.json", "{\"format\": 2}");
  EXPECT_THROW(store.refresh(), Error);
}

// Another step is another checkpoint.
TEST(Store, RefusesStatesThatWereChanged) {
  const test::TemporaryDirectory directory;
  Store store(directory / "study");
  std::filesystem::create_directories(store.run("b"));
  store.add_run("b", {"s0", "s1", "s2"}, {0, 4, 8});
  EXPECT_NO_THROW(store.refresh());
  const Path path = store.run("b") / "states.json";
  std::string text = read_file(path);
  text.replace(text.find("\"step\": 8"), 9, "\"step\": 4");
  write_file_atomically(path, text);
  try {
    store.refresh();
    FAIL() << "believed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path.string() + ": its content does not fit its checksum"));
  }
}

}  // namespace
}  // namespace ropd::study
