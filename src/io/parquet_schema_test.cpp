#include "io/parquet_schema.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/parquet_writer.h"

namespace ropd::io {
namespace {

using namespace ropd::test;  // NOLINT: the writer's vocabulary
using ::testing::HasSubstr;

ParquetFooter read(const std::string& file) {
  return read_parquet_footer(std::as_bytes(std::span(file)), "t.parquet");
}

std::string error_of(const std::string& file) {
  try {
    read(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParquetSchema, LevelsCountOptionalAndRepeatedNodes) {
  const std::string file = parquet_file(
      {schema_group("prompt", 1, 1, true), schema_group("list", 2, 1), schema_group("element", 1, 2),
       schema_leaf("content", 6, 1), schema_leaf("role", 6, 0), schema_leaf("id", 2, 0)},
      2, {{}, {}, {.type = 2}}, 0);
  const auto footer = read(file);
  const auto leaves = schema_leaves(footer.root);
  ASSERT_EQ(leaves.size(), 3u);
  EXPECT_EQ(leaves[0]->max_definition, 4);
  EXPECT_EQ(leaves[0]->max_repetition, 1);
  EXPECT_EQ(leaves[1]->max_definition, 3);
  EXPECT_EQ(leaves[2]->max_definition, 0);
  EXPECT_TRUE(footer.root.children[0].is_list);
  EXPECT_EQ(footer.root.children[1].first_leaf, 2u);
}

TEST(ParquetSchema, EndlessNestingIsRefused) {
  std::vector<std::string> schema(100, schema_group("g", 1, 1));
  schema.push_back(schema_leaf("x", 6, 0));
  EXPECT_THAT(error_of(parquet_file(schema, 1, {{}}, 0)), HasSubstr("schema deeper than"));
}

TEST(ParquetSchema, ChildrenThatAreNotThereAreRefused) {
  EXPECT_THAT(error_of(parquet_file({schema_group("g", 1, 2000000000), schema_leaf("x", 6, 0)}, 1, {{}}, 0)),
              HasSubstr("more children than it has elements"));
  EXPECT_THAT(error_of(parquet_file({schema_leaf("x", 6, 0), schema_leaf("y", 6, 0)}, 1, {{}}, 0)),
              HasSubstr("outside its root"));
}

TEST(ParquetSchema, ColumnsOutsideTheFileAreRefused) {
  std::string file =
      parquet_file({schema_leaf("x", 6, 0)}, 1, {{.num_values = 1, .pages = std::string(1000, 'x')}}, 1);
  file.erase(4,
             1000);  // the pages are gone, the footer keeps its claim, and what is left is too short for it
  EXPECT_THAT(error_of(file), HasSubstr("column 'x' claims 1000 bytes from byte 4"));
}

TEST(ParquetSchema, TypeOfChunkMustBeThatOfTheSchema) {
  EXPECT_THAT(error_of(parquet_file({schema_leaf("x", 6, 0)}, 1, {{.type = 1}}, 0)),
              HasSubstr("another type than the schema"));
}

TEST(ParquetSchema, FooterLongerThanTheFileIsRefused) {
  EXPECT_THAT(error_of("PAR1" + little_endian(1000, 4) + "PAR1"), HasSubstr("footer claims 1000 bytes"));
}

TEST(ParquetSchema, RowCountsMustAgree) {
  std::string file = parquet_file({schema_leaf("x", 6, 0)}, 1, {{}}, 5);
  // The row count of the footer itself (field 3, i64, zigzag 10) follows the schema list; make it 6.
  const size_t at = file.rfind(std::string("\x16\x0A\x19"));
  ASSERT_NE(at, std::string::npos);
  file[at + 1] = 12;
  EXPECT_THAT(error_of(file), HasSubstr("the footer claims 6 rows, its row groups have 5"));
}

}  // namespace
}  // namespace ropd::io
