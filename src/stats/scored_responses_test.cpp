#include "stats/scored_responses.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::stats {
namespace {

std::string refusal(const Path& path) {
  try {
    check_scored_responses(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ScoredResponses, AnEditedFileIsRefused) {
  const test::TemporaryDirectory folder;
  const std::string responses = "{\"text\":\"1\"}\n";
  write_file_atomically(folder / "summary.json",
                        "{\"about\": {\"responses_sha256\": \"" + sha256(responses) + "\"}}");
  EXPECT_EQ(refusal(folder.path()), "") << "responses that lie elsewhere are not compared";
  write_file_atomically(folder / "responses.jsonl", responses);
  EXPECT_EQ(refusal(folder.path()), "");
  EXPECT_EQ(refusal(folder / "summary.json"), "");
  write_file_atomically(folder / "responses.jsonl", "{\"text\":\"2\"}\n");
  EXPECT_THAT(refusal(folder.path()), testing::HasSubstr("responses.jsonl: is not what was sampled"));
}

TEST(ScoredResponses, OfUnknownOriginAreNotCompared) {
  const test::TemporaryDirectory folder;
  write_file_atomically(folder / "responses.jsonl", "x\n");
  for (const char* summary : {"{}", "{\"about\": null}", "{\"about\": {\"seed\": 1}}", "[]"}) {
    write_file_atomically(folder / "summary.json", summary);
    EXPECT_EQ(refusal(folder.path()), "") << summary;
  }
}

}  // namespace
}  // namespace ropd::stats
