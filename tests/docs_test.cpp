// Documents that are compared with reality: the tree in README.md with src/, docs/config.md with the field
// lists.
// Under sanitizers gcc 12 takes the insides of std::regex for uninitialized.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "base/file.h"
#include "train/train_config.h"

namespace ropd {
namespace {

const Path kRoot = ROPD_SOURCE_DIR;

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex regex(pattern);
  for (auto match = std::sregex_iterator(text.begin(), text.end(), regex); match != std::sregex_iterator();
       ++match) {
    found.insert((*match)[1].str());
  }
  return found;
}

// The tree is a block of lines "  base/   what it is" below a line "src/".
TEST(Readme, TreeNamesExactlyTheFoldersOfSrc) {
  const std::string text = read_file(kRoot / "README.md");
  const auto begin = text.find("\nsrc/");
  ASSERT_NE(begin, std::string::npos) << "README.md has no tree that begins with src/";
  const auto end = text.find("```", begin);
  ASSERT_NE(end, std::string::npos);
  const auto named = matches(text.substr(begin, end - begin), R"(\n  ([a-z_]+)/ )");
  std::set<std::string> existing;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "src"))
    existing.insert(entry.path().filename());
  EXPECT_EQ(named, existing);
}

TEST(Readme, LinksToFilesThatExist) {
  std::vector<Path> documents = {kRoot / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  for (const auto& document : documents) {
    for (const auto& target : matches(read_file(document), R"(\]\(([^)#:\s]+)\))")) {
      EXPECT_TRUE(std::filesystem::exists(document.parent_path() / target))
          << document << " links to " << target;
    }
  }
}

TEST(ConfigReference, IsWhatTheFieldListsSay) {
  EXPECT_EQ(read_file(kRoot / "docs/config.md"),
            config_reference_markdown<train::TrainConfig>("Configuration"))
      << "regenerate it: build/ropd config-reference > docs/config.md";
}

}  // namespace
}  // namespace ropd
