#include "report/diagnosis_data.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

using ::testing::ElementsAre;

TEST(DiagnosisData, IsReadInFull) {
  const test::TemporaryDirectory directory;
  test::write_fake_diagnosis(directory / "d");
  const DiagnosisData data = read_diagnosis(directory / "d" / "diagnosis.json");
  EXPECT_EQ(data.label, "d");
  EXPECT_THAT(data.students, ElementsAre("theta0", "R20"));
  EXPECT_EQ(data.kl[1][0], 0.14);
  EXPECT_EQ(data.fit_and_shift[0].fit, 0.29);
  EXPECT_EQ(data.concentration[0].top[1], 0.9);
  EXPECT_EQ(data.concentration[0].rank_by, "R40");
  EXPECT_EQ(data.likelihood[0].cumulative.size(), 3u);
  EXPECT_EQ(data.norms[0].mean, 0.4);
  EXPECT_EQ(data.cosines[0].standard_error, 0.03);
}

TEST(DiagnosisData, PartsMayBeAbsentAndNumbersNull) {
  const test::TemporaryDirectory directory;
  const Path file = directory / "diagnosis.json";
  test::write_text(file, "{\"students\": [\"a\"], \"sources\": [\"b\"], \"kl\": [[null]]}");
  const DiagnosisData data = read_diagnosis(file);
  EXPECT_TRUE(std::isnan(data.kl[0][0]));
  EXPECT_TRUE(data.norms.empty());
}

TEST(DiagnosisData, WhatIsBrokenIsNamed) {
  const test::TemporaryDirectory directory;
  const Path file = directory / "diagnosis.json";
  for (const char* text :
       {"[]", "{\"students\": [1]}", "{\"students\": [\"a\"]}", "{\"kl\": {}}", "{\"probes\": [1]}",
        "{\"concentration\": [{\"source\": \"a\", \"first\": \"b\", \"second\": \"c\"}]}",
        "{\"likelihood\": [{\"source\": \"a\", \"from\": \"b\", \"to\": \"c\", \"cumulative\": [1]}]}"}) {
    test::write_text(file, text);
    EXPECT_THROW(read_diagnosis(file), Error) << text;
  }
}

}  // namespace
}  // namespace ropd::report
