#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::HasSubstr;

// Header text and data as a file.
std::string file_of(const std::string& header, size_t data_bytes) {
  const auto length = std::bit_cast<std::array<char, 8>>(uint64_t{header.size()});
  return std::string(length.data(), 8) + header + std::string(data_bytes, '\0');
}

std::string error_of(const std::string& file) {
  try {
    parse_safetensors(std::as_bytes(std::span(file)), "w.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const std::string file =
      file_of("{" + entry("b", "F32", "[2,3]", "[4,28]") + "," + entry("a", "BF16", "[2]", "[0,4]") +
                  R"(,"__metadata__":{"format":"pt"}}  )",
              28);
  const auto content = parse_safetensors(std::as_bytes(std::span(file)), "w");
  ASSERT_EQ(content.tensors.size(), 2u);
  EXPECT_EQ(content.tensors[0].name, "a");
  EXPECT_EQ(content.tensors[0].dtype, DType::bf16);
  EXPECT_EQ(content.tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(content.tensors[1].bytes.size(), 24u);
  EXPECT_EQ(content.metadata.at("format"), "pt");
}

TEST(Safetensors, AcceptsScalarsAndEmptyTensors) {
  EXPECT_EQ(error_of(file_of(
                "{" + entry("s", "F32", "[]", "[0,4]") + "," + entry("e", "F16", "[0,5]", "[4,4]") + "}", 4)),
            "");
  EXPECT_EQ(error_of(file_of("{}", 0)), "");
}

TEST(Safetensors, RefusesAFileShorterThanEightBytes) {
  EXPECT_THAT(error_of("1234567"), HasSubstr("w.safetensors: has 7 bytes"));
  EXPECT_THAT(error_of(""), HasSubstr("has 0 bytes"));
}

TEST(Safetensors, RefusesAHeaderBeyondTheFile) {
  EXPECT_THAT(error_of(file_of("{}", 0).substr(0, 9)), HasSubstr("header claims 2 bytes, the file has 9"));
}

TEST(Safetensors, RefusesAHeaderAbove100Megabytes) {
  EXPECT_THAT(error_of(std::string(8, '\xff') + "{}"),
              HasSubstr("header claims 18446744073709551615 bytes, at most 100000000"));
}

TEST(Safetensors, RefusesAHeaderThatIsNotJson) {
  EXPECT_THAT(error_of(file_of("{\"a\": nothing}", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(file_of("[1]", 0)), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(error_of(file_of("{} x", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(file_of("", 0)), HasSubstr("does not begin with '{'"));
}

TEST(Safetensors, RefusesDuplicateNames) {
  const auto one = entry("a", "F32", "[1]", "[0,4]");
  EXPECT_THAT(error_of(file_of("{" + one + "," + one + "}", 4)), HasSubstr("\"a\" occurs twice"));
}

TEST(Safetensors, RefusesAnUnknownDtype) {
  EXPECT_THAT(error_of(file_of("{" + entry("a", "I64", "[1]", "[0,8]") + "}", 8)),
              HasSubstr("tensor 'a' has dtype 'I64'"));
}

TEST(Safetensors, RefusesAShapeWhoseProductOverflows) {
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0)),
              HasSubstr("overflows"));
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[18446744073709551615]", "[0,0]") + "}", 0)),
              HasSubstr("overflows"));
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[4611686018427387904]", "[0,0]") + "}", 0)),
              HasSubstr("overflows"));
}

TEST(Safetensors, RefusesNegativeAndBrokenSizes) {
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[-1]", "[0,4]") + "}", 4)),
              HasSubstr("non-negative integers"));
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[1.0]", "[0,4]") + "}", 4)),
              HasSubstr("non-negative integers"));
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "3", "[0,4]") + "}", 4)),
              HasSubstr("shape must be a list"));
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[1]", "[0]") + "}", 4)), HasSubstr("[begin, end]"));
  EXPECT_THAT(error_of(file_of("{\"a\": 3}", 4)), HasSubstr("not described by an object"));
  EXPECT_THAT(error_of(file_of("{\"a\": {\"dtype\": \"F32\"}}", 4)),
              HasSubstr("must have dtype, shape and data_offsets"));
  EXPECT_THAT(error_of(file_of("{\"__metadata__\": {\"a\": 3}}", 0)), HasSubstr("must be text"));
}

TEST(Safetensors, RefusesReversedOffsets) {
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[1]", "[4,0]") + "}", 4)),
              HasSubstr("reversed: [4, 0]"));
}

TEST(Safetensors, RefusesOverlappingTensors) {
  EXPECT_THAT(
      error_of(file_of(
          "{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[2]", "[4,12]") + "}", 12)),
      HasSubstr("'b' begins at byte 4 of the data, expected 8 (it overlaps"));
}

TEST(Safetensors, RefusesHolesBetweenTensors) {
  EXPECT_THAT(
      error_of(file_of(
          "{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[8,12]") + "}", 12)),
      HasSubstr("expected 4 (a hole"));
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[1]", "[4,8]") + "}", 8)),
              HasSubstr("expected 0 (a hole"));
}

TEST(Safetensors, RefusesDataPastTheEnd) {
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[2]", "[0,8]") + "}", 7)),
              HasSubstr("ends at byte 8 of the data, which has 7 (incomplete"));
}

TEST(Safetensors, RefusesASizeThatIsNotShapeTimesDtype) {
  EXPECT_THAT(error_of(file_of("{" + entry("a", "BF16", "[2]", "[0,8]") + "}", 8)),
              HasSubstr("'a' has 8 bytes, its shape and dtype need 4"));
}

TEST(Safetensors, RefusesTrailingBytes) {
  EXPECT_THAT(error_of(file_of("{" + entry("a", "F32", "[1]", "[0,4]") + "}", 9)),
              HasSubstr("5 bytes follow the last tensor"));
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const test::TemporaryDirectory directory;
  test::TensorsInMemory memory;
  memory.add("wide \"name\"", DType::f32, {3, 5});
  memory.add("half", DType::f16, {7});
  memory.add("brain", DType::bf16, {2, 2, 2});
  memory.add("none", DType::bf16, {0});
  write_safetensors(directory / "a", memory.tensors, {{"key", "value"}});
  const SafetensorsFile file(directory / "a");
  ASSERT_EQ(file.tensors().size(), 4u);
  for (const auto& expected : memory.tensors) {
    const auto& tensor = file.tensor(expected.name);
    EXPECT_EQ(tensor.dtype, expected.dtype);
    EXPECT_EQ(tensor.shape, expected.shape);
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, expected.bytes));
  }
  EXPECT_EQ(file.metadata().at("key"), "value");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.tensors()[0].bytes.data()) % 8, 0u);
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_THROW(file.tensor("other"), Error);
}

TEST(SafetensorsWriter, SavingWhatWasReadGivesTheSameBytes) {
  const test::TemporaryDirectory directory;
  test::TensorsInMemory memory;
  memory.add("a", DType::f32, {3, 5});
  memory.add("b", DType::bf16, {7});
  write_safetensors(directory / "a", memory.tensors);
  const SafetensorsFile file(directory / "a");
  write_safetensors(directory / "b", file.tensors(), file.metadata());
  EXPECT_EQ(read_file(directory / "a"), read_file(directory / "b"));
}

TEST(SafetensorsWriter, RefusesTooFewAndTooManyBytes) {
  const test::TemporaryDirectory directory;
  const std::vector<TensorInfo> infos = {{"a", DType::f32, {2}}};
  const std::vector<float> values = {1, 2, 3};
  SafetensorsWriter writer(directory / "a", infos);
  EXPECT_THROW(writer.commit(), Error);
  EXPECT_THROW(writer.write(values), Error);
  EXPECT_FALSE(std::filesystem::exists(directory / "a"));
  const std::vector<TensorInfo> twice = {infos[0], infos[0]};
  EXPECT_THROW(SafetensorsWriter(directory / "a", twice), Error);
}

}  // namespace
}  // namespace ropd::io
