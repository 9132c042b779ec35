#include "io/dataset.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/parquet_writer.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using ::testing::HasSubstr;

Dataset read_lines(const std::string& text, DuplicateIds duplicates = DuplicateIds::refuse) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "d.jsonl", text);
  return read_dataset(directory / "d.jsonl", duplicates);
}

Query query_of(const std::string& row) { return read_lines(row + "\n").queries.at(0); }

std::string error_of(const std::string& text) {
  try {
    read_lines(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Dataset, ReadsEveryPromptSpelling) {
  for (const char* row :
       {R"({"problem": "1+1?"})", R"({"question": "1+1?"})", R"({"prompt": "1+1?"})",
        R"({"messages": [{"role": "user", "content": "1+1?"}]})",
        R"({"prompt": [{"role": "user", "content": [{"type": "text", "text": "1+1?"}]}]})"}) {
    const Query query = query_of(row);
    ASSERT_EQ(query.messages.size(), 1u);
    EXPECT_EQ(query.messages[0].role, "user");
    EXPECT_EQ(query.messages[0].content, "1+1?");
  }
}

TEST(Dataset, ReadsVerlRows) {
  const Query query =
      query_of(R"({"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], )"
               R"("reward_model": {"ground_truth": "34", "style": "rule"}, "extra_info": {"index": 7}})");
  EXPECT_EQ(query.id, "7");
  EXPECT_EQ(query.answer, "34");
  EXPECT_EQ(query.messages.size(), 2u);
}

TEST(Dataset, AConversationForFineTuningIsNoPromptWhereThereIsAnother) {
  const std::string messages =
      R"("messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}])";
  EXPECT_EQ(query_of("{" + messages + R"(, "problem": "p"})").messages.at(0).content, "p");
  EXPECT_EQ(
      query_of("{" + messages + R"(, "prompt": [{"role": "user", "content": "v"}]})").messages.at(0).content,
      "v");
  EXPECT_THAT(error_of("{" + messages + R"(, "problem": null})"),
              HasSubstr("d.jsonl:1: 'messages' ends with an assistant turn and there is no other prompt"));
}

TEST(Dataset, ReadsAnswers) {
  EXPECT_EQ(query_of(R"({"problem": "p", "answer": 72})").answer, "72");
  EXPECT_EQ(query_of(R"({"problem": "p", "answer": "72", "solution": "long"})").answer, "72");
  EXPECT_EQ(query_of(R"({"problem": "p", "solution": "so \\boxed{3}"})").answer, "so \\boxed{3}");
  EXPECT_EQ(query_of(R"({"problem": "p", "answer": "a <<1+1=2>>\n#### 2"})").answer, "2");
  EXPECT_EQ(query_of(R"({"problem": "p", "answer": null})").answer, "");
}

TEST(Dataset, GeneratedIdsDependOnThePromptOnly) {
  const std::string id = query_of(R"({"problem": "p", "answer": "1"})").id;
  EXPECT_EQ(id, query_of(R"({"prompt": "p"})").id);
  EXPECT_NE(id, query_of(R"({"prompt": "P"})").id);
  EXPECT_EQ(id.size(), 18u);
}

TEST(Dataset, DuplicateIdsAreRefusedWithBothPlaces) {
  const std::string rows = "{\"id\": \"a\", \"problem\": \"p\"}\n\n{\"id\": \"a\", \"problem\": \"q\"}\n";
  EXPECT_THAT(error_of(rows), ::testing::ContainsRegex("d.jsonl:3: id 'a' is already at .*d.jsonl:1"));
  EXPECT_EQ(read_lines(rows, DuplicateIds::keep).queries.size(), 2u);
}

TEST(Dataset, WrongRowsNameTheLine) {
  EXPECT_THAT(error_of("{\"problem\": \"p\"}\n{\"text\": \"p\"}\n"),
              HasSubstr("d.jsonl:2: no 'problem', 'question'"));
  EXPECT_THAT(error_of("{\"problem\": 3}"), HasSubstr("d.jsonl:1: 'problem' must be a text"));
  EXPECT_THAT(error_of("{\"problem\": \"\"}"), HasSubstr("'problem' is empty"));
  EXPECT_THAT(error_of("{\"messages\": []}"), HasSubstr("empty list"));
  EXPECT_THAT(error_of("{\"messages\": [\"x\"]}"), HasSubstr("'role' and 'content'"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "assistant", "content": "x"}]})"),
              HasSubstr("ends with an assistant turn"));
  EXPECT_THAT(error_of("{\"problem\": \"p\", \"answer\": {}}"),
              HasSubstr("'answer' must be a text or a number"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of("\n"), HasSubstr("no rows"));
}

TEST(Dataset, WrittenQueriesReadBackEqual) {
  const test::TemporaryDirectory directory;
  const std::vector<Query> queries = {{"a", {{"user", "1+1? \"ü\"\n"}}, "2"},
                                      {"b", {{"system", "s"}, {"user", "u"}}, ""}};
  write_queries(directory / "q.jsonl", queries);
  const auto read = read_dataset(directory / "q.jsonl").queries;
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].messages[0].content, queries[0].messages[0].content);
  EXPECT_EQ(read[1].messages[0].role, "system");
  EXPECT_EQ(read[1].answer, "");
  EXPECT_EQ(read_file(directory / "q.jsonl").substr(0, 21), "{\"id\":\"a\",\"problem\":\"");
}

TEST(Dataset, ParquetRowsNameTheRow) {
  using namespace ropd::test;  // NOLINT: the writer's vocabulary
  const TemporaryDirectory directory;
  const std::string page = data_page_v1(plain_texts({"1+1?", ""}), 2, 0);
  write_file_atomically(directory / "d.parquet", parquet_file({schema_leaf("problem", 6, 0)}, 1,
                                                              {{.num_values = 2, .pages = page}}, 2));
  try {
    read_dataset(directory / "d.parquet");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("d.parquet row 2: 'problem' is empty"));
  }
}

TEST(Dataset, PublishedParquetAndTheEnglishFileAgree) {
  ROPD_NEEDS_DATA();
  const auto parquet = read_dataset(test::data_directory() / "train/dapo-math-17k.parquet");
  const auto english = read_dataset(test::data_directory() / "train/dapo_math_17k_en.jsonl");
  EXPECT_EQ(parquet.queries.size(), 17917u);
  EXPECT_EQ(english.queries.size(), 14116u);
  EXPECT_EQ(parquet.queries[0].id, english.queries[0].id);
  EXPECT_EQ(parquet.queries[0].answer, english.queries[0].answer);
  EXPECT_THAT(parquet.queries[0].messages[0].content, HasSubstr(english.queries[0].messages[0].content));
}

}  // namespace
}  // namespace ropd::io
