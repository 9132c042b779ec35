#include "study/identity.h"

#include <gmock/gmock.h>

#include <set>

namespace ropd::study {
namespace {

using testing::HasSubstr;

train::TrainConfig config_with(const std::vector<std::string>& overrides = {}) {
  return train::parse_train_config("student: s\nteacher: t\noutput: o\ndata: {queries: q}\n", "test",
                                   overrides);
}

const Inputs kInputs{"student content", "teacher content", "query content"};

std::string state_0(const std::vector<std::string>& overrides = {}) {
  return initial_state(config_with(overrides), kInputs);
}

TEST(Identity, KeepsTheBordersOfItsParts) {
  EXPECT_NE(identity_of({"ab", "c"}), identity_of({"a", "bc"}));
  EXPECT_EQ(identity_of({"a", "b"}), identity_of({"a", "b"}));
}

TEST(Identity, ChangesWithEverythingThatInfluencesResults) {
  std::set<std::string> seen = {state_0()};
  for (const char* setting :
       {"seed=2", "data.order_seed=1", "train.learning_rate=2e-6", "train.minibatch=64", "objective.top_k=8",
        "train.order=ranks", "rollout.temperature=0.9", "rollout.precision=f32",
        "train.reduction=minibatch_tokens", "checkpoint.dtype=f32", "checkpoint.dtype=bf16",
        "adapter={rank: 4}", "adapter={rank: 8}", "adapter={rank: 8, targets: [q_proj]}"})
    EXPECT_TRUE(seen.insert(state_0({setting})).second) << setting;
  for (const Inputs& inputs :
       {Inputs{"x", kInputs.teacher, kInputs.queries}, Inputs{kInputs.student, "x", kInputs.queries},
        Inputs{kInputs.student, kInputs.teacher, "x"}})
    EXPECT_TRUE(seen.insert(initial_state(config_with(), inputs)).second);
}

TEST(Identity, DoesNotChangeWithWhatDoesNot) {
  for (const char* setting :
       {"output=elsewhere", "checkpoint.every=5", "alarms.drift=1", "rollout.memory_gb=2", "student=copy",
        "trigger.persistence=3", "trigger.kind=kl_plateau", "curriculum.bank.responses=4800",
        "train.iterations=20", "curriculum.stages=[{source: current}]"})
    EXPECT_EQ(state_0({setting}), state_0()) << setting;
}

// Otherwise a renamed key would silently count as one that influences results, or an unknown one be neutral.
TEST(Identity, NeutralKeysAreKeysOfTheConfiguration) {
  std::set<std::string> known;
  for (const FieldInfo& field : config_field_list<train::TrainConfig>()) known.insert(field.key);
  for (const std::string_view key : neutral_keys()) EXPECT_TRUE(known.contains(std::string(key))) << key;
}

TEST(Identity, OfALaterStateIsThatOfItsSources) {
  const auto config = config_with();
  const Source current{.kind = SourceKind::current}, initial{.kind = SourceKind::initial};
  const auto walk = [&](const std::vector<Source>& sources, const train::TrainConfig& c) {
    std::string state = initial_state(c, kInputs);
    for (const Source& source : sources) state = next_state(state, source, c, kInputs);
    return state;
  };
  EXPECT_EQ(walk({current, current}, config), walk({current, current}, config_with({"train.iterations=99"})));
  EXPECT_NE(walk({current, initial}, config), walk({initial, current}, config));
  const auto larger = config_with({"curriculum.bank.responses=4800"});
  EXPECT_EQ(walk({current}, config), walk({current}, larger)) << "no bank in use";
  EXPECT_NE(walk({initial}, config), walk({initial}, larger));
  Source mix{.kind = SourceKind::mix, .of = {current, initial}}, tilted = mix;
  tilted.ratio = {3, 1};
  EXPECT_NE(walk({mix}, config), walk({tilted}, config));
  EXPECT_NE(walk({mix}, config), walk({mix}, larger)) << "a part is drawn from the bank";
}

TEST(Identity, KnowsBankFilesByTheirContent) {
  const Source bank{.kind = SourceKind::bank, .path = "b.jsonl"};
  const Source mix{.kind = SourceKind::mix, .of = {bank, {.kind = SourceKind::current}}};
  for (const Source& source : {bank, mix}) {
    Inputs other = kInputs;
    other.banks["b.jsonl"] = "content";
    const std::string state = next_state("before", source, config_with(), other);
    EXPECT_EQ(next_state("before", source, config_with(), other), state);
    other.banks["b.jsonl"] = "another content";
    EXPECT_NE(next_state("before", source, config_with(), other), state);
  }
}

TEST(KnownSources, FollowARatioThatMoves) {
  const std::string stage = "{source: mix, of: [current, initial], ratio: [1, 0], ratio_to: [0, 1]}";
  const auto open =
      known_sources(config_with({"train.iterations=4",
                                 "curriculum.stages=[{source: current, iterations: 1}, " + stage + "]"}),
                    std::nullopt);
  ASSERT_TRUE(open.is_complete);
  ASSERT_EQ(open.sources.size(), 4u);
  EXPECT_EQ(source_name(open.sources[1]), "mix(1 current,0 initial)");
  EXPECT_EQ(source_name(open.sources[2]), "mix(current,initial)");
  EXPECT_EQ(source_name(open.sources[3]), "mix(0 current,1 initial)");
  const auto behind =
      known_sources(config_with({"train.iterations=4",
                                 "curriculum.stages=[{source: current, until: trigger}, " + stage + "]"}),
                    2);
  ASSERT_EQ(behind.sources.size(), 4u);
  EXPECT_EQ(source_name(behind.sources[2]), "mix(1 current,0 initial)") << "from the trigger to the end";
  EXPECT_EQ(source_name(behind.sources[3]), "mix(0 current,1 initial)");
}

TEST(KnownSources, EndAtATriggerThatIsNotSet) {
  const auto config = config_with({"train.iterations=4"});  // current until trigger, then initial
  const auto open = known_sources(config, std::nullopt);
  EXPECT_FALSE(open.is_complete);
  EXPECT_EQ(open.sources.size(), 4u) << "as long as it may last";
  const auto known = known_sources(config, 3);
  EXPECT_TRUE(known.is_complete);
  ASSERT_EQ(known.sources.size(), 4u);
  EXPECT_EQ(known.sources[2].kind, SourceKind::current);
  EXPECT_EQ(known.sources[3].kind, SourceKind::initial);
  const auto fixed =
      known_sources(config_with({"train.iterations=4",
                                 "curriculum.stages=[{source: current, iterations: 1}, {source: initial}]"}),
                    std::nullopt);
  EXPECT_TRUE(fixed.is_complete);
  EXPECT_EQ(fixed.sources[0].kind, SourceKind::current);
  EXPECT_EQ(fixed.sources[1].kind, SourceKind::initial);
}

std::vector<IterationRecord> trace(const std::vector<int>& qualifies) {
  std::vector<IterationRecord> records;
  for (const int value : qualifies) {
    IterationRecord record;
    record.iteration = records.size() + 1;
    if (value >= 0) {
      record.trigger.distance = value == 1 ? 1.0 : 3.0;
      record.trigger.noise = 2.0;
    }
    records.push_back(record);
  }
  return records;
}

TEST(FindTau, IsTheSecondOfTwoQualifyingComparisonsInARow) {
  const auto config = config_with();
  EXPECT_EQ(find_tau(trace({-1, 1, 0, 1, 1, 1}), config), 5u);
  EXPECT_EQ(find_tau(trace({-1, 1, 1}), config), 3u);
  EXPECT_EQ(find_tau(trace({-1, 1, 0, 1}), config), std::nullopt);
  EXPECT_EQ(find_tau(trace({-1, 1, 1, 1}), config_with({"trigger.persistence=3"})), 4u);
  EXPECT_EQ(find_tau(trace({-1, 1, 1, 1, 1}), config_with({"trigger.earliest=5"})), 5u);
  EXPECT_EQ(find_tau(trace({-1, 0, 0}), config_with({"trigger.threshold=1.5"})), 3u) << "D = 3, V = 2";
  EXPECT_EQ(find_tau(trace({-1, 0, 0, 0}), config_with({"trigger.kind=fixed", "trigger.iteration=2"})), 2u);
  auto records = trace({-1, 0, 0, 0});
  for (IterationRecord& record : records)
    record.distillation.kl_candidates =
        record.iteration < 3 ? 1.0 / static_cast<double>(record.iteration) : 0.5;
  EXPECT_EQ(find_tau(records, config_with({"trigger.kind=kl_plateau"})), 4u) << "1, 0.5, 0.5, 0.5";
}

}  // namespace
}  // namespace ropd::study
