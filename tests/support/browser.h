// Debian's chromium without a window, driven over its DevTools pipe (descriptors 3 and 4, JSON ended by NUL): no
// driver program, no port. Waits are conditions evaluated inside the page, so no test depends on time; a page
// that never gets there ends with the test program's own limit.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
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
    if (::pipe(to) != 0 || ::pipe(from) != 0) fail("no pipe for the browser");
    process_ = ::fork();
    if (process_ == 0) {
      // The ends may already have the numbers that others are to get.
      const int input = ::fcntl(to[0], F_DUPFD, 20), output = ::fcntl(from[1], F_DUPFD, 20);
      ::dup2(input, 3);
      ::dup2(output, 4);
      const std::string profile = "--user-data-dir=" + (directory_ / "profile").string();
      if (!std::freopen((directory_ / "log").c_str(), "w", stderr)) ::_exit(126);
      ::execlp("chromium", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync",
               "--hide-scrollbars", "--remote-debugging-pipe", profile.c_str(), "about:blank", nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
    const std::string target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
    session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
    for (const char* domain : {"Page", "Runtime", "Log", "Network"}) call(std::string(domain) + ".enable");
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;
  ~Browser() {
    ::close(to_);
    ::close(from_);
    ::kill(process_, SIGKILL);
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
  void open(const std::string& url) { call("Page.navigate", {{"url", url}}); }

  // The value of an expression; of a promise what it is resolved to.
  Json evaluate(const std::string& expression) {
    const Json result = call("Runtime.evaluate",
                             {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    if (result.contains("exceptionDetails"))
      fail("in the page: ", result["exceptionDetails"].dump().substr(0, 800));
    return result["result"].value("value", Json());
  }
  // Until a condition of the page is true.
  void wait_for(const std::string& condition) {
    evaluate("new Promise(done => { const look = () => (" + condition +
             ") ? done(true) : setTimeout(look, 20); look(); })");
  }
  void press(const std::string& key, int code) {
    for (const char* type : {"rawKeyDown", "keyUp"})
      call("Input.dispatchKeyEvent", {{"type", type},
                                      {"key", key},
                                      {"code", key},
                                      {"windowsVirtualKeyCode", code},
                                      {"text", key == "Enter" ? "\r" : ""}});
  }
  void save_picture(const std::filesystem::path& path, bool is_whole_page) {
    const std::string text =
        call("Page.captureScreenshot", {{"captureBeyondViewport", is_whole_page}})["data"];
    std::ofstream(path, std::ios::binary) << decoded(text);
  }

 private:
  TemporaryDirectory directory_;
  pid_t process_ = 0;
  int to_ = -1, from_ = -1, last_id_ = 0;
  std::string session_, received_;

  Json call(const std::string& method, const Json& parameters = Json::object()) {
    Json message = {{"id", ++last_id_}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) message["sessionId"] = session_;
    std::string text = message.dump();
    text.push_back('\0');
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::write(to_, text.data() + sent, text.size() - sent);
      if (count <= 0) fail("the browser is gone");
      sent += static_cast<size_t>(count);
    }
    while (true) {
      const Json answer = next_message();
      if (answer.value("id", 0) != last_id_) {
        note(answer);
        continue;
      }
      if (answer.contains("error")) fail(method, ": ", answer["error"].dump());
      return answer["result"];
    }
  }

  Json next_message() {
    size_t end;
    while ((end = received_.find('\0')) == std::string::npos) {
      char bytes[65536];
      const ssize_t count = ::read(from_, bytes, sizeof bytes);
      if (count <= 0) fail("the browser ended");
      received_.append(bytes, static_cast<size_t>(count));
    }
    const Json message = Json::parse(received_.substr(0, end));
    received_.erase(0, end + 1);
    return message;
  }

  void note(const Json& event) {
    const std::string method = event.value("method", "");
    const Json& about = event.contains("params") ? event["params"] : event;
    if (method == "Network.requestWillBeSent") requests.push_back(about["request"]["url"]);
    if (method == "Runtime.exceptionThrown" || method == "Log.entryAdded") complaints.push_back(about.dump());
    if (method == "Runtime.consoleAPICalled") complaints.push_back(about.dump());
    if (method != "Page.javascriptDialogOpening") return;
    ++num_dialogs;
    call("Page.handleJavaScriptDialog", {{"accept", true}});
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
};

}  // namespace ropd::test
