// The whole reader: nested rows, the published verl file, and files that lie.
#include "io/parquet.h"

#include <gmock/gmock.h>

#include <set>

#include "base/error.h"
#include "support/parquet_writer.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using namespace ropd::test;  // NOLINT: the writer's vocabulary
using ::testing::HasSubstr;

std::vector<Json> rows_of(const std::string& file, const std::vector<std::string>& columns = {}) {
  const ParquetFile parquet(std::as_bytes(std::span(file)), "t.parquet", {.max_decoded_bytes = 1 << 20});
  std::vector<Json> rows;
  parquet.for_each_row([&](Json&& row, uint64_t) { rows.push_back(std::move(row)); }, columns);
  return rows;
}

std::string error_of(const std::string& file) {
  try {
    rows_of(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// verl's prompt column: list<struct<content, role>>, all optional; three rows: two messages, an empty list,
// null.
std::string prompt_file(bool is_v2, int codec) {
  const std::vector<std::string> schema = {schema_group("prompt", 1, 1, true), schema_group("list", 2, 1),
                                           schema_group("element", 1, 2),      schema_leaf("content", 6, 1),
                                           schema_leaf("role", 6, 1),          schema_leaf("answer", 1, 1)};
  const std::vector<int> repetition = {0, 1, 0, 0}, definition = {4, 4, 1, 0}, with_null = {4, 3, 1, 0};
  const auto page = [&](const std::vector<int>& levels, const std::string& values) {
    if (is_v2)
      return data_page_v2(hybrid_packed(repetition, 1), hybrid_packed(levels, 3), values, 4, 0, codec);
    return data_page_v1(levels_v1(repetition) + levels_v1(levels) + values, 4, 0, codec);
  };
  const std::string answers =
      is_v2 ? data_page_v2("", hybrid_packed({1, 0, 1}, 1),
                           little_endian(7, 4) + little_endian(uint32_t(-1), 4), 3, 0, codec)
            : data_page_v1(levels_v1({1, 0, 1}) + little_endian(7, 4) + little_endian(uint32_t(-1), 4), 3, 0,
                           codec);
  return parquet_file(
      schema, 2,
      {{.num_values = 4, .pages = page(definition, plain_texts({"be brief", "1+1?"})), .codec = codec},
       {.num_values = 4, .pages = page(with_null, plain_texts({"system"})), .codec = codec},
       {.type = 1, .num_values = 3, .pages = answers, .codec = codec}},
      3);
}

TEST(Parquet, ReadsNestedRowsInBothPageVersionsAndAllCodecs) {
  const Json expected = Json::parse(R"([
    {"answer": 7, "prompt": [{"content": "be brief", "role": "system"}, {"content": "1+1?", "role": null}]},
    {"answer": null, "prompt": []}, {"answer": -1, "prompt": null}])");
  for (const bool is_v2 : {false, true})
    for (const int codec : {kNone, kSnappy, kGzip, kZstd})
      EXPECT_EQ(Json(rows_of(prompt_file(is_v2, codec))), expected) << is_v2 << " " << codec;
}

TEST(Parquet, ReadsOnlyTheAskedColumns) {
  EXPECT_EQ(Json(rows_of(prompt_file(false, kNone), {"answer", "absent"})),
            Json::parse(R"([{"answer": 7}, {"answer": null}, {"answer": -1}])"));
}

TEST(Parquet, ListsOfListsKeepTheirShape) {
  // list<list<int>>: [[1,2],[]], [], [[3]]
  const std::vector<std::string> schema = {schema_group("x", 1, 1, true), schema_group("list", 2, 1),
                                           schema_group("element", 1, 1, true), schema_group("list", 2, 1),
                                           schema_leaf("element", 1, 0)};
  const std::string page = data_page_v1(levels_v1({0, 2, 1, 0, 0}) + levels_v1({4, 4, 3, 1, 4}) +
                                            little_endian(1, 4) + little_endian(2, 4) + little_endian(3, 4),
                                        5, 0);
  EXPECT_EQ(Json(rows_of(parquet_file(schema, 1, {{.type = 1, .num_values = 5, .pages = page}}, 3))),
            Json::parse(R"([{"x": [[1, 2], []]}, {"x": []}, {"x": [[3]]}])"));
}

TEST(Parquet, OldTwoLevelListsHoldTheirElementsDirectly) {
  const std::vector<std::string> schema = {schema_group("x", 0, 1, true), schema_leaf("array", 6, 2)};
  const std::string page =
      data_page_v1(levels_v1({0, 1, 0}) + levels_v1({1, 1, 0}) + plain_texts({"a", "b"}), 3, 0);
  EXPECT_EQ(Json(rows_of(parquet_file(schema, 1, {{.num_values = 3, .pages = page}}, 2))),
            Json::parse(R"([{"x": ["a", "b"]}, {"x": []}])"));
}

TEST(Parquet, PublishedDapoFileHasItsRows) {
  ROPD_NEEDS_DATA();
  const ParquetFile file(data_directory() / "train/dapo-math-17k.parquet");
  EXPECT_EQ(file.num_rows(), 17917u);
  std::set<std::string> prompts, ids;
  uint64_t rows = 0;
  file.for_each_row([&](Json&& row, uint64_t index) {
    EXPECT_EQ(index, rows++);
    ASSERT_EQ(row["prompt"].size(), 1u);
    EXPECT_EQ(row["prompt"][0]["role"], "user");
    prompts.insert(row["prompt"][0]["content"].get<std::string>());
    ids.insert(row["extra_info"]["index"].get<std::string>());
    if (index == 0) {
      EXPECT_EQ(row["reward_model"]["ground_truth"], "34");
    }
  });
  EXPECT_EQ(rows, 17917u);
  EXPECT_EQ(ids.size(), 17917u);
  EXPECT_EQ(prompts.size(), 17398u);
}

TEST(Parquet, EveryCutFileIsRefused) {
  const std::string file = prompt_file(false, kSnappy);
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(error_of(file.substr(0, length)), "") << length;
}

TEST(Parquet, EveryFlippedByteGivesRowsOrAnError) {
  for (const int codec : {kNone, kSnappy, kZstd}) {
    const std::string file = prompt_file(codec == kZstd, codec);
    for (size_t i = 0; i < file.size(); ++i)
      for (const int flip : {0x01, 0x80, 0xFF}) {
        std::string broken = file;
        broken[i] = char(broken[i] ^ flip);
        error_of(broken);  // must return
      }
  }
}

TEST(Parquet, ColumnsOfDifferentLengthAreRefused) {
  const std::vector<std::string> schema = {schema_leaf("a", 6, 0), schema_leaf("b", 6, 0)};
  const std::string two = data_page_v1(plain_texts({"x", "y"}), 2, 0),
                    one = data_page_v1(plain_texts({"x"}), 1, 0);
  EXPECT_THAT(error_of(parquet_file(schema, 2,
                                    {{.num_values = 2, .pages = two}, {.num_values = 1, .pages = one}}, 2)),
              HasSubstr("column 'b' ends too early"));
  EXPECT_THAT(error_of(parquet_file(schema, 2,
                                    {{.num_values = 2, .pages = two}, {.num_values = 1, .pages = one}}, 1)),
              HasSubstr("column 'a' has more rows"));
}

TEST(Parquet, SiblingsWithDifferentListLengthsAreRefused) {
  const std::vector<std::string> schema = {schema_group("x", 2, 2), schema_leaf("a", 1, 0),
                                           schema_leaf("b", 1, 0)};
  const auto page = [](const std::vector<int>& repetition) {
    return data_page_v1(levels_v1(repetition) + levels_v1({1, 1, 1}) + std::string(12, '\0'), 3, 0);
  };
  EXPECT_THAT(error_of(parquet_file(schema, 1,
                                    {{.type = 1, .num_values = 3, .pages = page({0, 1, 0})},
                                     {.type = 1, .num_values = 3, .pages = page({0, 0, 1})}},
                                    2)),
              HasSubstr("rows that do not fit the others"));
}

TEST(Parquet, NotAParquetFile) {
  EXPECT_THAT(error_of("{\"problem\": \"1+1\"}"), HasSubstr("not a parquet file"));
  EXPECT_THAT(error_of("PAR1 and then something else"), HasSubstr("does not end with 'PAR1'"));
}

}  // namespace
}  // namespace ropd::io
