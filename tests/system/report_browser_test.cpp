// The report in a real browser, at desktop and phone width: nothing is fetched, no error occurs, every figure
// has size and a text alternative, the page does not scroll sideways. Chromium is a test-only package;
// without it the tests are reported as skipped.
#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd {
namespace {

using test::TemporaryDirectory;
using ::testing::HasSubstr;
using ::testing::Not;

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Measures the page from inside and leaves the result in it as JSON.
constexpr const char* kProbe = R"(<script>
const problems = [];
addEventListener('error', event => problems.push(String(event.message || event.target)), true);
addEventListener('securitypolicyviolation', event => problems.push(event.violatedDirective));
addEventListener('load', () => {
  const figures = [...document.querySelectorAll('figure')].map(figure => {
    const svg = figure.querySelector('svg'), box = svg.getBoundingClientRect();
    const names = svg.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id).textContent.trim().length);
    const outside = [...svg.querySelectorAll('text')].filter(text => {
      const inner = text.getBoundingClientRect();
      return inner.left < box.left - 2 || inner.right > box.right + 2 || inner.bottom > box.bottom + 2;
    }).map(text => text.textContent);
    return {role: svg.getAttribute('role'), width: box.width, height: box.height, title: names[0], description: names[1], outside};
  });
  const probe = document.createElement('pre');
  probe.id = 'probe';
  probe.textContent = JSON.stringify({problems, figures, requests: performance.getEntriesByType('resource').map(entry => entry.name),
    scripts: document.scripts.length, sideways: document.documentElement.scrollWidth - innerWidth, alerts: window.alerts || 0});
  document.body.append(probe);
});
window.alert = () => { window.alerts = (window.alerts || 0) + 1; };
</script>)";

class ReportInBrowser : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;

  void SetUp() override {
    if (std::system("command -v chromium > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "chromium is not installed (./run test installs it)";
  }

  void make_report(const std::string& hostile) {
    std::string arguments;
    size_t index = 0;
    for (test::FakeRun fake : test::fake_laboratory()) {
      fake.hostile = hostile;
      const auto path = directory_ / ("run" + std::to_string(index++));
      test::write_fake_run(path, fake);
      arguments += " '" + fake.name + "=" + path.string() + "'";
    }
    const std::string command = std::string(ROPD_PROGRAM) + " report" + arguments + " --out " +
                                (directory_ / "report.html").string() + " > /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  // The page after loading; messages of the browser go to `log`.
  std::string load(const std::string& file, int width) {
    const std::string command =
        "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr "
        "--user-data-dir=" +
        (directory_ / "profile").string() + " --window-size=" + std::to_string(width) +
        ",900 --dump-dom file://" + (directory_ / file).string() + " > " +
        (directory_ / "dom.html").string() + " 2> " + (directory_ / "log").string();
    EXPECT_EQ(std::system(command.c_str()), 0) << content_of(directory_ / "log");
    return content_of(directory_ / "dom.html");
  }

  // A copy without the page's own policy, so that a script or a request would really happen, with the probe
  // in front of everything.
  Json probe(int width) {
    std::string html = content_of(directory_ / "report.html");
    const size_t policy = html.find("<meta http-equiv"), end = html.find('>', policy);
    EXPECT_NE(policy, std::string::npos);
    html.replace(policy, end + 1 - policy, kProbe);
    test::write_text(directory_ / "probe.html", html);
    const std::string dom = load("probe.html", width);
    const std::string begin = "<pre id=\"probe\">";
    const size_t at = dom.find(begin);
    EXPECT_NE(at, std::string::npos) << "the page did not load";
    if (at == std::string::npos) return {};
    std::string text = dom.substr(at + begin.size(), dom.find("</pre>", at) - at - begin.size());
    for (const auto& [entity, character] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
      for (size_t i = text.find(entity); i != std::string::npos; i = text.find(entity, i + 1))
        text.replace(i, std::strlen(entity), character);
    return parse_json(text, "probe");
  }

  void expect_sound(const Json& seen) {
    EXPECT_EQ(seen["problems"], Json::array());
    EXPECT_EQ(seen["requests"], Json::array());
    EXPECT_EQ(seen["scripts"], 1);  // the probe
    EXPECT_EQ(seen["alerts"], 0);
    EXPECT_LE(seen["sideways"], 0);
    EXPECT_EQ(seen["figures"].size(), 27u);
    for (const Json& figure : seen["figures"]) {
      EXPECT_EQ(figure["role"], "img");
      EXPECT_GT(figure["width"], 200) << figure;
      EXPECT_GT(figure["height"], 80) << figure;
      EXPECT_GT(figure["title"], 2) << figure;
      EXPECT_GT(figure["description"], 20) << figure;
      EXPECT_EQ(figure["outside"], Json::array());
    }
  }
};

TEST_F(ReportInBrowser, IsSoundAtDesktopWidth) {
  make_report("");
  expect_sound(probe(1400));
}

TEST_F(ReportInBrowser, IsSoundAtPhoneWidth) {
  make_report("");
  expect_sound(probe(390));
}

TEST_F(ReportInBrowser, HostileTextsRunNothingAndFetchNothing) {
  make_report(
      "<script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)><svg onload=alert(3)>\"'");
  const Json seen = probe(1400);
  EXPECT_EQ(seen["requests"], Json::array());
  EXPECT_EQ(seen["scripts"], 1);
  EXPECT_EQ(seen["alerts"], 0);
}

TEST_F(ReportInBrowser, ItsOwnPolicyIsKeptWithoutComplaint) {
  make_report("");
  const std::string dom = load("report.html", 1400);
  EXPECT_THAT(dom, HasSubstr("</html>"));
  EXPECT_THAT(content_of(directory_ / "log"), Not(HasSubstr("CONSOLE")));
}

}  // namespace
}  // namespace ropd
