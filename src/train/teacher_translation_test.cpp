#include "train/teacher_translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

class TeacherTranslation : public testing::Test {
 protected:
  const test::TinyWorld world;
  ModelConfig student = test::tiny_config(Architecture::qwen3), teacher = student;
  std::shared_ptr<const text::VocabularyMap> map() const {
    return teacher_vocabulary(world.path("student"), student, world.path("teacher"), teacher);
  }
};

TEST_F(TeacherTranslation, IsNotNeededWhereIdsMeanTheSame) { EXPECT_EQ(map(), nullptr); }

TEST_F(TeacherTranslation, ASmallerHeadOfTheTeacherHasNoIdForTheRest) {
  teacher.vocab_size = 30;
  const auto translation = translate(map(), student, teacher, [](const Rollout&) -> std::vector<Token> {
    throw std::logic_error("the recorded prompt serves");
  });
  EXPECT_EQ(translation.teacher_id[29], 29);
  EXPECT_EQ(translation.teacher_id[30], -1);
  Rollout rollout;
  rollout.prompt_ids = {4, 5};
  rollout.response_ids = {7, 8};
  const auto reading = translation.read(rollout);
  EXPECT_THAT(reading.prompt_ids, ElementsAre(4, 5));
  EXPECT_THAT(reading.response_ids, ElementsAre(7, 8));
  EXPECT_THAT(reading.position, ElementsAre(0, 1));
}

TEST_F(TeacherTranslation, AnotherTokenizerReadsItsOwnPromptAndIds) {
  std::string reversed;
  for (Token id = test::kTinyEnd - 1; id >= 0; --id) reversed += test::tiny_character(id);
  test::write_tiny_tokenizer(world.path("teacher"), reversed);
  const auto translation =
      translate(map(), student, teacher, [](const Rollout&) { return std::vector<Token>{9}; });
  Rollout rollout;
  rollout.prompt_ids = {0, 1};
  rollout.response_ids = {2, test::kTinyEnd};
  const auto reading = translation.read(rollout);
  EXPECT_THAT(reading.prompt_ids, ElementsAre(9));
  EXPECT_THAT(reading.response_ids, ElementsAre(33, test::kTinyEnd));
}

TEST_F(TeacherTranslation, RefusesSizesThatDifferWithoutTokenizers) {
  std::filesystem::remove(world.path("teacher") / "tokenizer.json");
  teacher.vocab_size = 41;
  EXPECT_THAT(error_of([&] { map(); }), HasSubstr("37 and 41"));
}

}  // namespace
}  // namespace ropd::train
