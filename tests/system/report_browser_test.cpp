// The report in a real browser, at desktop and phone width, light and dark: nothing is fetched, no error occurs, all text
// can be read, the page does not scroll sideways, tokens show their candidates to a pointer and to a finger. Chromium is
// a test-only package; without it the tests are reported as skipped.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "io/sample_file.h"
#include "support/browser.h"
#include "support/page_checks.h"
#include "support/payloads.h"
#include "support/run_fixture.h"
#include "system/shell.h"

namespace ropd {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ReportInBrowser : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  std::string arguments_;

  void SetUp() override {
    if (!test::Browser::is_installed()) GTEST_SKIP() << "chromium is not installed (./run test installs it)";
  }

  std::string url(const std::string& file = "report.html") const {
    return "file://" + (directory_ / file).string();
  }

  // A response to the first question of the fixture's suite, one token a text.
  static ResponseSample response(const std::vector<std::string>& texts) {
    ResponseSample sample{.benchmark = "digits-06",
                          .query_id = "digits-06-101",
                          .question = texts.front(),
                          .answer = "6",
                          .correct = true,
                          .finish = Finish::eos,
                          .num_tokens = texts.size()};
    Token id = 0;
    for (const std::string& text : texts) {
      const double student = -0.1 * (id % 9), teacher = -0.4 * (id % 11);
      sample.tokens.push_back(
          {{text, id, student, teacher}, {{text, id, student, teacher}, {"other " + text, 99, -2.5, -0.2}}});
      ++id;
    }
    return sample;
  }

  // The fixture's six methods, each with responses kept for reading, and a diagnosis.
  void make_report(const std::vector<std::string>& texts, const std::string& hostile = "") {
    size_t index = 0;
    for (test::FakeRun fake : test::fake_laboratory()) {
      fake.hostile = hostile;
      const auto path = directory_ / ("run" + std::to_string(index++));
      test::write_fake_run(path, fake);
      io::write_samples(path / "eval/final/samples.jsonl", {response(texts)});
      arguments_ += " '" + fake.name + "=" + path.string() + "'";
    }
    test::write_fake_diagnosis(directory_ / "diagnosis", hostile);
    ResponseSample seen = response(texts);
    seen.source = seen.student = "theta0" + hostile;
    io::write_samples(directory_ / "diagnosis/samples.jsonl", {seen});
    arguments_ += " " + (directory_ / "diagnosis").string();
    const auto outcome =
        test::run_ropd("report" + arguments_ + " --out " + (directory_ / "report.html").string());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }

  // Without the page's own policy, so that a script or a request would really happen.
  void remove_policy(const std::string& file) {
    std::string html = read_file(directory_ / file);
    const size_t policy = html.find("<meta http-equiv"), end = html.find('>', policy);
    ASSERT_NE(policy, std::string::npos);
    html.replace(policy, end + 1 - policy,
                 "<script>window.hits = 0; window.hit = () => ++window.hits;</script>");
    test::write_text(directory_ / file, html);
  }

  void expect_no_request(const test::Browser& browser) const {
    EXPECT_THAT(browser.complaints, IsEmpty());
    EXPECT_EQ(browser.num_dialogs, 0);
    for (const std::string& asked : browser.requests)
      if (asked != "about:blank" && asked != "data:,") {
        EXPECT_THAT(asked, testing::StartsWith("file://" + directory_.path().string()));
        EXPECT_THAT(asked, testing::EndsWith(".html"));
      }
  }
  static std::string shown_about(test::Browser& browser, const std::string& selector) {
    return browser.evaluate("getComputedStyle(document.querySelector('" + selector +
                            "'), '::after').content");
  }
};

const std::vector<std::string> kTexts = {"=2e", "=4;", "a=5", ";#6", "\\boxed{", "6", "}", "\n", ""};

TEST_F(ReportInBrowser, IsSoundAtBothWidthsInLightAndDark) {
  make_report(kTexts);
  test::Browser browser;
  for (const int width : {1400, 390})
    for (const bool is_dark : {false, true}) {
      browser.set_view(width, is_dark);
      browser.open(url());
      for (const bool is_open : {false, true}) {
        browser.evaluate("document.querySelectorAll('details').forEach(part => part.open = " +
                         std::string(is_open ? "true" : "false") + "); 0");
        test::expect_sound_page(
            browser, std::to_string(width) + (is_dark ? ", dark" : ", light") + (is_open ? ", open" : ""));
      }
      EXPECT_EQ(browser.evaluate("document.querySelectorAll('figure svg').length"), 30);
    }
  expect_no_request(browser);
}

TEST_F(ReportInBrowser, TokensShowTheirCandidatesToAPointerAndToAFinger) {
  make_report(kTexts);
  test::Browser browser;
  browser.set_view(390, false);
  browser.open(url());
  const std::string second = ".sample .token:nth-child(2)", third = ".sample .token:nth-child(3)";
  EXPECT_EQ(shown_about(browser, second), "none");
  browser.point_at(second);
  EXPECT_THAT(shown_about(browser, second), HasSubstr("log-ratio"));
  EXPECT_THAT(shown_about(browser, second), HasSubstr("other =4;"));
  browser.point_at(third, /*is_press=*/true);
  EXPECT_THAT(shown_about(browser, third), HasSubstr("other a=5"));
  browser.point_at("h1");
  EXPECT_THAT(shown_about(browser, third), HasSubstr("other a=5"));  // the finger is gone, the choice stays
  EXPECT_EQ(shown_about(browser, second), "none");
  // What is shown lies inside the window, whatever scrolls.
  EXPECT_EQ(browser.evaluate("getComputedStyle(document.querySelector('" + third + "'), '::after').position"),
            "fixed");
}

TEST_F(ReportInBrowser, MarksCanBeToldApartWithoutColours) {
  make_report(kTexts);
  test::Browser browser;
  browser.open(url());
  const Json kinds = browser.evaluate(
      "['less1','less2','less3','more1','more2','more3'].map(name => { const style = "
      "getComputedStyle(document.querySelector('.legend .' + name)); return style.borderBottomStyle + "
      "style.borderBottomWidth; })");
  EXPECT_EQ(kinds, Json::array({"solid1px", "solid2px", "solid4px", "dotted1px", "dotted2px", "dotted4px"}));
  EXPECT_THAT(browser.evaluate("document.querySelector('.legend').textContent").get<std::string>(),
              HasSubstr("−2.5"));
  // and without a pointer: as a table
  EXPECT_THAT(
      browser.evaluate("document.querySelector('.sample details table').textContent").get<std::string>(),
      HasSubstr("teacher prefers"));
}

TEST_F(ReportInBrowser, EverythingIsReachedByKeyboard) {
  make_report(kTexts);
  test::Browser browser;
  browser.open(url());
  // Every link, fold and scrolling place comes once, in the order of the page, and is seen to be chosen.
  const int count = browser.evaluate(
      "(window.stops = [...document.querySelectorAll('a[href], summary, [tabindex=\"0\"], pre')]"
      ".filter(element => element.checkVisibility() && (element.tagName !== 'PRE' || "  // a browser's own stop
      "element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth))).length");
  ASSERT_GT(count, 20);
  for (int i = 0; i < count; ++i) {
    browser.press("Tab", 9);
    ASSERT_EQ(browser.evaluate("window.stops.indexOf(document.activeElement)"), i)
        << browser.evaluate("document.activeElement.outerHTML.slice(0, 200)");
    ASSERT_NE(browser.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none")
        << browser.evaluate("document.activeElement.outerHTML.slice(0, 200)");
  }
  browser.evaluate("document.querySelector('.sample summary').focus(); 0");
  browser.press("Enter", 13);
  EXPECT_EQ(browser.evaluate("document.querySelector('.sample details').open"), true);
}

// In names of runs and queries, alarms, settings, questions, tokens and candidates.
TEST_F(ReportInBrowser, TwoHundredPayloadsDoNothing) {
  const auto all = test::payloads();
  std::string together;
  for (const std::string& payload : all) together += payload + "\n";
  std::ranges::replace(together, '\r', ' ');
  make_report(all, all[1] + all[6] + "\"'&");
  for (int i = 0; i < 6; ++i) {
    const auto config = directory_ / ("run" + std::to_string(i)) / "config.yaml";
    if (!std::filesystem::exists(config)) continue;
    std::string text = read_file(config) + "notes: |\n";
    std::istringstream lines(together);
    for (std::string line; std::getline(lines, line);) {
      std::erase_if(line, [](char c) {
        return static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126;
      });
      text += "  " + line + "\n";
    }
    test::write_text(config, text);
  }
  const auto outcome = test::run_ropd("report" + arguments_ + " --title '" + all[0] + "' --out " +
                                      (directory_ / "bare.html").string());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  remove_policy("bare.html");
  test::Browser browser;
  browser.open(url("bare.html"));
  browser.evaluate("document.querySelectorAll('details').forEach(part => part.open = true); 0");
  EXPECT_GE(browser.evaluate("document.querySelectorAll('.token').length"), 200 * 7);
  EXPECT_EQ(browser.evaluate("window.hits"), 0);
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('script').length"), 1);  // the one of this test
  EXPECT_EQ(browser.evaluate(
                "document.querySelectorAll('img, iframe, object, embed, base, form, video, math, input, "
                "body link, body style, body meta, a:not([href^=\"#\"])').length"),
            0);
  EXPECT_EQ(browser.evaluate("[...document.querySelectorAll('*')].flatMap(element => [...element.attributes])"
                             ".filter(attribute => attribute.name.startsWith('on')).length"),
            0);
  expect_no_request(browser);
}

}  // namespace
}  // namespace ropd
