#include "train/query_operations.h"

#include <gmock/gmock.h>

#include <set>

#include "base/error.h"
#include "io/dataset.h"
#include "support/test_data.h"

namespace ropd::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Query question(const std::string& id, const std::string& text, const std::string& answer = "") {
  return {id, {{"user", text}}, answer};
}

std::vector<Query> numbered(size_t count) {
  std::vector<Query> queries;
  for (size_t i = 0; i < count; ++i)
    queries.push_back(question("id" + std::to_string(i), "text " + std::to_string(i)));
  return queries;
}

std::vector<std::string> ids_of(const std::vector<Query>& queries) {
  std::vector<std::string> ids;
  for (const auto& query : queries) ids.push_back(query.id);
  return ids;
}

TEST(QuerySet, DeduplicationKeepsTheFirstAndCountsConflicts) {
  const auto result = deduplicate_by_prompt(
      {question("a", "x", "1"), question("b", "y"), question("c", "x", "1"), question("d", "x", "2")});
  EXPECT_THAT(result.kept, ElementsAre(0, 1));
  EXPECT_EQ(result.num_dropped, 2u);
  EXPECT_EQ(result.num_conflicts, 1u);
}

TEST(QuerySet, RolesArePartOfAPrompt) {
  EXPECT_NE(prompt_text({"", {{"user", "a"}}, ""}), prompt_text({"", {{"system", "a"}}, ""}));
  EXPECT_NE(prompt_text({"", {{"user", "ab"}}, ""}), prompt_text({"", {{"user", "a"}, {"user", "b"}}, ""}));
}

TEST(QuerySet, HanIsFoundAndOtherScriptsAreNot) {
  EXPECT_TRUE(has_han(std::string_view("solve 方程")));
  EXPECT_TRUE(has_han(std::string_view("\xF0\xA0\x80\x80")));  // U+20000
  EXPECT_TRUE(has_han(std::string_view("々")));
  EXPECT_FALSE(has_han(std::string_view("α ≤ π, “quoted”, naïve, ひらがな, 한글, 🎲, （fullwidth）")));
}

TEST(QuerySet, SelectionsWithOneSeedNest) {
  const auto all = numbered(500);
  const auto large = select_queries(all, {.count = 48, .seed = 20260829});
  const auto small = select_queries(all, {.count = 8, .seed = 20260829});
  EXPECT_EQ(large.size(), 48u);
  const auto large_ids = ids_of(large);
  for (const auto& id : ids_of(small)) EXPECT_THAT(large_ids, ::testing::Contains(id));
  EXPECT_EQ(ids_of(select_queries(large, {.count = 8, .seed = 20260829})), ids_of(small));
}

TEST(QuerySet, SelectionDependsOnSeedAndNotOnFileOrder) {
  const auto all = numbered(100);
  const auto as_set = [](const std::vector<Query>& queries) {
    const auto ids = ids_of(queries);
    return std::set<std::string>(ids.begin(), ids.end());
  };
  const auto chosen = as_set(select_queries(all, {.count = 10, .seed = 1}));
  EXPECT_EQ(chosen, as_set(select_queries(order_queries(all, 5), {.count = 10, .seed = 1})));
  EXPECT_NE(chosen, as_set(select_queries(all, {.count = 10, .seed = 2})));
}

TEST(QuerySet, SelectionKeepsTheOrderOfTheSet) {
  const auto chosen = select_queries(numbered(50), {.count = 50, .seed = 3});
  EXPECT_EQ(ids_of(chosen), ids_of(numbered(50)));
}

TEST(QuerySet, SelectsFirstAndIds) {
  const auto all = numbered(5);
  EXPECT_THAT(ids_of(select_queries(all, {.first = 2})), ElementsAre("id0", "id1"));
  EXPECT_THAT(ids_of(select_queries(all, {.ids = {"id3", "id1"}})), ElementsAre("id3", "id1"));
}

TEST(QuerySet, ImpossibleSelectionsAreRefused) {
  const auto all = numbered(5);
  EXPECT_THROW(select_queries(all, {.count = 6}), Error);
  EXPECT_THROW(select_queries(all, {.first = 0}), Error);
  EXPECT_THROW(select_queries(all, {.ids = {"absent"}}), Error);
  EXPECT_THROW(select_queries(all, {.ids = {"id1", "id1"}}), Error);
  EXPECT_THROW(select_queries(all, {}), Error);
  EXPECT_THROW(select_queries(all, {.count = 1, .first = 1}), Error);
}

TEST(QuerySet, OrderIsAPermutationAndZeroKeepsIt) {
  const auto all = numbered(48);
  EXPECT_EQ(ids_of(order_queries(all, 0)), ids_of(all));
  auto first = ids_of(order_queries(all, 1)), second = ids_of(order_queries(all, 2));
  EXPECT_NE(first, ids_of(all));
  EXPECT_NE(first, second);
  EXPECT_EQ(first, ids_of(order_queries(all, 1)));
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(ids_of(all)));
}

TEST(QuerySet, WrapperIsStrippedWhereItIs) {
  std::vector<Query> queries = {question("a", "Solve: x. Box it."), question("b", "Solve: y"),
                                question("c", "z")};
  EXPECT_EQ(strip_wrapper(queries, "Solve: ", ". Box it."), 2u);
  EXPECT_EQ(queries[0].messages[0].content, "x");
  EXPECT_EQ(queries[1].messages[0].content, "y");
  EXPECT_EQ(queries[2].messages[0].content, "z");
}

TEST(QuerySet, WordsIgnoreLayoutAndCase) {
  EXPECT_EQ(normalised_words("Find $\\dfrac{1}{2}$ of  THE set."),
            normalised_words("find \\frac{1}{2} of the\nset"));
  EXPECT_THAT(normalised_words("\\left( x^2 \\right)"), ElementsAre("x", "2"));
  EXPECT_THAT(normalised_words("\\sqrt2 AB12"), ElementsAre("sqrt", "2", "ab12"));
  EXPECT_NE(normalised_words("1 2"), normalised_words("12"));
}

TEST(QuerySet, OverlapFindsEqualContainedAndSimilar) {
  const std::string text =
      "Let $ABC$ be a triangle with sides 13, 14 and 15. Compute the area of the triangle $ABC$ in square "
      "units.";
  const std::vector<Query> benchmark = {question("q", text), question("short", "What is 2+2?")};
  const auto overlaps =
      find_overlaps({question("a",
                              "let ABC be a triangle with sides $13$, $14$ and $15$. compute the area of the "
                              "triangle ABC in square units"),
                     question("b", "Solve this. " + text + " Put the answer in a box."),
                     question("c", "An unrelated question about primes below one hundred and their sum."),
                     question("d", "what is $2 + 2$ ?")},
                    benchmark);
  ASSERT_EQ(overlaps.size(), 3u);
  EXPECT_TRUE(overlaps[0].query == 0 && overlaps[0].is_equal && overlaps[0].share == 1);
  EXPECT_TRUE(overlaps[1].query == 1 && !overlaps[1].is_equal && overlaps[1].share == 1);
  EXPECT_TRUE(overlaps[2].query == 3 && overlaps[2].benchmark == 1 && overlaps[2].is_equal);
}

TEST(QuerySet, PublishedDataGivesThePapersEnglishSet) {
  ROPD_NEEDS_DATA();
  const auto parquet = io::read_dataset(test::data_directory() / "train/dapo-math-17k.parquet");
  const auto english = io::read_dataset(test::data_directory() / "train/dapo_math_17k_en.jsonl");
  std::vector<std::string> ids;
  for (const size_t index : deduplicate_by_prompt(parquet.queries).kept)
    if (!has_han(parquet.queries[index])) ids.push_back(parquet.queries[index].id);
  EXPECT_EQ(ids.size(), 14116u);
  EXPECT_EQ(ids, ids_of(english.queries));
}

}  // namespace
}  // namespace ropd::train
