// ropd watch: a live page of the runs below a folder.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "app/commands.h"
#include "app/output.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "watch/server.h"

namespace ropd::app {
namespace {

constexpr const char* kFooter =
    R"(The page is for this machine only: it listens on 127.0.0.1 and nowhere else. From another one, use a tunnel:
  ssh -L 8700:127.0.0.1:8700 MACHINE    and open http://localhost:8700/ there
It reads files and needs nothing of the runs, which may be at work, stopped, finished or on a mounted folder.
Examples:
  ropd watch runs
  ropd watch runs/qwen3-0.6b-ropd --port 9000)";

struct WatchOptions {
  std::string folder;
  uint16_t port = watch::ServerConfig{}.port;
};

}  // namespace

void add_watch(CLI::App& app) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* command =
      app.add_subcommand("watch", "a live page of all runs below a folder, for this machine only");
  command->add_option("folder", options->folder, "a folder with runs, or one run")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("--port", options->port, "port on 127.0.0.1; 0 = any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->footer(kFooter);
  command->callback([options, command] {
    install_stop_handlers();
    watch::Server server(watch::Site(options->folder), {.port = options->port});
    const std::string url = "http://127.0.0.1:" + std::to_string(server.port()) + "/";
    if (wants_json(*command))
      print_json(Json{{"url", url}});
    else
      std::printf("%s\n", url.c_str());
    std::fflush(stdout);  // whoever waits for the address gets it now
    log_info("watching ", options->folder, "; Ctrl-C ends it");
    server.run(stop_requested);
  });
}

}  // namespace ropd::app
