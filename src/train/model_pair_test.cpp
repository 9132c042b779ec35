#include "train/model_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ModelPair, LoadsTwoThatShareATokenizer) {
  const test::TinyWorld world;
  const ModelPair pair = load_models(world.config("run"));
  EXPECT_THAT(pair.eos_ids, ElementsAre(test::kTinyEnd));
  EXPECT_TRUE(pair.student_renderer.has_value());
  EXPECT_EQ(pair.vocabulary_map, nullptr);
  EXPECT_THAT(pair.notes, IsEmpty());
}

TEST(ModelPair, RefusesVocabulariesOfDifferentSizeWithoutTokenizers) {
  const test::TinyWorld world;
  ModelConfig shape = test::tiny_config(Architecture::qwen3);
  shape.vocab_size = 41;
  test::write_tiny_directory(world.path("large"), test::random_parameters(shape, 3));
  const std::string teacher = "teacher=" + world.path("large").string();
  EXPECT_THAT(error_of([&] { load_models(world.config("run", {teacher})); }),
              testing::AllOf(HasSubstr("do not fit together"), HasSubstr("37 and 41")));
}

TEST(ModelPair, MapsATeacherThatNumbersItsTokensOtherwise) {
  const test::TinyWorld world;
  std::filesystem::remove(world.path("teacher") / "tokenizer.json");
  std::filesystem::remove(world.path("teacher") / "tokenizer_config.json");
  std::string reversed;
  for (Token id = test::kTinyEnd - 1; id >= 0; --id) reversed += test::tiny_character(id);
  test::write_tiny_tokenizer(world.path("teacher"), reversed);
  const ModelPair pair = load_models(world.config("run"));
  ASSERT_NE(pair.vocabulary_map, nullptr);
  EXPECT_THAT(pair.notes, ElementsAre(HasSubstr("teacher vocabulary")));
  const Query query{"q", {{"user", "ab"}}, ""};
  const auto translation = pair.translation([&](const std::string&) -> const Query& { return query; });
  ASSERT_TRUE(translation.has_value());
  EXPECT_EQ(translation->teacher_id[0], 35);  // a
  EXPECT_EQ(translation->teacher_id[test::kTinyEnd], test::kTinyEnd);
  Rollout rollout;
  rollout.query_id = "q";
  rollout.prompt_ids = {0, 1};
  rollout.response_ids = {2, 3, test::kTinyEnd};
  const auto reading = translation->read(rollout);
  EXPECT_THAT(reading.prompt_ids, ElementsAre(35, 34));
  EXPECT_THAT(reading.response_ids, ElementsAre(33, 32, test::kTinyEnd));
  EXPECT_THAT(error_of([&] { load_models(world.config("run", {"objective.kind=full_reverse_kl"})); }),
              HasSubstr("different tokenizers"));
}

TEST(ModelPair, NotesEndTokensThatDiffer) {
  const test::TinyWorld world;
  test::write_tiny_directory(world.path("other"),
                             test::random_parameters(test::tiny_config(Architecture::qwen3), 3), {7});
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::remove(world.path("other") / name);
  }
  const ModelPair pair = load_models(world.config("run", {"teacher=" + world.path("other").string()}));
  EXPECT_THAT(pair.notes, ElementsAre(HasSubstr("EOS ids differ: student 36, teacher 7")));
}

TEST(ModelPair, NotesAnEndOfTurnThatDoesNotEndGeneration) {
  const test::TinyWorld world;
  EXPECT_THAT(load_models(world.config("run")).notes, testing::IsEmpty());
  write_file_atomically(world.path("student") / "generation_config.json", R"({"eos_token_id": 7})");
  EXPECT_THAT(load_models(world.config("run")).notes,
              testing::Contains(HasSubstr("<end> (36) as its end, but generation ends at 7 only")));
}

TEST(ModelPair, RefusesWhatCannotBeSampledOrScored) {
  const test::TinyWorld world;
  EXPECT_THAT(error_of([&] { load_models(world.config("run", {"objective.top_k=38"})); }),
              HasSubstr("objective.top_k is 38"));
  std::filesystem::remove(world.path("student") / "tokenizer.json");
  EXPECT_THAT(error_of([&] { load_models(world.config("run")); }), HasSubstr("no tokenizer.json"));
  std::filesystem::remove_all(world.path("student"));
  EXPECT_THAT(error_of([&] { load_models(world.config("run")); }), HasSubstr("student"));
}

}  // namespace
}  // namespace ropd::train
