#include "lab/model_files.h"

#include <gmock/gmock.h>

#include <set>

#include "base/json.h"
#include "eval/outcomes.h"
#include "lab/world.h"
#include "support/test_data.h"
#include "text/prompt_renderer.h"
#include "text/tokenizer.h"
#include "text/vocabulary_map.h"

namespace ropd::lab {
namespace {

class ModelFiles : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  void SetUp() override { write_lab_model_files(directory_ / "model", student_shape()); }
  Json json(const std::string& name) { return parse_json(read_file(directory_ / ("model/" + name)), name); }
};

TEST_F(ModelFiles, TheTokenizerGivesTheWorldsIds) {
  const auto tokenizer = text::Tokenizer::load(directory_ / "model");
  EXPECT_EQ(tokenizer.vocab_size(), 26u);
  for (Token id = 0; id < kVocabSize; ++id) {
    EXPECT_EQ(tokenizer.token_bytes(id), token_text(id));
    EXPECT_EQ(tokenizer.is_special(id), id == kEndToken || id == kPadToken);
  }
}

TEST_F(ModelFiles, DecodedTextsTokenizeToTheSameIds) {
  const auto tokenizer = text::Tokenizer::load(directory_ / "model");
  for (const int n : {3, 6, 9, 12})
    for (uint64_t index = 0; index < 200; ++index) {
      const SftExample example = initial_student_example(21, index, n, 0.5);
      EXPECT_EQ(tokenizer.encode(decode(example.prompt_ids)), example.prompt_ids);
      std::vector<Token> response = example.response_ids;
      ASSERT_EQ(response.back(), kEndToken);
      const std::string text = tokenizer.decode(response);
      EXPECT_EQ(text, decode(response));
      response.pop_back();
      EXPECT_EQ(tokenizer.encode(text), response);
    }
}

TEST_F(ModelFiles, AnyCutOfAResponseTokenizesBack) {
  const auto tokenizer = text::Tokenizer::load(directory_ / "model");
  const SftExample example = teacher_example(22, 5, 6);
  for (size_t length = 0; length < example.response_ids.size(); ++length) {
    const std::vector<Token> cut(example.response_ids.begin(),
                                 example.response_ids.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(tokenizer.encode(tokenizer.decode(cut)), cut);
  }
}

TEST_F(ModelFiles, TheOrdinaryGraderScoresResponsesAtBudgets) {
  const auto tokenizer = text::Tokenizer::load(directory_ / "model");
  const eval::GradingConfig config{.budgets = {10, 64}};
  for (uint64_t index = 0; index < 20; ++index) {
    const SftExample example = short_example(23, index, 6);  // 18 tokens with the end
    const int answer = solve(parse_problem(decode(example.prompt_ids)));
    const std::string text = decode(example.response_ids);
    const auto right = eval::grade_question({text}, std::to_string(answer), tokenizer, config);
    EXPECT_FALSE(right[0][0].is_extracted);  // cut before the box
    EXPECT_TRUE(right[0][0].is_at_cap);
    EXPECT_TRUE(right[1][0].is_correct);
    EXPECT_EQ(right[1][0].num_tokens, 17u);
    const auto wrong = eval::grade_question({text}, std::to_string((answer + 1) % 10), tokenizer, config);
    EXPECT_TRUE(wrong[1][0].is_extracted);
    EXPECT_FALSE(wrong[1][0].is_correct);
  }
}

TEST_F(ModelFiles, TheConfigIsAQwen3) {
  const Json config = json("config.json");
  EXPECT_EQ(config["model_type"], "qwen3");
  EXPECT_EQ(config["hidden_size"], 96);
  EXPECT_EQ(config["num_hidden_layers"], 3);
  EXPECT_EQ(config["head_dim"], 24);
  EXPECT_EQ(config["vocab_size"], 26);
  EXPECT_EQ(config["rope_theta"], 500.0);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(json("generation_config.json")["eos_token_id"], Json::array({24}));
}

TEST_F(ModelFiles, ThePromptIsTheBareProblem) {
  const auto renderer = text::PromptRenderer::load(directory_ / "model", {});
  const Query query{.id = "q", .messages = {{"user", "3acbfde?"}}, .answer = "1"};
  EXPECT_EQ(renderer.render_text(query), "3acbfde?");
  EXPECT_EQ(renderer.render(query), encode("3acbfde?"));
}

TEST(OtherVocabulary, HoldsTheSameTextsUnderOtherNumbers) {
  test::TemporaryDirectory directory;
  write_lab_model_files(directory / "model", second_teacher_shape(), other_vocabulary());
  const auto tokenizer = text::Tokenizer::load(directory / "model");
  EXPECT_EQ(tokenizer.vocab_size(), 32u);
  std::set<Token> ids;
  for (Token token = 0; token < kVocabSize; ++token) {
    const Token id = other_vocabulary().ids[static_cast<size_t>(token)];
    ids.insert(id);
    if (token != kEndToken && token != kPadToken) {
      EXPECT_EQ(tokenizer.token_bytes(id), token_text(token));
    }
  }
  EXPECT_EQ(ids.size(), static_cast<size_t>(kVocabSize)) << "no two alike";
  EXPECT_EQ(tokenizer.token_bytes(other_vocabulary().ids[kEndToken]), "<|stop|>");
}

// What the trainer needs of it: every token of the student has a counterpart, the end by its meaning.
TEST(OtherVocabulary, MapsFromTheStudents) {
  test::TemporaryDirectory directory;
  write_lab_model_files(directory / "student", student_shape());
  write_lab_model_files(directory / "teacher", second_teacher_shape(), other_vocabulary());
  const auto map = text::VocabularyMap::load(directory / "student", directory / "teacher");
  EXPECT_FALSE(map.is_identity());
  for (Token token = 0; token <= kEndToken; ++token)
    EXPECT_EQ(map.teacher_id(token), other_vocabulary().ids[static_cast<size_t>(token)]) << token;
}

TEST(Shapes, GrowFromStudentToTeacher) {
  EXPECT_LT(count_parameters(student_shape()), count_parameters(medium_student_shape()));
  EXPECT_LT(count_parameters(medium_student_shape()), count_parameters(large_student_shape()));
}

TEST(Shapes, HaveThePrototypesSizes) {
  EXPECT_NEAR(static_cast<double>(count_parameters(teacher_shape())), 0.74e6, 0.01e6);
  EXPECT_NEAR(static_cast<double>(count_parameters(student_shape())), 0.31e6, 0.01e6);
}

}  // namespace
}  // namespace ropd::lab
