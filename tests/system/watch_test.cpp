// The live page as a person sees it: `ropd watch` on folders of runs, in a real browser. Chromium is a test-only
// package; without it the tests are reported as skipped.
#include <gmock/gmock.h>

#include <algorithm>

#include "io/progress_file.h"
#include "io/sample_file.h"
#include "support/browser.h"
#include "support/run_fixture.h"

namespace ropd {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// `ropd watch` as a process of its own; killed when it goes.
class Watch {
 public:
  explicit Watch(const std::filesystem::path& folder, const std::string& port = "0") {
    int out[2];
    if (::pipe(out) != 0) fail("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::execl(ROPD_PROGRAM, "ropd", "watch", folder.c_str(), "--port", port.c_str(), "--json", "--quiet",
              nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    std::string line;
    for (char byte; ::read(out[0], &byte, 1) == 1 && byte != '\n';) line += byte;
    ::close(out[0]);
    url = parse_json(line, "ropd watch")["url"];
  }
  ~Watch() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  std::string url;
  std::string port() const { return url.substr(17, url.size() - 18); }  // http://127.0.0.1:PORT/

 private:
  pid_t process_ = 0;
};

class WatchInBrowser : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;

  void SetUp() override {
    if (!test::Browser::is_installed()) GTEST_SKIP() << "chromium is not installed (./run test installs it)";
  }

  static ResponseSample response(uint64_t iteration, const std::string& text) {
    return {.iteration = iteration,
            .query_id = text,
            .question = "Question: " + text,
            .answer = text,
            .correct = iteration % 2 == 0,
            .finish = Finish::eos,
            .num_tokens = 3,
            .tokens = {{{text, 1, -0.1, -3.0}, {{text, 1, -0.1, -3.0}, {"other", 2, -2.5, -0.2}}},
                       {{" and more", 2, -2.0, -0.1}, {}},
                       {{"<end>", 3, -0.01, -0.01}, {}}}};
  }

  void write_run(const std::string& name, uint64_t iterations, const std::string& hostile = "") {
    test::FakeRun run = test::fake_laboratory()[2];
    run.name = name;
    run.iterations = iterations;
    run.hostile = hostile;
    test::write_fake_run(directory_ / name, run);
    io::write_samples(directory_ / name / "samples/iter-0001.jsonl",
                      {response(1, "four"), response(2, "five")});
    io::ProgressFile file(directory_ / name / "progress.json");
    file.write({.name = name,
                .iteration = iterations,
                .iterations = 20,
                .stage = {.stage = "rollouts", .done = 312, .total = 480, .rate = 41200, .unit = "tok"},
                .seconds_left = 723});
    file.finish(io::RunPhase::stopped);
  }

  static void expect_own_requests(const test::Browser& browser, const Watch& watch) {
    EXPECT_THAT(browser.complaints, IsEmpty());
    EXPECT_EQ(browser.num_dialogs, 0);
    for (const std::string& url : browser.requests)
      if (url != "about:blank") {
        EXPECT_THAT(url, StartsWith(watch.url));
      }
  }
};

constexpr const char* kRunIsShown =
    "document.querySelectorAll('figure svg').length >= 3 && document.querySelectorAll('article').length > 0";

TEST_F(WatchInBrowser, CurvesAndResponsesGrow) {
  write_run("run", 3);
  const Watch watch(directory_.path());
  test::Browser browser;
  browser.open(watch.url + "#/run?run=run");
  const auto num_marks = [](int count) {
    return "document.querySelectorAll('figure[data-id=response-length] svg .mark').length === " +
           std::to_string(count);
  };
  browser.wait_for(num_marks(3));
  write_run("run", 7);
  browser.wait_for(num_marks(7));
  io::write_samples(directory_ / "run/samples/iter-0007.jsonl", {response(7, "newest of all")});
  browser.wait_for("document.querySelector('article').textContent.includes('newest of all')");
  browser.evaluate(
      "document.querySelector('select[name=correct]').value = 'yes';"
      "document.querySelector('form').dispatchEvent(new Event('input')); 0");
  browser.wait_for(
      "document.querySelectorAll('article').length === 1 && document.querySelector('article.right')");
  expect_own_requests(browser, watch);
}

TEST_F(WatchInBrowser, WorksByKeyboardAlone) {
  write_run("run", 5);
  const Watch watch(directory_.path());
  test::Browser browser;
  browser.open(watch.url);
  browser.wait_for("document.querySelectorAll('tbody tr').length === 1");
  for (int i = 0; i < 20 && browser.evaluate("document.activeElement.textContent") != "run"; ++i)
    browser.press("Tab", 9);
  browser.press("Enter", 13);
  browser.wait_for(kRunIsShown);
  for (int i = 0; i < 40 && browser.evaluate("document.activeElement.className") != "tokens"; ++i)
    browser.press("Tab", 9);
  browser.press("ArrowRight", 39);
  EXPECT_THAT(browser.evaluate("document.querySelector('.candidates').textContent").get<std::string>(),
              HasSubstr("other"));
  browser.press("End", 35);
  EXPECT_THAT(browser.evaluate("document.querySelector('.candidates').textContent").get<std::string>(),
              HasSubstr("<end>"));
  expect_own_requests(browser, watch);
}

TEST_F(WatchInBrowser, RecoversWhenTheServerIsKilledAndStartedAgain) {
  write_run("run", 3);
  test::Browser browser;
  std::string port;
  {
    const Watch watch(directory_.path());
    port = watch.port();
    browser.open(watch.url + "#/run?run=run");
    browser.wait_for(kRunIsShown);
  }
  browser.wait_for("document.getElementById('connection').className === 'lost'");
  write_run("run", 6);
  const Watch again(directory_.path(), port);
  browser.wait_for("document.getElementById('connection').className === 'live'");
  browser.wait_for("document.querySelectorAll('figure[data-id=response-length] svg .mark').length === 6");
}

// Ways to run a script, ask elsewhere, break out of a place in a page or deceive a reader.
std::vector<std::string> payloads() {
  const std::vector<std::string> cores = {"<script>hit()</script>",
                                          "<img src=x onerror=hit()>",
                                          "<svg onload=hit()>",
                                          "<iframe srcdoc='<script>parent.hit()</script>'>",
                                          "<a href=javascript:hit()>x</a>",
                                          "<body onload=hit()>",
                                          "<style>@import 'http://127.0.0.1:9/x'</style>",
                                          "<link rel=stylesheet href=http://127.0.0.1:9/x>",
                                          "<img src=http://127.0.0.1:9/x>",
                                          "<object data=http://127.0.0.1:9/x>",
                                          "<embed src=http://127.0.0.1:9/x>",
                                          "<base href=http://127.0.0.1:9/>",
                                          "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
                                          "<form action=http://127.0.0.1:9/><button>x",
                                          "<math><mtext></mtext><script>hit()</script>",
                                          "<details open ontoggle=hit()>",
                                          "<input autofocus onfocus=hit()>",
                                          "<video src=x onerror=hit()>",
                                          "{{constructor.constructor('hit()')()}}",
                                          "${hit()}"};
  const std::vector<std::pair<std::string, std::string>> frames = {{"", ""},
                                                                   {"\">", ""},
                                                                   {"'>", ""},
                                                                   {"</title></desc></svg>", ""},
                                                                   {"--></script></style></textarea>", ""},
                                                                   {"]]>", ""},
                                                                   {"\x1b[2J\x1b]0;", "\x07"},
                                                                   {"\u202E", "\u2066"},
                                                                   {"\\u003c\\\"", "\\"},
                                                                   {"\r\n\r\ndata: {}\n\n", "\xFF"}};
  std::vector<std::string> all;
  for (const auto& [before, after] : frames)
    for (const std::string& core : cores) all.push_back(before + core + after);
  return all;  // 200
}

// In names of folders, alarms, settings, prompts, responses and candidates.
TEST_F(WatchInBrowser, TwoHundredPayloadsDoNothing) {
  const auto all = payloads();
  ASSERT_EQ(all.size(), 200u);
  std::string config = "seed: 1\n";
  for (const std::string& payload : all) config += "# " + payload + "\n";
  for (size_t i = 0; i < all.size(); ++i) {
    std::string name = std::to_string(i) + all[i];
    std::ranges::replace(name, '/', '|');
    IterationRecord record;
    record.iteration = 1;
    record.source = all[i];
    record.alarms = {all[i]};
    test::write_text(directory_ / name / "config.yaml", config);
    test::write_text(directory_ / name / "metrics.jsonl", io::metrics_line(record) + "\n");
  }
  const auto read = directory_ / "read me";
  test::write_text(read / "config.yaml", config);
  for (uint64_t group = 0; group < 10; ++group) {  // as many at a time as the page shows
    std::vector<ResponseSample> samples;
    for (size_t i = 20 * group; i < 20 * group + 20; ++i) samples.push_back(response(group + 1, all[i]));
    samples[0].tokens[1].chosen.text = std::string(10'000'000, 'x') + all[group];
    io::write_samples(read / ("samples/iter-" + std::to_string(1000 + group) + ".jsonl"), samples);
  }
  const Watch watch(directory_.path());
  test::Browser browser;
  browser.open(watch.url);
  browser.wait_for("document.querySelectorAll('tbody tr').length === 201");
  browser.evaluate("window.hits = 0; window.hit = () => ++window.hits; 0");
  browser.evaluate("location.hash = '#/run?run=read+me'; 0");
  for (int group = 1; group <= 10; ++group) {
    const std::string number = std::to_string(group);
    browser.wait_for("document.querySelector('input[name=iteration]')");
    browser.evaluate("document.querySelector('input[name=iteration]').value = " + number +
                     "; document.querySelector('form').dispatchEvent(new Event('input')); 0");
    browser.wait_for(
        "document.querySelectorAll('article').length === 20 && [...document.querySelectorAll('article')]"
        ".every(article => article.textContent.startsWith('iteration " +
        number + " '))");
    browser.evaluate("document.querySelectorAll('.token').forEach(token => token.click()); 0");
    EXPECT_EQ(browser.evaluate(
                  "document.querySelectorAll('article :not(p, div, span, code, table, thead, tbody, tr, "
                  "th, td)').length"),
              0);
  }
  browser.evaluate("document.querySelector('details').open = true; 0");
  browser.wait_for("document.querySelector('details pre').textContent.includes('hit()')");
  EXPECT_EQ(browser.evaluate("window.hits"), 0);
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('script, pre *, h1 *').length"),
            1);  // the page's own
  expect_own_requests(browser, watch);
}

}  // namespace
}  // namespace ropd
