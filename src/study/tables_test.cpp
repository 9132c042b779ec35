#include "study/tables.h"

#include <gmock/gmock.h>

namespace ropd::study {
namespace {

using testing::ElementsAre;

TEST(Judge, ComparesSignAndInterval) {
  EXPECT_EQ(judge(stats::Interval{2, 1, 3}, 4.4), Verdict::same_and_significant);
  EXPECT_EQ(judge(stats::Interval{-2, -3, -1}, -4.4), Verdict::same_and_significant);
  EXPECT_EQ(judge(stats::Interval{2, -1, 5}, 4.4), Verdict::same_sign);
  EXPECT_EQ(judge(stats::Interval{-2, -3, -1}, 4.4), Verdict::opposite);
  EXPECT_EQ(judge(std::nullopt, 4.4), Verdict::not_measured);
  EXPECT_EQ(verdict_text(Verdict::same_sign), "same sign, not significant");
}

TEST(Rows, JoinRepetitionsAndKeepOtherAxesApart) {
  StudyConfig config;
  config.methods = {{.name = "grid"}};
  config.axes = {{.name = "N", .values = {{"8", {}}, {"48", {}}}},
                 {.name = "order", .repeats = true, .values = {{"1", {}}, {"2", {}}}}};
  std::vector<study::Run> runs;
  for (const char* n : {"8", "48"})
    for (const char* order : {"1", "2"}) runs.push_back({.method = 0, .values = {n, order}});
  const auto rows = rows_of(config, runs);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].name, "grid@48");
  EXPECT_THAT(rows[1].runs, ElementsAre(2, 3));
}

}  // namespace
}  // namespace ropd::study
