#include "base/bytes.h"

#include <gtest/gtest.h>

namespace ropd {
namespace {

enum class Color : uint8_t { red = 3, green = 7 };

TEST(Bytes, EveryKindOfValueComesBack) {
  ByteWriter writer;
  writer.put(Color::green).put(-2.5).put(std::string("a\0b", 3)).put(std::vector<float>{1, -0.0f});
  writer.put(std::optional<std::string>("x")).put(std::optional<uint32_t>()).put(std::vector<int32_t>{});
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get<Color>(), Color::green);
  EXPECT_EQ(reader.get<double>(), -2.5);
  EXPECT_EQ(reader.get<std::string>(), std::string("a\0b", 3));
  EXPECT_EQ(reader.get<std::vector<float>>(), (std::vector<float>{1, -0.0f}));
  EXPECT_EQ(reader.get<std::optional<std::string>>(), "x");
  EXPECT_EQ(reader.get<std::optional<uint32_t>>(), std::nullopt);
  EXPECT_TRUE(reader.get<std::vector<int32_t>>().empty());
  EXPECT_TRUE(reader.is_at_end());
}

TEST(Bytes, MessageCutAnywhereIsRefused) {
  ByteWriter writer;
  writer.put(uint16_t{1}).put(std::string("hello")).put(std::vector<double>{1, 2});
  for (size_t size = 0; size < writer.bytes().size(); ++size) {
    ByteReader reader(writer.bytes().first(size));
    EXPECT_THROW(
        {
          (void)reader.get<uint16_t>();
          (void)reader.get<std::string>();
          (void)reader.get<std::vector<double>>();
        },
        Error)
        << size;
  }
}

TEST(Bytes, LengthBeyondTheMessageAllocatesNothing) {
  ByteWriter writer;
  writer.put(UINT64_MAX / 2);
  ByteReader reader(writer.bytes());
  EXPECT_THROW((void)reader.get<std::vector<double>>(), Error);
}

}  // namespace
}  // namespace ropd
