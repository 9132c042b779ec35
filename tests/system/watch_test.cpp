// The live page as a person sees it: `ropd watch` on folders of runs, in a real browser. Chromium is a test-only
// package; without it the tests are reported as skipped.
#include <gmock/gmock.h>

#include <algorithm>

#include "io/graph_file.h"
#include "io/progress_file.h"
#include "io/sample_file.h"
#include "support/browser.h"
#include "support/page_checks.h"
#include "support/payloads.h"
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
    std::string line;  // ends with its line, or with the process
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

  // Four nodes, one in every state.
  io::StudyGraph write_study(const std::string& name) {
    io::ProcessIdentity gone = io::this_process();
    gone.start_ticks += 1;  // an earlier or later process with our number
    const io::StudyGraph graph{
        .name = name,
        .is_complete = false,
        .nodes = {{"b", "bank", "initial bank of fixed", {}, true, {}},
                  {"t", "training", "training of fixed to iteration 15", {"b"}, false, io::this_process()},
                  {"p", "prefixes", "prefixes of the initial student", {"b"}, false, gone},
                  {"e", "evaluation", "evaluation of fixed", {"t", "p"}, false, {}}}};
    io::write_graph(directory_ / (name + io::kGraphEnding), graph);
    return graph;
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

TEST_F(WatchInBrowser, IsSoundAtBothWidthsInLightAndDark) {
  write_run("first", 9);
  write_run("second", 12);
  write_study("study");
  const Watch watch(directory_.path());
  test::Browser browser;
  const std::vector<std::pair<std::string, std::string>> views = {
      {"#/", "document.querySelectorAll('tbody tr').length === 2 && document.querySelector('.studies li')"},
      {"#/run?run=first", kRunIsShown},
      {"#/run?run=first&run=second", "document.querySelectorAll('figure svg').length >= 3"},
      {"#/study?study=study", "document.querySelectorAll('svg.graph .node').length === 4"}};
  for (const int width : {1400, 390})
    for (const bool is_dark : {false, true}) {
      browser.set_view(width, is_dark);
      for (const auto& [view, is_shown] : views) {
        browser.open(watch.url + view);
        browser.wait_for(is_shown);
        test::expect_sound_page(browser,
                                view + " at " + std::to_string(width) + (is_dark ? ", dark" : ", light"));
      }
    }
  expect_own_requests(browser, watch);
}

TEST_F(WatchInBrowser, AStudysGraphFollowsItsFile) {
  io::StudyGraph graph = write_study("study");
  const Watch watch(directory_.path());
  test::Browser browser;
  browser.open(watch.url);
  browser.wait_for("document.querySelector('.studies')");
  EXPECT_THAT(browser.evaluate("document.querySelector('.studies').textContent").get<std::string>(),
              HasSubstr("1 of 4 done, 1 working, 1 dead, 1 open, more appear when τ is known"));
  browser.evaluate("document.querySelector('.studies a').click(); 0");
  const auto states = [&] {
    return browser.evaluate("[...document.querySelectorAll('.node')].map(node => node.classList[1])");
  };
  browser.wait_for("document.querySelectorAll('svg.graph .node').length === 4");
  EXPECT_EQ(states(), Json::array({"done", "working", "dead", "open"}));
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('svg.graph .need').length"), 4);
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('tbody tr').length"), 4);
  graph.nodes[1].is_done = true;
  graph.nodes[1].worker.reset();
  graph.nodes.push_back({"f", "evaluation", "evaluation behind tau", {"t"}, false, {}});
  io::write_graph(directory_ / "study.graph.json", graph);
  browser.wait_for("document.querySelectorAll('svg.graph .node').length === 5");
  EXPECT_EQ(states(), Json::array({"done", "done", "dead", "open", "open"}));
  expect_own_requests(browser, watch);
}

TEST_F(WatchInBrowser, ResponsesAreFoundByQueryCorrectnessLengthAndFinish) {
  write_run("run", 3);
  ResponseSample other = response(3, "seven");  // wrong, as every odd one
  other.finish = Finish::length;
  other.num_tokens = 900;
  io::write_samples(directory_ / "run/samples/iter-0003.jsonl", {other});
  const Watch watch(directory_.path());
  test::Browser browser;
  browser.open(watch.url + "#/run?run=run");
  browser.wait_for("document.querySelectorAll('article').length === 3");
  const auto only = [&](const std::string& field, const std::string& value, const std::string& found) {
    browser.evaluate("document.querySelector('form').reset(); document.querySelector('[name=" + field +
                     "]').value = '" + value +
                     "'; document.querySelector('form').dispatchEvent(new Event('input')); 0");
    browser.wait_for(
        "document.querySelectorAll('article').length === 1 && "
        "document.querySelector('article').textContent.includes('" +
        found + "')");
  };
  only("text", "FIVE", "query five");
  only("finish", "length", "query seven");
  only("correct", "yes", "query five");
  only("min", "100", "query seven");
  only("iteration", "3", "query seven");
  expect_own_requests(browser, watch);
}

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

// In names of folders, alarms, settings, prompts, responses and candidates.
TEST_F(WatchInBrowser, TwoHundredPayloadsDoNothing) {
  const auto all = test::payloads();
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
