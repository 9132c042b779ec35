#include "study/forecast.h"

#include <gtest/gtest.h>

namespace ropd::study {
namespace {

TEST(Forecasts, ScaleEveryKindByWhatWasMeasuredOfIt) {
  Forecast forecast;
  forecast.expect("a", NodeKind::training, 10);
  forecast.expect("b", NodeKind::training, 30);
  forecast.expect("c", NodeKind::evaluation, 5);
  EXPECT_FALSE(forecast.seconds_left().has_value()) << "nothing was measured";
  forecast.made("a", 20);
  EXPECT_DOUBLE_EQ(*forecast.seconds_left(), 60 + 10) << "an unknown kind goes by all";
  forecast.expect("d", NodeKind::evaluation, 7);
  forecast.made("c", 1);
  EXPECT_DOUBLE_EQ(*forecast.seconds_left(), 60 + 7 * 0.2);
  forecast.forget("b");
  EXPECT_DOUBLE_EQ(*forecast.seconds_left(), 7 * 0.2);
  EXPECT_EQ(forecast.num_made(), 2u);
  EXPECT_EQ(forecast.num_left(), 1u);
}

TEST(Forecasts, CountSharedPiecesOnce) {
  Forecast forecast;
  forecast.expect("a", NodeKind::training, 10);
  forecast.expect("a", NodeKind::training, 10);
  forecast.expect("b", NodeKind::training, 10);
  forecast.made("b", 10);
  EXPECT_DOUBLE_EQ(*forecast.seconds_left(), 10);
  forecast.made("unknown", 5);
  EXPECT_EQ(forecast.num_made(), 1u);
}

}  // namespace
}  // namespace ropd::study
