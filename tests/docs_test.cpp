// Documents that are compared with reality: the tree in README.md with src/, docs/config.md with the field
// lists, what docs/algorithm.md names with the sources, what sources cite with docs/.
// Under sanitizers gcc 12 takes the insides of std::regex for uninitialized.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

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

std::vector<Path> documents() {
  std::vector<Path> paths = {kRoot / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") paths.push_back(entry.path());
  return paths;
}

// Rows of tables cannot be broken.
TEST(Documents, HaveLinesOfAtMost120Characters) {
  for (const auto& document : documents()) {
    std::istringstream text(read_file(document));
    size_t number = 1;
    for (std::string line; std::getline(text, line); ++number) {
      const auto is_inside = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
      const auto length =
          line.size() - static_cast<size_t>(std::count_if(line.begin(), line.end(), is_inside));
      const size_t first = line.find_first_not_of(' ');
      if (first == std::string::npos || line[first] == '|') continue;
      EXPECT_LE(length, 120u) << document << ":" << number;
    }
  }
}

TEST(Documents, BenchmarksAreWhatIsTrueToday) {
  const std::string text = read_file(kRoot / "docs/benchmarks.md");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 120)
      << "a table a type of machine; replace old rows, history is in git";
}

TEST(Documents, TheLogHasEverySubjectInItsIndex) {
  const std::string text = read_file(kRoot / "docs/log.md");
  const std::string index = text.substr(0, text.find("\n## "));
  EXPECT_EQ(matches(index, R"(\[([^\]]+)\]\(#)"), matches(text, R"(\n## ([^\n]+))"));
}

TEST(Documents, LinkToFilesThatExist) {
  for (const auto& document : documents()) {
    for (const auto& target : matches(read_file(document), R"(\]\(([^)#:\s]+)\))")) {
      EXPECT_TRUE(std::filesystem::exists(document.parent_path() / target))
          << document << " links to " << target;
    }
  }
}

// The code of a file without what stands behind //.
std::string code_of(const Path& path) {
  return std::regex_replace(read_file(path), std::regex("//[^\n]*"), "");
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

std::string last_name(const std::string& name) {  // Trainer::iterate -> iterate
  const auto colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

TEST(Algorithm, EveryFileAndFunctionThatItNamesExists) {
  const std::string text = read_file(kRoot / "docs/algorithm.md");
  int num_functions = 0;
  for (const auto& place : matches(text, R"(`([a-z_]+/[a-z_]+\.(?:cpp|h)(?:: [A-Za-z_:]+)?)`)")) {
    const auto colon = place.find(": ");
    const Path file = kRoot / "src" / place.substr(0, colon);
    ASSERT_TRUE(std::filesystem::exists(file)) << "docs/algorithm.md names " << place;
    if (colon == std::string::npos) continue;
    ++num_functions;
    EXPECT_TRUE(has_word(code_of(file), last_name(place.substr(colon + 2))))
        << "docs/algorithm.md names " << place << ", which is not in that file";
  }
  EXPECT_GT(num_functions, 40);
}

// Names without a file: `score_teacher`, `VocabularyMap::align`.
TEST(Algorithm, EveryOtherNameIsSomewhereInTheSources) {
  std::string all;
  for (const char* folder : {"src", "tests"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / folder))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp")
        all += entry.path().stem().string() + "\n" + code_of(entry.path());  // `engine_test` is a file
  for (const auto& name :
       matches(read_file(kRoot / "docs/algorithm.md"), R"(`([A-Za-z_]+(?:::[A-Za-z_]+)*)`)"))
    EXPECT_TRUE(has_word(all, last_name(name))) << "docs/algorithm.md names " << name;
}

// A clone has docs/ and README.md; a section is a line "## 2. ...".
TEST(Sources, CiteOnlyDocumentsThatAreHere) {
  const std::regex citation(R"(([A-Za-z0-9_./-]*\.md)\b(?:,? sections? ([0-9]+))?)");
  const std::set<std::string> made_by_us = {"differences-length.md", "summary.md"};  // an evaluation's output
  const std::set<std::string> elsewhere = {"parquet/LogicalTypes.md"};  // of another project, and named so
  for (const char* folder : {"src", "tests", "bench", "fuzz", "docs", "recipes"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".md" && extension != ".yaml") continue;
      if (entry.path().filename() == "docs_test.cpp") continue;
      const std::string text = read_file(entry.path());
      for (auto match = std::sregex_iterator(text.begin(), text.end(), citation);
           match != std::sregex_iterator(); ++match) {
        const std::string name = (*match)[1], section = (*match)[2];
        if (name == ".md") continue;  // an extension, not a document
        const bool is_of_ours = name.find('/') == std::string::npos || name.starts_with("docs/");
        if (!is_of_ours && name.ends_with("README.md")) continue;  // a model's card, in a test
        if (made_by_us.contains(Path(name).filename()) || elsewhere.contains(name)) continue;
        const Path document =
            name == "README.md" || name.starts_with("docs/") ? kRoot / name : kRoot / "docs" / name;
        ASSERT_TRUE(std::filesystem::exists(document)) << entry.path() << " cites " << name;
        if (!section.empty()) {
          EXPECT_NE(read_file(document).find("\n## " + section + ". "), std::string::npos)
              << entry.path() << " cites " << name << " section " << section;
        }
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
