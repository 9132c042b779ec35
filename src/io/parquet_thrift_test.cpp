#include "io/parquet_thrift.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/parquet_writer.h"

namespace ropd::io {
namespace {

using ::testing::HasSubstr;

ThriftReader reader_of(const std::string& bytes) { return {std::as_bytes(std::span(bytes)), "t"}; }

std::string skip_error(const std::string& bytes) {
  try {
    auto reader = reader_of(bytes);
    reader.skip(ThriftType::structure);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParquetThrift, ReadsWhatTheWriterWrote) {
  const std::string bytes =
      test::ThriftWriter().i32(1, -7).i64(3, int64_t{1} << 40).text(4, "name").boolean(9, true).finish();
  auto reader = reader_of(bytes);
  reader.begin_structure();
  EXPECT_EQ(reader.read_i32(reader.next_field()), -7);
  EXPECT_EQ(reader.read_i64(reader.next_field()), int64_t{1} << 40);
  EXPECT_EQ(reader.read_binary(reader.next_field()), "name");
  const auto field = reader.next_field();
  EXPECT_EQ(field.id, 9);
  EXPECT_TRUE(reader.read_bool(field));
  EXPECT_EQ(reader.next_field().type, ThriftType::stop);
  EXPECT_EQ(reader.position(), bytes.size());
}

TEST(ParquetThrift, SkipsWhatItDoesNotKnow) {
  const std::string inner = test::ThriftWriter().i32(1, 1).text(2, "x").finish();
  const std::string bytes =
      test::ThriftWriter().structure(1, inner).structures(2, {inner, inner}).boolean(3, false).finish();
  auto reader = reader_of(bytes);
  reader.skip(ThriftType::structure);
  EXPECT_EQ(reader.position(), bytes.size());
}

TEST(ParquetThrift, EndlessNestingIsRefused) {
  EXPECT_THAT(skip_error(std::string(100000, '\x1C')), HasSubstr("nested too deep"));
  EXPECT_THAT(skip_error("\x19" + std::string(100000, '\x19')), HasSubstr("nested too deep"));
}

TEST(ParquetThrift, ClaimsBeyondTheBytesAreRefused) {
  EXPECT_THAT(skip_error(std::string("\x18\xFF\xFF\xFF\x7F", 5)), HasSubstr("text longer than the metadata"));
  EXPECT_THAT(skip_error(std::string("\x19\xF5\xFF\xFF\xFF\x7F", 6)),
              HasSubstr("list longer than the metadata"));
  EXPECT_THAT(skip_error(std::string("\x1B\xFF\xFF\xFF\x7F\x55", 6)),
              HasSubstr("map longer than the metadata"));
  EXPECT_THAT(skip_error("\x15"), HasSubstr("ends too early"));
}

TEST(ParquetThrift, NumbersOfMoreThan64BitsAreRefused) {
  EXPECT_THAT(skip_error("\x16" + std::string(12, '\xFF')), HasSubstr("more than 64 bits"));
}

TEST(ParquetThrift, WrongTypesAreRefused) {
  const std::string bytes = test::ThriftWriter().text(1, "x").finish();
  auto reader = reader_of(bytes);
  reader.begin_structure();
  EXPECT_THROW(reader.read_i32(reader.next_field()), Error);
}

}  // namespace
}  // namespace ropd::io
