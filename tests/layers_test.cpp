// The architecture as a checked fact: the module list of CMakeLists.txt against every #include and every file
// of src/.
// Under sanitizers gcc 12 takes the insides of std::regex for uninitialized.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ropd {
namespace {

namespace fs = std::filesystem;

struct Module {
  int level = -1;
  std::set<std::string> uses;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const fs::path kSource = fs::path(ROPD_SOURCE_DIR) / "src";

// ropd_module(name LEVEL n USES a b LIBS ...) and ropd_program(name folder LEVEL n USES ...).
std::map<std::string, Module> read_modules() {
  std::map<std::string, Module> modules;
  const std::string text = text_of(fs::path(ROPD_SOURCE_DIR) / "CMakeLists.txt");
  const std::regex line(R"(\n(ropd_module|ropd_program)\(([^)]*)\))");
  for (auto match = std::sregex_iterator(text.begin(), text.end(), line); match != std::sregex_iterator();
       ++match) {
    std::istringstream words((*match)[2].str());
    std::string name, word;
    words >> name;
    if ((*match)[1] == "ropd_program") words >> name;  // the folder
    Module& module = modules[name];
    std::string section;
    while (words >> word) {
      if (word == "LEVEL" || word == "USES" || word == "LIBS") {
        section = word;
      } else if (section == "LEVEL") {
        module.level = std::stoi(word);
      } else if (section == "USES") {
        module.uses.insert(word);
      }
    }
  }
  return modules;
}

std::vector<fs::path> source_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kSource)) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp")) files.push_back(entry.path());
  }
  return files;
}

std::string module_of(const fs::path& file) { return fs::relative(file, kSource).begin()->string(); }

TEST(Layers, ModuleListIsRead) {
  const auto modules = read_modules();
  ASSERT_TRUE(modules.contains("base") && modules.contains("io") && modules.contains("app"));
  EXPECT_EQ(modules.at("base").level, 0);
  EXPECT_TRUE(modules.at("io").uses.contains("tensor"));
  EXPECT_TRUE(modules.at("app").uses.contains("lab"));
  EXPECT_GE(modules.size(), 19u);
}

TEST(Layers, EveryModuleUsesOnlyLowerLevels) {
  const auto modules = read_modules();
  for (const auto& [name, module] : modules) {
    EXPECT_GE(module.level, 0) << name << " has no LEVEL";
    for (const auto& used : module.uses) {
      ASSERT_TRUE(modules.contains(used)) << name << " uses " << used << ", which is not declared";
      EXPECT_LT(modules.at(used).level, module.level) << name << " -> " << used;
    }
  }
}

TEST(Layers, EveryFolderOfSrcIsAModule) {
  const auto modules = read_modules();
  for (const auto& entry : fs::directory_iterator(kSource)) {
    EXPECT_TRUE(modules.contains(entry.path().filename().string()))
        << entry.path() << " has no ropd_module line";
  }
}

// The paths that a file includes between quotes.
std::vector<fs::path> includes_of(const fs::path& file) {
  static const std::regex include(R"re((?:^|\n)[ \t]*#[ \t]*include[ \t]*"([^"]+)")re");
  const std::string text = text_of(file);
  std::vector<fs::path> targets;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), include); match != std::sregex_iterator();
       ++match)
    targets.emplace_back((*match)[1].str());
  return targets;
}

TEST(Layers, EveryIncludeFollowsTheModuleList) {
  const auto modules = read_modules();
  int num_includes = 0;
  for (const auto& file : source_files()) {
    const std::string from = module_of(file);
    for (const auto& target : includes_of(file)) {
      const std::string to = target.begin()->string();
      if (to == "support") continue;  // tests/support, only in tests
      ++num_includes;
      EXPECT_TRUE(fs::exists(kSource / target))
          << file << " includes " << target << ", which is not a path below src/";
      if (to == from) continue;
      EXPECT_TRUE(modules.contains(from) && modules.at(from).uses.contains(to))
          << file << " includes " << target << ", but the line of " << from << " does not name " << to;
    }
  }
  EXPECT_GT(num_includes, 50);
}

TEST(Layers, EveryModuleIncludesAllThatItsLineNames) {
  auto modules = read_modules();
  for (const auto& file : source_files())
    for (const auto& target : includes_of(file))
      modules[module_of(file)].uses.erase(target.begin()->string());
  for (const auto& [name, module] : modules)
    for (const auto& used : module.uses)
      ADD_FAILURE() << "the line of " << name << " in CMakeLists.txt names " << used
                    << ", but no file of src/" << name << " includes it";
}

// Its table has one line a module: level, name, what it uses.
TEST(Layers, ArchitectureDrawsWhatTheModuleListSays) {
  const std::string text = text_of(fs::path(ROPD_SOURCE_DIR) / "docs" / "architecture.md");
  const std::regex line(R"(\n *([0-9]) +([a-z]+) *([a-z ]*(?:\n {9,}[a-z ]+)*))");  // long ones go on below
  std::map<std::string, Module> drawn;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), line); match != std::sregex_iterator();
       ++match) {
    Module& module = drawn[(*match)[2].str()];
    module.level = std::stoi((*match)[1].str());
    std::istringstream words((*match)[3].str());
    for (std::string word; words >> word;) module.uses.insert(word);
  }
  for (const auto& [name, module] : read_modules()) {
    EXPECT_EQ(drawn[name].level, module.level) << name;
    EXPECT_EQ(drawn[name].uses, module.uses) << name;
    drawn.erase(name);
  }
  for (const auto& [name, module] : drawn)
    ADD_FAILURE() << "architecture.md draws " << name << ", which is no module";
}

TEST(Layers, OnlyTestsUseTestSupport) {
  for (const auto& file : source_files()) {
    if (file.stem().string().find("_test") != std::string::npos) continue;  // x_test.cpp, x_test_support.h
    EXPECT_EQ(text_of(file).find("#include \"support/"), std::string::npos) << file;
  }
}

TEST(Layers, EverySourceOutsideAppHasItsTestBesideIt) {
  for (const auto& file : source_files()) {
    if (file.extension() != ".cpp" || module_of(file) == "app" || file.stem().string().ends_with("_test"))
      continue;
    const auto test = file.parent_path() / (file.stem().string() + "_test.cpp");
    EXPECT_TRUE(fs::exists(test)) << file << " has no " << test.filename();
  }
}

TEST(Layers, EveryHeaderBeginsWithACommentAndHasPragmaOnce) {
  for (const auto& file : source_files()) {
    if (file.extension() != ".h") continue;
    const std::string text = text_of(file);
    EXPECT_TRUE(text.starts_with("//")) << file << " does not say what it is in its first lines";
    // Some headers are meant to be included several times, and say so.
    const std::string beginning = text.substr(0, 600);
    const bool is_repeated = beginning.find("Included once per instruction set") != std::string::npos ||
                             beginning.find("Included once\n// per instruction set") != std::string::npos ||
                             beginning.find("Included inside the namespace of each") != std::string::npos;
    EXPECT_TRUE(is_repeated || text.find("\n#pragma once\n") != std::string::npos) << file;
  }
}

}  // namespace
}  // namespace ropd
