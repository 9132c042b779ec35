#include "curriculum/trigger.h"

#include <gtest/gtest.h>

#include "curriculum/noise_trigger.h"

namespace ropd::curriculum {
namespace {

// Recorded iterations: D / V of each, or a negative number where nothing was compared.
std::vector<IterationRecord> trace(const std::vector<double>& ratios) {
  std::vector<IterationRecord> records;
  for (const double ratio : ratios) {
    IterationRecord record;
    record.iteration = records.size() + 1;
    if (ratio >= 0) {
      record.trigger.distance = ratio * 2;
      record.trigger.noise = 2;
    }
    records.push_back(record);
  }
  return records;
}

std::optional<uint64_t> tau_of(const std::vector<double>& ratios) {
  NoiseTrigger trigger({.persistence = 2});
  return find_tau(trigger, trace(ratios));
}

TEST(FindTau, IsTheSecondOfTwoQualifyingComparisonsInARow) {
  EXPECT_EQ(tau_of({-1, 1, 1.5, 1, 0.5, 1}), 5u);
  EXPECT_EQ(tau_of({-1, 1, 1}), 3u);
  EXPECT_EQ(tau_of({-1, 1, 1.5, 1}), std::nullopt);
  EXPECT_EQ(tau_of({-1, 1, -1, 1, 1}), 5u);
}

TEST(Evidence, IsReadFromARecord) {
  IterationRecord record = trace({0.5}).front();
  record.trigger.within = 0.25;
  record.trigger.note = "why";
  record.distillation.kl_candidates = 0.125;
  record.response_length_mean = 77;
  const Evidence evidence = evidence_of(record);
  EXPECT_EQ(evidence.iteration, 1u);
  EXPECT_EQ(evidence.gradients.within, 0.25);
  EXPECT_EQ(evidence.gradients.distance, 1.0);
  EXPECT_EQ(evidence.gradients.noise, 2.0);
  EXPECT_EQ(evidence.gradients.note, "why");
  EXPECT_EQ(evidence.kl, 0.125);
  EXPECT_EQ(evidence.length, 77);
  EXPECT_TRUE(evidence.counts);
}

}  // namespace
}  // namespace ropd::curriculum
