#include "watch/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"

namespace ropd::watch {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Assets, AreTheFilesOfTheRepository) {
  const Path folder = "web";  // tests run in the folder of the sources
  std::set<std::string> names = {"/chart.css"};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = "/" + entry.path().filename().string();
    names.insert(name);
    ASSERT_TRUE(find_asset(name)) << name;
    EXPECT_EQ(*find_asset(name)->body, read_file(entry.path()));
  }
  for (const Asset& asset : assets()) EXPECT_TRUE(names.contains(asset.path)) << asset.path;
  EXPECT_EQ(find_asset("/"), find_asset("/index.html"));
  EXPECT_FALSE(find_asset("/../CMakeLists.txt"));
}

TEST(Assets, HaveTheirTypes) {
  EXPECT_THAT(find_asset("/index.html")->content_type, HasSubstr("text/html"));
  EXPECT_THAT(find_asset("/app.js")->content_type, HasSubstr("text/javascript"));
  EXPECT_THAT(find_asset("/chart.css")->content_type, HasSubstr("text/css"));
}

// The server's policy allows nothing else; a browser would refuse it in silence.
TEST(Assets, HoldNoInlineScriptsAndNamesOfNoOtherPlace) {
  for (const Asset& asset : assets()) {
    std::string text = *asset.body;
    const std::string name_of_svg = "http://www.w3.org/2000/svg";
    for (size_t at = 0; (at = text.find(name_of_svg)) != std::string::npos;)
      text.erase(at, name_of_svg.size());
    EXPECT_THAT(text, Not(HasSubstr("://"))) << asset.path;
    EXPECT_THAT(text, Not(HasSubstr("innerHTML"))) << asset.path;
    EXPECT_THAT(text, Not(HasSubstr("javascript:"))) << asset.path;
  }
  EXPECT_THAT(*find_asset("/")->body, Not(HasSubstr("style=")));
}

}  // namespace
}  // namespace ropd::watch
