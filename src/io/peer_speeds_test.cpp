#include "io/peer_speeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::io {
namespace {

TEST(PeerSpeeds, AreReadFromLlamaBench) {
  const auto speeds = parse_peer_speeds(R"([
    {"build_commit": "abc", "n_prompt": 512, "n_gen": 0, "avg_ts": 301.5, "samples_ts": [300, 303]},
    {"build_commit": "abc", "n_prompt": 0, "n_gen": 128, "avg_ts": 24.4},
    {"build_commit": "abc", "n_prompt": 512, "n_gen": 128, "avg_ts": 99}
  ])",
                                        "peers.json");
  EXPECT_EQ(speeds, (PeerSpeeds{{"prefill 512", 301.5}, {"decode 1", 24.4}}));
}

TEST(PeerSpeeds, AreReadFromLinesOfBothProgramsAndTheFastestCounts) {
  const auto speeds = parse_peer_speeds(
      "{\"n_prompt\": 0, \"n_gen\": 64, \"avg_ts\": 20}\n\n"
      "{\"pp\": 32, \"tg\": 32, \"pl\": 8, \"speed_pp\": 1, \"speed_tg\": 97.5}\n"
      "{\"pp\": 64, \"tg\": 32, \"pl\": 8, \"speed_pp\": 1, \"speed_tg\": 103.0}\n"
      "{\"pp\": 32, \"tg\": 32, \"pl\": 1, \"speed_pp\": 1, \"speed_tg\": 19}\n",
      "peers.jsonl");
  EXPECT_EQ(speeds, (PeerSpeeds{{"decode 1", 20}, {"decode 8", 103}}));
}

std::string failure_of(const char* text) {
  try {
    (void)parse_peer_speeds(text, "peers.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

TEST(PeerSpeeds, OfAnythingElseAreRefusedWithThePlace) {
  using testing::HasSubstr;
  EXPECT_THAT(failure_of(""), HasSubstr("peers.json: no measurement"));
  EXPECT_THAT(failure_of("[]"), HasSubstr("peers.json: no measurement"));
  EXPECT_THAT(failure_of("[{\"n_prompt\": 1, \"n_gen\": 0}]"), HasSubstr("entry 0: no number \"avg_ts\""));
  EXPECT_THAT(failure_of("[{\"n_prompt\": 1, \"n_gen\": 0, \"avg_ts\": \"fast\"}]"),
              HasSubstr("no number \"avg_ts\""));
  EXPECT_THAT(failure_of("[{\"n_prompt\": 1, \"n_gen\": 0, \"avg_ts\": -1}]"),
              HasSubstr("-1 tokens a second"));
  EXPECT_THAT(failure_of("[3]"), HasSubstr("expected an object, got number"));
  EXPECT_THAT(failure_of("{\"pl\": 1e30, \"speed_tg\": 5}"), HasSubstr("peers.json:1: "));
  EXPECT_THAT(failure_of("| model | t/s |"), HasSubstr("peers.json:1"));
  EXPECT_THAT(failure_of("[{]"), HasSubstr("peers.json"));
}

}  // namespace
}  // namespace ropd::io
