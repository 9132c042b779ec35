#include "base/config_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd {
namespace {

using testing::HasSubstr;

enum class Source { current, initial, mix };
constexpr auto enum_names(Source) {
  return std::array{EnumName{Source::current, "current"}, EnumName{Source::initial, "initial"},
                    EnumName{Source::mix, "mix"}};
}

struct StageConfig {
  Source source = Source::current;
  std::optional<std::string> until;
  std::optional<int> iterations;
  std::vector<Source> of;
  void fields(auto&& field) {
    field("source", source, "where responses come from");
    field("until", until, "when the stage ends");
    field("iterations", iterations, "or after so many", at_least(1));
    field("of", of, "sources of a mix");
  }
  void validate(const ConfigPlace& place) const {
    if (source == Source::mix && of.empty()) place.refuse({"of", "source"}, ": a mix needs sources");
  }
  bool operator==(const StageConfig&) const = default;
};

struct OptimConfig {
  double learning_rate = 1e-6;
  std::array<double, 2> betas = {0.9, 0.999};
  int64_t minibatch = 128;
  uint64_t seed = 1;
  void fields(auto&& field) {
    field("learning_rate", learning_rate, "peak rate", above(0));
    field("betas", betas, "decay of the moments", between(0, 1));
    field("minibatch", minibatch, "responses a step", at_least(1));
    field("seed", seed, "of the order");
  }
  bool operator==(const OptimConfig&) const = default;
};

struct RunConfig {
  std::string student;
  bool thinking = false;
  Auto<double> memory_gb;
  OptimConfig train;
  std::vector<StageConfig> stages = {{.source = Source::current, .until = "trigger"},
                                     {.source = Source::initial}};
  std::vector<std::string> ids;
  std::optional<double> scale;
  void fields(auto&& field) {
    field("student", student, "model directory");
    field("thinking", thinking, "let the template think");
    field("memory_gb", memory_gb, "for the cache", above(0));
    field("train", train, "the optimiser");
    field("stages", stages, "the curriculum");
    field("ids", ids, "query ids");
    field("scale", scale, "of something");
  }
  bool operator==(const RunConfig&) const = default;
};

RunConfig parse(const std::string& text, std::vector<std::string> overrides = {}) {
  return parse_config<RunConfig>(text, "run.yaml", overrides);
}

std::string error_of(const std::string& text, std::vector<std::string> overrides = {}) {
  try {
    parse(text, std::move(overrides));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Config, EmptyTextGivesTheDefaults) {
  EXPECT_EQ(parse(""), RunConfig{});
  EXPECT_EQ(parse("# only a comment\ntrain:\n"), RunConfig{});
}

TEST(Config, ReadsEveryKindOfField) {
  const auto config = parse(R"(
student: models/Qwen3-0.6B
thinking: true
memory_gb: 12
train: {learning_rate: 2e-5, betas: [0.8, 0.95], minibatch: 1e3, seed: 18446744073709551615}
stages:
  - {source: mix, of: [current, initial], iterations: 3}
ids: ["17", b]
scale: -0.5
)");
  EXPECT_EQ(config.student, "models/Qwen3-0.6B");
  EXPECT_TRUE(config.thinking);
  EXPECT_EQ(config.memory_gb.value, 12.0);
  EXPECT_EQ(config.train.learning_rate, 2e-5);
  EXPECT_EQ(config.train.betas[1], 0.95);
  EXPECT_EQ(config.train.minibatch, 1000);
  EXPECT_EQ(config.train.seed, 18446744073709551615u);
  ASSERT_EQ(config.stages.size(), 1u);
  EXPECT_EQ(config.stages[0].of, (std::vector{Source::current, Source::initial}));
  EXPECT_EQ(config.stages[0].iterations, 3);
  EXPECT_EQ(config.ids, (std::vector<std::string>{"17", "b"}));
  EXPECT_EQ(config.scale, -0.5);
}

TEST(Config, AutoAndNullSpellAbsence) {
  const auto config = parse("memory_gb: auto\nscale: null\n");
  EXPECT_FALSE(config.memory_gb.value);
  EXPECT_FALSE(config.scale);
}

TEST(Config, OverridesWinAndReachIntoSectionsAndLists) {
  const auto config = parse("train: {seed: 3, minibatch: 5}\n",
                            {"train.seed=4", "student=a b", "train.betas=[0.1, 0.2]", "scale=2"});
  EXPECT_EQ(config.train.seed, 4u);
  EXPECT_EQ(config.train.minibatch, 5);
  EXPECT_EQ(config.student, "a b");
  EXPECT_EQ(config.train.betas[0], 0.1);
  EXPECT_EQ(config.scale, 2.0);
  EXPECT_EQ(parse("stages: [{}, {}]", {"stages.1.iterations=7"}).stages[1].iterations, 7);
}

TEST(Config, SavedConfigParsesToAnEqualOne) {
  RunConfig config;
  EXPECT_EQ(parse(config_to_yaml(config)), config);
  config.student = "a: \"b\" #c\n\t\x01 \\ ü";
  config.thinking = true;
  config.memory_gb.value = 1.0 / 3.0;
  config.train.learning_rate = 1e-6;
  config.train.seed = 18446744073709551615u;
  config.stages[0].of = {Source::mix};
  config.ids = {"", "null", "true", "Yes", "1", "1e5", "~", "-", "a b", "auto", "x"};
  config.scale = -1.7976931348623157e308;
  EXPECT_EQ(parse(config_to_yaml(config)), config);
  EXPECT_EQ(parse(config_to_yaml(config, /*with_comments=*/true)), config);
  config.stages.clear();
  config.ids.clear();
  EXPECT_EQ(parse(config_to_yaml(config)), config);
}

TEST(Config, UnknownKeyNamesFileLineAndNearestKey) {
  EXPECT_EQ(error_of("student: a\ntrain:\n  learning_rat: 1\n"),
            "run.yaml:3: unknown key 'train.learning_rat' (did you mean 'train.learning_rate'?)");
  EXPECT_EQ(error_of("stages: [{sorce: mix}]"),
            "run.yaml:1: unknown key 'stages[0].sorce' (did you mean 'stages[0].source'?)");
}

TEST(Config, MisplacedKeyNamesItsSection) {
  EXPECT_EQ(error_of("learning_rate: 1\n"),
            "run.yaml:1: unknown key 'learning_rate' (did you mean 'train.learning_rate'?)");
  EXPECT_EQ(error_of("", {"zzzzzz=1"}),
            "override 'zzzzzz=1': unknown key 'zzzzzz' (known here: student, thinking, memory_gb, train, "
            "stages, ids, scale)");
}

TEST(Config, WrongTypeNamesValueAndExpectation) {
  EXPECT_EQ(error_of("train:\n  learning_rate: fast\n"),
            "run.yaml:2: train.learning_rate: got 'fast', expected number > 0");
  EXPECT_EQ(error_of("train: {minibatch: 1.5}"),
            "run.yaml:1: train.minibatch: got '1.5', expected integer >= 1");
  EXPECT_EQ(error_of("train: {learning_rate: \"1e-6\"}"),
            "run.yaml:1: train.learning_rate: got \"1e-6\", expected number > 0");
  EXPECT_EQ(error_of("thinking: yes"), "run.yaml:1: thinking: got 'yes', expected true or false");
  EXPECT_EQ(error_of("student: [a]"), "run.yaml:1: student: got a list, expected text");
  EXPECT_EQ(error_of("student:"), "run.yaml:1: student: got null, expected text");
  EXPECT_THAT(error_of("train: 3"), HasSubstr("train: got '3', expected a section"));
  EXPECT_THAT(error_of("ids: a"), HasSubstr("ids: got 'a', expected a list"));
  EXPECT_THAT(error_of("- a"), HasSubstr("run.yaml: expected 'key: value' lines, found a list"));
  EXPECT_EQ(error_of("", {"train.learning_rate=x"}),
            "override 'train.learning_rate=x': train.learning_rate: got 'x', expected number > 0");
}

TEST(Config, RangesAreChecked) {
  EXPECT_EQ(error_of("train: {learning_rate: 0}"),
            "run.yaml:1: train.learning_rate: got '0', expected number > 0");
  EXPECT_EQ(error_of("train: {betas: [0.5, 2]}"),
            "run.yaml:1: train.betas[1]: got '2', expected number in [0, 1]");
  EXPECT_THAT(error_of("train: {betas: [0.5]}"), HasSubstr("expected a list of 2 values"));
  EXPECT_THAT(error_of("train: {minibatch: 0}"), HasSubstr("expected integer >= 1"));
  EXPECT_THAT(error_of("stages: [{iterations: 3000000000}]"), HasSubstr("in [1, 2147483647]"));
  EXPECT_THAT(error_of("train: {seed: -1}"), HasSubstr("train.seed: got '-1'"));
  EXPECT_THAT(error_of("scale: .inf"), HasSubstr("expected number"));
  EXPECT_THAT(error_of("scale: inf"), HasSubstr("expected number"));
}

TEST(Config, ANumberThatIsTooLargeIsToldTheLargest) {
  const char* largest = "expected an integer in [1, 9223372036854775807]";
  EXPECT_THAT(error_of("train: {minibatch: 99999999999999999999}"), HasSubstr(largest));
  EXPECT_THAT(error_of("train: {minibatch: 1e30}"), HasSubstr(largest));
  EXPECT_THAT(error_of("train: {seed: 1e30}"), HasSubstr("expected an integer in [0, 18446744073709551615]"));
  EXPECT_THAT(error_of("train: {seed: 1e17}"),
              HasSubstr("expected all digits of an integer as large as that"));
  EXPECT_THAT(error_of("train: {minibatch: -1e30}"), HasSubstr("expected integer >= 1"));
}

TEST(Config, EnumErrorListsTheNames) {
  EXPECT_EQ(error_of("stages: [{source: curent}]"),
            "run.yaml:1: stages[0].source: got 'curent', expected one of current, initial, mix (did you mean "
            "'current'?)");
}

TEST(Config, ValidateRunsOnEveryStructThatWasRead) {
  EXPECT_EQ(error_of("stages:\n  - {}\n  - source: mix\n"), "run.yaml:3: stages[1].of: a mix needs sources");
}

TEST(ConfigPlace, BlamesTheFirstKeyThatWasGiven) {
  const ConfigNode root = parse_yaml("a:\n  b: 1\n  list:\n    - x\n    - {c: 2}\n", "run.yaml",
                                     std::vector<std::string>{"a.e=3"});
  const ConfigPlace place(root.items[0], "a");
  const auto blamed = [&](std::initializer_list<std::string_view> keys) {
    try {
      place.refuse(keys, " is wrong");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(blamed({"b"}), "run.yaml:2: a.b is wrong");
  EXPECT_EQ(blamed({"d", "b"}), "run.yaml:2: a.d is wrong");
  EXPECT_EQ(blamed({"d"}), "run.yaml:1: a.d is wrong");  // the section
  EXPECT_EQ(blamed({""}), "run.yaml:1: a is wrong");
  EXPECT_EQ(blamed({"list[1].c"}), "run.yaml:5: a.list[1].c is wrong");
  EXPECT_EQ(blamed({"list[7].c"}), "run.yaml:3: a.list[7].c is wrong");
  EXPECT_EQ(blamed({"e"}), "override 'a.e=3': a.e is wrong");
  EXPECT_EQ(ConfigPlace().where("b"), "");
}

TEST(Config, RefusesDuplicateKeysBrokenYamlAndSeveralDocuments) {
  EXPECT_EQ(error_of("student: a\nstudent: b\n"), "run.yaml:2: the key 'student' occurs twice");
  EXPECT_EQ(error_of("student: [a\n"), "run.yaml:1: the bracket '[' is never closed");
  EXPECT_THAT(error_of("student: a\n---\nstudent: b\n"), HasSubstr("run.yaml:2: a second YAML document"));
}

TEST(Config, BoundsDepthAndSize) {
  EXPECT_THAT(error_of("a: " + std::string(40, '[') + std::string(40, ']')), HasSubstr("deeper than 32"));
  EXPECT_THAT(error_of(std::string(2 << 20, ' ')), HasSubstr("at most 1048576"));
}

TEST(Config, RefusesMalformedOverrides) {
  EXPECT_THAT(error_of("", {"student"}), HasSubstr("expected key=value"));
  EXPECT_THAT(error_of("", {"=3"}), HasSubstr("expected key=value"));
  EXPECT_THAT(error_of("", {"a..b=3"}), HasSubstr("empty part"));
  EXPECT_THAT(error_of("stages: [{source: mix}]", {"stages.4.source=mix"}),
              HasSubstr("'4' is not the index"));
}

TEST(Config, LoadsFromAFile) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "run.yaml", "student: x\n");
  EXPECT_EQ(load_config<RunConfig>(directory / "run.yaml").student, "x");
}

TEST(Config, FieldListHasKeysTypesDefaultsAndHelp) {
  const auto fields = config_field_list<RunConfig>();
  const auto row = [&](std::string_view key) {
    for (const auto& info : fields) {
      if (info.key == key) return info.type + "; " + info.default_value + "; " + info.help;
    }
    return std::string("absent");
  };
  EXPECT_EQ(row("train.learning_rate"), "number > 0; 1e-06; peak rate");
  EXPECT_EQ(row("train.betas"), "list of 2: number in [0, 1]; [0.9, 0.999]; decay of the moments");
  EXPECT_EQ(row("memory_gb"), "number > 0 or auto; auto; for the cache");
  EXPECT_EQ(row("train"), "section; ; the optimiser");
  EXPECT_EQ(row("stages[].source"), "current or initial or mix; current; where responses come from");
  EXPECT_EQ(row("stages[].iterations"), "integer >= 1 or null; null; or after so many");
  EXPECT_EQ(fields.size(), 15u);
  EXPECT_THAT(config_reference_markdown<RunConfig>("Keys"),
              HasSubstr("| `thinking` | true or false | `false` | let the template think |\n"));
  EXPECT_THAT(fields_text(fields), HasSubstr("  train.minibatch=128"));
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  const std::vector<std::string> names = {"minibatch", "seed"};
  EXPECT_EQ(nearest_name("minibach", names), "minibatch");
  EXPECT_EQ(nearest_name("sed", names), "seed");
  EXPECT_EQ(nearest_name("temperature", names), "");
  const std::vector<std::string> options = {"--version", "--help"};
  EXPECT_EQ(nearest_name("--response", options), "");
  EXPECT_EQ(nearest_name("--verison", options), "--version");
}

TEST(ConfigDifferences, NamesKeysWithBothValues) {
  RunConfig before, after;
  EXPECT_TRUE(config_differences(before, after).empty());
  after.student = "other";
  after.ids = {"a", "b"};
  const auto differences = config_differences(before, after);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "student");
  EXPECT_EQ(differences[0].after, "other");
  EXPECT_EQ(differences[1].key, "ids");
  EXPECT_EQ(differences[1].before, "[]");
}

}  // namespace
}  // namespace ropd
