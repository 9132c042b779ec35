#include "base/mapped_regions.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "support/test_data.h"

namespace ropd {
namespace {

int byte_at(const MappedFile& file, size_t at) {
  return static_cast<int>(*const_cast<const volatile std::byte*>(file.bytes().data() + at));
}

TEST(MappedRegionsDeathTest, AFileCutShortWhileMappedEndsWithALineThatNamesIt) {
  const test::TemporaryDirectory directory;
  const auto read_what_is_gone = [&] {
    install_bus_error_handler();
    const Path path = directory / "weights";
    write_file_atomically(path, std::string(20000, 'x'));
    const MappedFile other(path);
    MappedFile first(path);
    const MappedFile moved = std::move(first);  // the region goes along
    truncate_file(path, 0);
    _exit(byte_at(moved, 9000) == 'x' ? 0 : 3);
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(1), "/weights: cannot be read any more");
}

TEST(MappedRegionsDeathTest, ABusErrorElsewhereStaysWhatItIs) {
  const auto raise_it = [] {
    install_bus_error_handler();
    raise(SIGBUS);
    raise(SIGBUS);
    _exit(0);
  };
  EXPECT_EXIT(raise_it(), testing::KilledBySignal(SIGBUS), "");
}

TEST(MappedRegions, ManyMappingsComeAndGo) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "f", "text");
  for (int round = 0; round < 3; ++round) {
    std::vector<MappedFile> files;
    for (int i = 0; i < 300; ++i) files.emplace_back(directory / "f");
    EXPECT_EQ(files.back().text(), "text");
  }
}

}  // namespace
}  // namespace ropd
