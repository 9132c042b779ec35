// Where tests find the shared data (../shared/data or ROPD_TEST_DATA), and temporary folders.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ropd::test {

// The shared data folder, or an empty path where it is absent. Tests run in the folder of the sources.
inline std::filesystem::path data_directory() {
  if (const char* path = std::getenv("ROPD_TEST_DATA")) return path;
  const std::filesystem::path beside = "../shared/data";
  return std::filesystem::exists(beside) ? beside : std::filesystem::path{};
}

// A fresh folder, removed at the end of the scope.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "ropd-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace ropd::test

// First line of a test that needs the shared data: reports the test as skipped where it is absent.
#define ROPD_NEEDS_DATA() \
  if (ropd::test::data_directory().empty()) GTEST_SKIP() << "shared data not found (set ROPD_TEST_DATA)"
