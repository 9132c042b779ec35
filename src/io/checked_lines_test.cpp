#include "io/checked_lines.h"

#include <gtest/gtest.h>

namespace ropd::io {
namespace {

TEST(CheckedLines, GiveBackTheRow) {
  for (const std::string row : {"", "{}", "a\tb", "{\"text\": \"\\u00e9\"}"})
    EXPECT_EQ(checked_row(with_checksum(row)), row);
}

TEST(CheckedLines, RefuseAnyChangedCharacter) {
  const std::string line = with_checksum("{\"ids\":[1,2,3]}");
  for (size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] = changed[i] == '7' ? '8' : '7';
    EXPECT_FALSE(checked_row(changed)) << i;
    EXPECT_FALSE(checked_row(line.substr(0, i))) << "cut to " << i;
  }
}

}  // namespace
}  // namespace ropd::io
