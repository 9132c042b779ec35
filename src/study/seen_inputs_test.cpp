#include "study/seen_inputs.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::study {
namespace {

using Contents = std::map<std::string, std::string>;

std::string refusal(const Path& folder, const Contents& contents, bool accepts_changes = false) {
  try {
    note_inputs(folder, contents, accepts_changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SeenInputs, AnotherContentIsRefusedUntilItIsAccepted) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(refusal(folder.path(), {{"model a", "1"}}), "");
  EXPECT_EQ(refusal(folder.path(), {{"model b", "2"}}), "") << "another study in the same folder";
  EXPECT_THAT(refusal(folder.path(), {{"model a", "3"}}), testing::StartsWith("model a: is not what "));
  EXPECT_EQ(refusal(folder.path(), {{"model a", "1"}}), "") << "put back";
  EXPECT_EQ(refusal(folder.path(), {{"model a", "3"}}, true), "");
  EXPECT_EQ(refusal(folder.path(), {{"model a", "3"}, {"model b", "2"}}), "");
}

TEST(SeenInputs, PathsNeedNotBeUtf8) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(refusal(folder.path(), {{"model /\xff", "1"}}), "");
  EXPECT_EQ(refusal(folder.path(), {{"model /\xff", "1"}, {"model b", "2"}}), "");
  EXPECT_THAT(refusal(folder.path(), {{"model /\xff", "3"}}), testing::HasSubstr("is not what "));
}

TEST(SeenInputs, ADamagedRecordIsRefused) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(refusal(folder.path(), {{"model a", "1"}}), "");
  std::string text = read_file(folder / "inputs.json");
  text.replace(text.find("model a"), 7, "model b");
  write_file_atomically(folder / "inputs.json", text);
  EXPECT_THAT(refusal(folder.path(), {{"model a", "1"}}), testing::HasSubstr("inputs.json: its content"));
  write_file_atomically(folder / "inputs.json", "[]");
  EXPECT_THAT(refusal(folder.path(), {}), testing::HasSubstr("expected a JSON object"));
}

}  // namespace
}  // namespace ropd::study
