// Debian's chromium without a window, driven over its DevTools pipe (descriptors 3 and 4, JSON ended by NUL): no
// driver program, no port. Waits are conditions evaluated inside the page, so no test depends on time; a page that
// does not get there, a tab that crashed and a browser that does not answer fail with what was seen instead of
// waiting for ever.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "support/test_data.h"

namespace ropd::test {

class Browser {
 public:
  static bool is_installed() { return std::system("command -v chromium > /dev/null 2>&1") == 0; }

  Browser() {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) fail("no pipe for the browser");
    process_ = ::fork();
    if (process_ == 0) start(to[0], from[1]);
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
    const std::string target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
    session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
    for (const char* domain : {"Inspector", "Page", "Runtime", "Log", "Network"})
      call(std::string(domain) + ".enable");
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;
  ~Browser() {
    ::close(to_);
    ::close(from_);
    ::kill(-process_, SIGKILL);  // its helpers are of its group
    ::waitpid(process_, nullptr, 0);
  }

  // What the page asked for and complained about since the beginning.
  std::vector<std::string> requests, complaints;
  int num_dialogs = 0;

  void set_view(int width, bool is_dark) {
    call("Emulation.setDeviceMetricsOverride",
         {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", width < 600}});
    call("Emulation.setEmulatedMedia",
         {{"features", {{{"name", "prefers-color-scheme"}, {"value", is_dark ? "dark" : "light"}}}}});
  }

  // Until the document is there. Over an empty page: the address may differ from the last one in its end only.
  void open(const std::string& url) {
    for (const std::string& place : {std::string("about:blank"), url}) {
      const Json answer = call("Page.navigate", {{"url", place}});
      if (answer.contains("errorText")) fail(place, ": ", answer["errorText"].dump());
      // The answer may come before the old document is gone, and what is asked of that one goes with it.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
      while (!shows(place == url ? "location.href !== 'about:blank'" : "location.href === 'about:blank'"))
        if (std::chrono::steady_clock::now() > end) fail(place, ": does not load", log());
    }
  }

  // The value of an expression; of a promise what it is resolved to.
  Json evaluate(const std::string& expression) {
    const Json result = call("Runtime.evaluate",
                             {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    if (result.contains("exceptionDetails")) {
      const Json& details = result["exceptionDetails"];
      const Json thrown = details.value("exception", Json::object());
      fail("in the page: ", thrown.value("value", thrown.value("description", details.dump())));
    }
    return result["result"].value("value", Json());
  }
  // Until a condition of the page is true; one that cannot be asked yet (an element is not there) is not.
  void wait_for(const std::string& condition) {
    evaluate(
        "new Promise((done, give_up) => { const condition = () => { try { return (" + condition +
        "); } catch { return false; } }; const end = Date.now() + " + std::to_string(kPatienceSeconds) +
        "000; const look = () => condition() ? done(true) : Date.now() > end ? give_up('never true: ' + "
        "condition + '; the page shows: ' + document.body.innerText.slice(0, 800)) : setTimeout(look, 20); "
        "look(); })");
  }
  void press(const std::string& key, int code) {
    // A key with a text is pressed as one that writes it: folds open at that, links before.
    for (const char* type : {key == "Enter" ? "keyDown" : "rawKeyDown", "keyUp"})
      call("Input.dispatchKeyEvent", {{"type", type},
                                      {"key", key},
                                      {"code", key},
                                      {"windowsVirtualKeyCode", code},
                                      {"text", key == "Enter" ? "\r" : ""}});
  }
  // The pointer over, or a press of it on, the middle of the first line of an element.
  void point_at(const std::string& selector, bool is_press = false) {
    const Json place =
        evaluate("(() => { const element = document.querySelector(" + Json(selector).dump() +
                 "); element.scrollIntoView({block: 'center'}); const box = "
                 "element.getClientRects()[0]; return [box.x + box.width / 2, box.y + box.height / 2]; })()");
    Json event = {{"type", "mouseMoved"}, {"x", place[0]}, {"y", place[1]}};
    call("Input.dispatchMouseEvent", event);
    if (!is_press) return;
    event.update({{"button", "left"}, {"clickCount", 1}});
    for (const char* type : {"mousePressed", "mouseReleased"}) {
      event["type"] = type;
      call("Input.dispatchMouseEvent", event);
    }
  }
  void save_picture(const std::filesystem::path& path, bool is_whole_page) {
    const std::string text =
        call("Page.captureScreenshot", {{"captureBeyondViewport", is_whole_page}})["data"];
    std::ofstream(path, std::ios::binary) << decoded(text);
  }

 private:
  // Far more than a loaded machine needs; only a test that fails waits for so long.
  static constexpr int kPatienceSeconds = 120;

  TemporaryDirectory directory_;
  pid_t process_ = 0;
  int to_ = -1, from_ = -1, last_id_ = 0;
  std::string session_, received_;

  [[noreturn]] void start(int input, int output) const {
    ::setpgid(0, 0);
    // The ends may already have the numbers that others are to get.
    const int in = ::fcntl(input, F_DUPFD, 20), out = ::fcntl(output, F_DUPFD, 20);
    ::dup2(in, 3);
    ::dup2(out, 4);
    const std::string profile = "--user-data-dir=" + (directory_ / "profile").string();
    if (!std::freopen((directory_ / "log").c_str(), "w", stderr)) ::_exit(126);
    // --disable-dev-shm-usage: in a container /dev/shm has 64 MB, and a tab that finds it full crashes.
    ::execlp("chromium", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe", profile.c_str(), "about:blank",
             nullptr);
    ::_exit(127);
  }

  void send(int id, const std::string& method, const Json& parameters) {
    Json message = {{"id", id}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) message["sessionId"] = session_;
    std::string text = message.dump();
    text.push_back('\0');
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::write(to_, text.data() + sent, text.size() - sent);
      if (count <= 0) fail("the browser is gone", log());
      sent += static_cast<size_t>(count);
    }
  }

  Json call(const std::string& method, const Json& parameters = Json::object(), bool may_fail = false) {
    const int id = ++last_id_;
    asked_ = method + " " + parameters.dump().substr(0, 300);
    send(id, method, parameters);
    while (true) {
      const Json answer = next_message();
      if (answer.value("id", 0) != id) {
        note(answer);
        continue;
      }
      if (answer.contains("error") && !may_fail) fail(asked_, ": ", answer["error"].dump());
      return answer.value("result", Json::object());
    }
  }

  // Whether the document is complete and the condition true, a moment later. False when it goes away meanwhile.
  bool shows(const std::string& condition) {
    const Json result = call("Runtime.evaluate",
                             {{"expression",
                               "new Promise(done => setTimeout(() => done(document.readyState === "
                               "'complete' && " +
                                   condition + "), 20))"},
                              {"awaitPromise", true},
                              {"returnByValue", true}},
                             /*may_fail=*/true);
    return result.value("result", Json::object()).value("value", Json()) == true;
  }

  Json next_message() {
    size_t end;
    while ((end = received_.find('\0')) == std::string::npos) {
      pollfd place{.fd = from_, .events = POLLIN, .revents = 0};
      const int num_ready = ::poll(&place, 1, (kPatienceSeconds + 30) * 1000);
      if (num_ready < 0 && errno == EINTR) continue;
      if (num_ready == 0) fail("the browser does not answer to ", asked_, log());
      char bytes[65536];
      const ssize_t count = ::read(from_, bytes, sizeof bytes);
      if (count <= 0) fail("the browser ended", log());
      received_.append(bytes, static_cast<size_t>(count));
    }
    const Json message = Json::parse(received_.substr(0, end));
    received_.erase(0, end + 1);
    return message;
  }

  void note(const Json& event) {
    const std::string method = event.value("method", "");
    const Json& about = event.contains("params") ? event["params"] : event;
    // A crashed tab holds back every answer until somebody loads it again.
    if (method == "Inspector.targetCrashed" || method == "Target.targetCrashed")
      fail("the tab crashed at ", asked_, log());
    if (method == "Network.requestWillBeSent") requests.push_back(about["request"]["url"]);
    if (method == "Runtime.exceptionThrown" || method == "Log.entryAdded") complaints.push_back(about.dump());
    if (method == "Runtime.consoleAPICalled") complaints.push_back(about.dump());
    if (method != "Page.javascriptDialogOpening") return;
    ++num_dialogs;
    send(++last_id_, "Page.handleJavaScriptDialog", {{"accept", true}});  // nobody waits for its answer
  }

  // The end of what the browser said on its way.
  std::string log() const {
    std::ifstream file(directory_ / "log");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return "; its log ends with: " + text.substr(text.size() > 600 ? text.size() - 600 : 0);
  }

  static std::string decoded(const std::string& base64) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    uint32_t bits = 0;
    int count = 0;
    for (const char c : base64) {
      const size_t value = digits.find(c);
      if (value == std::string::npos) break;
      bits = bits << 6 | static_cast<uint32_t>(value);
      if ((count += 6) < 8) continue;
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 255));
    }
    return bytes;
  }

  std::string asked_;  // the last call, for messages
};

}  // namespace ropd::test
