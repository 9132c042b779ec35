#include "curriculum/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "curriculum/fixed_trigger.h"
#include "curriculum/noise_trigger.h"
#include "curriculum/plateau_trigger.h"

namespace ropd::curriculum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Source kCurrent{.kind = SourceKind::current};
const Source kInitial{.kind = SourceKind::initial};

Stage for_iterations(Source source, uint64_t iterations) { return {std::move(source), iterations, false}; }
Stage until_trigger(Source source = kCurrent) { return {std::move(source), std::nullopt, true}; }
Stage to_the_end(Source source) { return {std::move(source), std::nullopt, false}; }

Evidence comparison_of(double distance, double noise) {
  return {
      .gradients = {.minibatches = 4, .within = noise / 2, .distance = distance, .noise = noise, .note = ""}};
}
const Evidence kNoComparison{
    .gradients = {
        .minibatches = 4, .within = 1.0, .distance = {}, .noise = {}, .note = "no comparison: first"}};

Curriculum make(std::vector<Stage> stages, const CurriculumSettings& settings, uint64_t persistence = 2) {
  return {std::move(stages), settings,
          std::make_unique<NoiseTrigger>(RowSettings{.persistence = persistence})};
}

std::string sources_of(Curriculum& curriculum, const std::vector<Evidence>& comparisons) {
  std::string text;
  for (const Evidence& comparison : comparisons) {
    text += source_name(curriculum.source_of(curriculum.state().closed_iterations + 1))[0];
    curriculum.close_iteration(comparison);
  }
  return text;
}

std::string error_of(std::vector<Stage> stages, const CurriculumSettings& settings = {}) {
  try {
    (void)make(std::move(stages), settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const Evidence kYes = comparison_of(1, 2), kNo = comparison_of(3, 2);

TEST(Curriculum, ReplayStartsAfterTwoQualifyingComparisonsInARow) {
  Curriculum curriculum = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 8});
  EXPECT_EQ(sources_of(curriculum, {kNoComparison, kYes, kNo, kYes, kYes, {}, {}, {}}), "ccccciii");
  EXPECT_EQ(curriculum.state().tau, 5u);
  EXPECT_TRUE(curriculum.is_done());
}

TEST(Curriculum, TheFirstPossibleTriggerIsIterationThree) {
  Curriculum curriculum = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 4});
  EXPECT_EQ(sources_of(curriculum, {kNoComparison, kYes, kYes, {}}), "ccci");
  EXPECT_EQ(curriculum.state().tau, 3u);
}

TEST(Curriculum, WithoutATriggerTheRunStaysOnCurrentRollouts) {
  Curriculum curriculum = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 5});
  EXPECT_EQ(sources_of(curriculum, {kNoComparison, kYes, kNo, kYes, kNo}), "ccccc");
  EXPECT_FALSE(curriculum.state().tau.has_value());
}

TEST(Curriculum, ATriggerAtTheLastIterationIsRecordedButReplaysNothing) {
  Curriculum curriculum = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 3});
  EXPECT_EQ(sources_of(curriculum, {kNoComparison, kYes, kYes}), "ccc");
  EXPECT_EQ(curriculum.state().tau, 3u);
  EXPECT_TRUE(curriculum.is_done());
  EXPECT_FALSE(curriculum.is_watching());
}

TEST(Curriculum, IsNeverReversed) {
  Curriculum curriculum = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 6});
  EXPECT_EQ(sources_of(curriculum, {kNoComparison, kYes, kYes, kNo, kNo, kNo}), "ccciii");
  EXPECT_EQ(curriculum.state().tau, 3u);
}

TEST(Curriculum, PersistenceOfOneAndThreeAreObeyed) {
  Curriculum one = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 5}, 1);
  EXPECT_EQ(sources_of(one, {kNoComparison, kYes, {}, {}, {}}), "cciii");
  Curriculum three = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 6}, 3);
  EXPECT_EQ(sources_of(three, {kNoComparison, kYes, kYes, kYes, {}, {}}), "ccccii");
}

TEST(Curriculum, AMissingComparisonBreaksTheRow) {
  Curriculum curriculum = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 5});
  EXPECT_EQ(sources_of(curriculum, {kNoComparison, kYes, kNoComparison, kYes, kYes}), "ccccc");
  EXPECT_EQ(curriculum.state().tau, 5u);
}

TEST(Curriculum, RecordsHoldRatioVerdictAndTau) {
  Curriculum curriculum = make({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 5});
  const TriggerRecord first = curriculum.close_iteration(kNoComparison);
  EXPECT_EQ(first.note, "no comparison: first");
  EXPECT_FALSE(first.ratio || first.qualifies || first.tau);
  const TriggerRecord second = curriculum.close_iteration(comparison_of(1, 2));
  EXPECT_EQ(second.ratio, 0.5);
  EXPECT_EQ(second.qualifies, true);
  EXPECT_EQ(second.consecutive, 1u);
  const TriggerRecord third = curriculum.close_iteration(comparison_of(0, 0));
  EXPECT_FALSE(third.ratio.has_value());
  EXPECT_EQ(third.qualifies, true);
  EXPECT_EQ(third.tau, 3u);
  const TriggerRecord replay = curriculum.close_iteration({});
  EXPECT_EQ(replay.tau, 3u);
  EXPECT_FALSE(replay.distance || replay.consecutive);
  EXPECT_EQ(replay.note, "");
}

TEST(Curriculum, FixedStagesFollowTheirLengths) {
  Curriculum order =
      make({for_iterations(kCurrent, 2), for_iterations(kInitial, 2), for_iterations(kCurrent, 1)},
           {.total_iterations = 5});
  EXPECT_EQ(sources_of(order, std::vector<Evidence>(5)), "cciic");
  EXPECT_EQ(order.source_of(3), kInitial);
  EXPECT_EQ(order.stage_of(5), 2u);
  Curriculum fixed = make({for_iterations(kCurrent, 3), to_the_end(kInitial)}, {.total_iterations = 5});
  EXPECT_EQ(sources_of(fixed, std::vector<Evidence>(5)), "cccii");
}

TEST(Curriculum, WatchesCurrentIterationsUpToTheTriggerOnly) {
  Curriculum current = make({to_the_end(kCurrent)}, {});
  EXPECT_FALSE(current.is_watching());
  EXPECT_FALSE(current.can_watch());
  Curriculum always = make({to_the_end(kCurrent)}, {.watch_always = true});
  EXPECT_TRUE(always.is_watching());
  Curriculum late =
      make({for_iterations(kCurrent, 1), for_iterations(kInitial, 1), until_trigger(), to_the_end(kInitial)},
           {.total_iterations = 9});
  std::string watched;
  for (const Evidence& comparison : {kNoComparison, Evidence{}, kYes, kYes, Evidence{}}) {
    watched += late.is_watching() ? 'w' : '-';
    late.close_iteration(comparison);
  }
  EXPECT_EQ(watched, "w-ww-");
}

TEST(Curriculum, ComparisonsBeforeTheTriggerStageDoNotCount) {
  Curriculum curriculum =
      make({for_iterations(kCurrent, 3), until_trigger(), to_the_end(kInitial)}, {.total_iterations = 7});
  EXPECT_EQ(sources_of(curriculum, {kNoComparison, kYes, kYes, kYes, kYes, {}, {}}), "cccccii");
  EXPECT_EQ(curriculum.state().tau, 5u);
}

Curriculum make_watched(std::vector<Stage> stages, const CurriculumSettings& settings,
                        std::unique_ptr<Trigger> deciding, bool with_noise = true) {
  std::vector<WatchedTrigger> watched;
  watched.push_back({"fixed", std::make_unique<FixedTrigger>(2)});
  if (with_noise) watched.push_back({"noise", std::make_unique<NoiseTrigger>(RowSettings{.persistence = 1})});
  return {std::move(stages), settings, std::move(deciding), std::move(watched)};
}

TEST(Curriculum, OneTriggerDecidesAndTheOthersAreRecorded) {
  Curriculum curriculum = make_watched({until_trigger(), to_the_end(kInitial)}, {.total_iterations = 5},
                                       std::make_unique<FixedTrigger>(4));
  std::vector<TriggerRecord> records;
  std::string sources;
  for (const Evidence& evidence : {kNoComparison, kNo, kYes, kNo, Evidence{}}) {
    sources += source_name(curriculum.source_of(records.size() + 1))[0];
    records.push_back(curriculum.close_iteration(evidence));
  }
  EXPECT_EQ(sources, "cccci") << "that of iteration 4";
  EXPECT_EQ(records[4].tau, 4u);
  EXPECT_THAT(records[0].watched,
              ElementsAre(WatchedRecord{.name = "fixed", .qualifies = false, .consecutive = 0},
                          WatchedRecord{.name = "noise", .consecutive = 0}));
  EXPECT_THAT(records[3].watched,
              ElementsAre(WatchedRecord{.name = "fixed", .qualifies = true, .consecutive = 3, .tau = 2},
                          WatchedRecord{.name = "noise", .qualifies = false, .consecutive = 0, .tau = 3}));
  EXPECT_THAT(records[4].watched,
              ElementsAre(WatchedRecord{.name = "fixed", .tau = 2}, WatchedRecord{.name = "noise", .tau = 3}))
      << "stored rollouts say nothing";
  EXPECT_EQ(records[2].ratio, 0.5) << "D and V were observed for the one that watches";
}

TEST(Curriculum, GradientsAreObservedOnlyForTriggersThatReadThem) {
  const auto current = [](std::unique_ptr<Trigger> deciding, bool with_noise) {
    return make_watched({to_the_end(kCurrent)}, {}, std::move(deciding), with_noise).is_watching();
  };
  EXPECT_FALSE(current(std::make_unique<NoiseTrigger>(RowSettings{}), false)) << "nothing ends by it";
  EXPECT_TRUE(current(std::make_unique<FixedTrigger>(1), true));
  Curriculum plateau({until_trigger(), to_the_end(kInitial)}, {},
                     std::make_unique<PlateauTrigger>(RowSettings{}, PlateauSettings{}));
  EXPECT_FALSE(plateau.can_watch());
  EXPECT_FALSE(plateau.is_watching());
}

TEST(Curriculum, WatchedTriggersGoOnFromASavedState) {
  const auto start = [] {
    return make_watched({to_the_end(kCurrent)}, {.total_iterations = 5}, std::make_unique<FixedTrigger>(9));
  };
  Curriculum whole = start();
  const std::vector<Evidence> evidence = {kNoComparison, kYes, kNo, kYes};
  for (const Evidence& one : evidence) (void)whole.close_iteration(one);
  for (size_t stop = 0; stop <= evidence.size(); ++stop) {
    Curriculum first = start(), second = start();
    for (size_t i = 0; i < stop; ++i) (void)first.close_iteration(evidence[i]);
    second.restore(first.state());
    for (size_t i = stop; i < evidence.size(); ++i) (void)second.close_iteration(evidence[i]);
    EXPECT_EQ(second.state(), whole.state());
  }
  EXPECT_EQ(whole.state().watched[1].tau, 2u);
  Curriculum none = make({to_the_end(kCurrent)}, {.total_iterations = 5});
  EXPECT_THROW(none.restore(whole.state()), Error);
}

TEST(Curriculum, ATriggerThatMayNotComeSoonLetsABankBeFrozenInItsStage) {
  const Source recent{.kind = SourceKind::recent, .step = 20};
  const auto error_with = [&](std::unique_ptr<Trigger> trigger) -> std::string {
    try {
      (void)Curriculum({until_trigger(), to_the_end(recent)}, {}, std::move(trigger));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_with(std::make_unique<FixedTrigger>(5)), "no error");
  EXPECT_THAT(error_with(std::make_unique<FixedTrigger>(4)), HasSubstr("may begin after 4"));
  EXPECT_EQ(error_with(std::make_unique<NoiseTrigger>(RowSettings{.persistence = 2, .earliest = 5})),
            "no error");
}

TEST(Curriculum, GoesOnFromASavedStateAtEveryIteration) {
  const std::vector<Evidence> comparisons = {kNoComparison, kYes, kNo, kYes, kYes, {}, {}};
  const std::vector<Stage> stages = {until_trigger(), for_iterations(kInitial, 1), to_the_end(kCurrent)};
  Curriculum whole = make(stages, {.total_iterations = 7});
  const std::string expected = sources_of(whole, comparisons);
  for (size_t stop = 0; stop <= comparisons.size(); ++stop) {
    Curriculum first = make(stages, {.total_iterations = 7}), second = make(stages, {.total_iterations = 7});
    std::string sources =
        sources_of(first, {comparisons.begin(), comparisons.begin() + static_cast<long>(stop)});
    second.restore(first.state());
    sources += sources_of(second, {comparisons.begin() + static_cast<long>(stop), comparisons.end()});
    EXPECT_EQ(sources, expected);
    EXPECT_EQ(second.state(), whole.state());
  }
}

TEST(Curriculum, RefusesASavedStateOfOtherStages) {
  Curriculum other = make({for_iterations(kCurrent, 2), to_the_end(kInitial)}, {.total_iterations = 7});
  EXPECT_THROW(other.restore({.closed_iterations = 5, .stage_begins = {1, 4}, .tau = {}, .trigger = {}}),
               Error);
  EXPECT_THROW(other.restore({.closed_iterations = 5, .stage_begins = {1, 3, 4}, .tau = {}, .trigger = {}}),
               Error);
  EXPECT_THROW(other.restore({.closed_iterations = 8, .stage_begins = {1, 3}, .tau = {}, .trigger = {}}),
               Error);
}

TEST(Curriculum, RefusesListsThatCannotBeRun) {
  EXPECT_THAT(error_of({}), HasSubstr("empty"));
  EXPECT_THAT(error_of({until_trigger()}), HasSubstr("needs a stage after it"));
  EXPECT_THAT(error_of({until_trigger(kInitial), to_the_end(kInitial)}), HasSubstr("needs source current"));
  EXPECT_THAT(error_of({until_trigger(), until_trigger(), to_the_end(kInitial)}),
              HasSubstr("a second until: trigger"));
  EXPECT_THAT(error_of({to_the_end(kCurrent), to_the_end(kInitial)}),
              HasSubstr("stage 1 (current): has no end"));
  EXPECT_THAT(error_of({for_iterations(kCurrent, 0), to_the_end(kInitial)}), HasSubstr("must be > 0"));
  EXPECT_THAT(error_of({for_iterations(kCurrent, 10)}),
              HasSubstr("end after 10 iterations, train.iterations is 15"));
  EXPECT_THAT(error_of({for_iterations(kCurrent, 15), to_the_end(kInitial)}), HasSubstr("never run"));
  EXPECT_THAT(error_of({until_trigger(), for_iterations(kInitial, 3)}), HasSubstr("open-ended"));
  EXPECT_THAT(error_of({Stage{kCurrent, 3, true}, to_the_end(kInitial)}), HasSubstr("ends in one way"));
}

TEST(Curriculum, RefusesImpossibleSources) {
  const Source bank{.kind = SourceKind::bank};
  EXPECT_THAT(error_of({to_the_end(bank)}), HasSubstr("needs a path"));
  EXPECT_THAT(error_of({to_the_end({.kind = SourceKind::mix, .of = {kCurrent}})}),
              HasSubstr("2 to 16 sources, got 1"));
  EXPECT_THAT(error_of({to_the_end({.kind = SourceKind::mix, .of = {kCurrent, kCurrent}})}),
              HasSubstr("two parts of the mix are current"));
  const Source mix{.kind = SourceKind::mix, .of = {kCurrent, kInitial}};
  EXPECT_THAT(error_of({to_the_end({.kind = SourceKind::mix, .of = {mix, kInitial}})}),
              HasSubstr("cannot contain a mix"));
  EXPECT_EQ(error_of({to_the_end(mix)}), "no error");
  const auto with_ratios = [&](Source source, Ratio from, Ratio to) {
    source.ratio = std::move(from);
    return error_of({Stage{.source = source, .iterations = {}, .ratio_to = std::move(to)}});
  };
  EXPECT_EQ(with_ratios(mix, {3, 1}, {0, 1}), "no error");
  EXPECT_THAT(with_ratios(mix, {3, 1, 1}, {}), HasSubstr("ratio has 3 numbers, the mix 2 parts"));
  EXPECT_THAT(with_ratios(mix, {}, {1}), HasSubstr("ratio_to has 1 numbers"));
  EXPECT_THAT(with_ratios(mix, {0, 0}, {}), HasSubstr("ratio is 0 for every part"));
  EXPECT_THAT(with_ratios(mix, {1001, 1}, {}), HasSubstr("at most 1000"));
  EXPECT_THAT(with_ratios(kCurrent, {}, {1, 1}), HasSubstr("takes no ratio_to"));
}

// All current to all initial over the stage's own iterations, wherever it begins.
TEST(Curriculum, ARatioMovesOverItsStage) {
  const Source mix{.kind = SourceKind::mix, .of = {kCurrent, kInitial}, .ratio = {1, 0}};
  const auto names = [&](std::optional<uint64_t> iterations, uint64_t total) {
    std::vector<Stage> stages = {for_iterations(kCurrent, 1),
                                 {.source = mix, .iterations = iterations, .ratio_to = {0, 1}}};
    if (iterations) stages.push_back(to_the_end(kInitial));
    Curriculum curriculum = make(stages, {.total_iterations = total});
    std::vector<std::string> result;
    for (uint64_t k = 1; k <= total; ++k) {
      result.push_back(source_name(curriculum.source_of(k)));
      curriculum.close_iteration({});
    }
    EXPECT_EQ(source_name(curriculum.source_of(2)), "mix(1 current,0 initial)") << "also afterwards";
    return result;
  };
  EXPECT_THAT(names(std::nullopt, 4), ElementsAre("current", "mix(1 current,0 initial)",
                                                  "mix(current,initial)", "mix(0 current,1 initial)"));
  EXPECT_THAT(names(3, 5), ElementsAre("current", "mix(1 current,0 initial)", "mix(current,initial)",
                                       "mix(0 current,1 initial)", "initial"));
}

TEST(Curriculum, ARecentBankMustBeFrozenBetweenEarlierIterations) {
  const auto recent = [](uint64_t step) { return Source{.kind = SourceKind::recent, .step = step}; };
  EXPECT_EQ(error_of({for_iterations(kCurrent, 10), to_the_end(recent(40))}), "no error");
  EXPECT_THAT(error_of({for_iterations(kCurrent, 10), to_the_end(recent(42))}),
              HasSubstr("inside an iteration"));
  EXPECT_THAT(error_of({for_iterations(kCurrent, 5), to_the_end(recent(40))}),
              HasSubstr("may begin after 5"));
  EXPECT_THAT(error_of({for_iterations(kCurrent, 5), to_the_end(recent(0))}), HasSubstr("step > 0"));
  EXPECT_THAT(error_of({to_the_end(recent(20))}, {.first_step = 40}), HasSubstr("lies before"));
  Curriculum curriculum = make({for_iterations(kCurrent, 10), to_the_end(recent(40))}, {});
  EXPECT_THAT(curriculum.freeze_steps(), ElementsAre(40u));
  EXPECT_FALSE(curriculum.uses_initial_bank());
  EXPECT_EQ(curriculum.describe(), "current x 10, then recent:40");
}

}  // namespace
}  // namespace ropd::curriculum
