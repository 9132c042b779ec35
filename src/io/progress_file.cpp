#include "io/progress_file.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace ropd::io {
namespace {

constexpr std::array<std::pair<RunPhase, const char*>, 4> kPhases = {{{RunPhase::running, "running"},
                                                                      {RunPhase::stopped, "stopped"},
                                                                      {RunPhase::failed, "failed"},
                                                                      {RunPhase::finished, "finished"}}};
constexpr uint64_t kMaxBytes = 64 << 10;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// State and start time of a process; the name before them stands in brackets and may hold anything.
std::optional<std::pair<char, uint64_t>> state_and_start(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t bracket = text.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(bracket + 1));
  char state = 0;
  words >> state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) words >> skipped;
  uint64_t start = 0;
  if (!(words >> start)) return std::nullopt;
  return std::pair(state, start);
}

}  // namespace

ProcessIdentity this_process() {
  const auto known = state_and_start(::getpid());
  return {host_name(), ::getpid(), known ? known->second : 0};
}

std::optional<bool> is_alive(const ProcessIdentity& process) {
  if (process.host != host_name()) return std::nullopt;
  const auto known = state_and_start(process.pid);
  return known && known->second == process.start_ticks && known->first != 'Z' && known->first != 'X';
}

ProgressFile::ProgressFile(Path path) : path_(std::move(path)) { record_.process = this_process(); }

ProgressFile::~ProgressFile() {
  if (!is_finished_) finish(RunPhase::failed);
}

void ProgressFile::write(const RunStatus& status) {
  record_.status = status;
  write();
}

void ProgressFile::finish(RunPhase phase) {
  is_finished_ = true;
  record_.phase = phase;
  write();
}

void ProgressFile::write() {
  record_.heartbeat = unix_time();
  Path beside = path_;
  beside += ".tmp";
  std::ofstream file(beside, std::ios::trunc);
  file << progress_json(record_) << "\n";
  file.close();
  std::error_code ignored;
  if (file) std::filesystem::rename(beside, path_, ignored);
}

std::string progress_json(const ProgressRecord& record) {
  const RunStatus& status = record.status;
  const char* phase = "";
  for (const auto& [value, name] : kPhases)
    if (value == record.phase) phase = name;
  nlohmann::ordered_json json = {{"host", record.process.host},
                                 {"pid", record.process.pid},
                                 {"start_ticks", record.process.start_ticks},
                                 {"phase", phase},
                                 {"heartbeat", record.heartbeat},
                                 {"name", status.name},
                                 {"iteration", status.iteration},
                                 {"iterations", status.iterations},
                                 {"stage", status.stage.stage},
                                 {"done", status.stage.done},
                                 {"part", status.stage.part},
                                 {"total", status.stage.total},
                                 {"rate", status.stage.rate},
                                 {"unit", status.stage.unit},
                                 {"seconds_left", nullptr}};
  if (status.seconds_left) json["seconds_left"] = *status.seconds_left;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<ProgressRecord> read_progress(const Path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  try {
    const Json json = parse_json(read_file(path, kMaxBytes), path.string(), 4);
    ProgressRecord record;
    record.process = {json.at("host"), json.at("pid"), json.at("start_ticks")};
    for (const auto& [value, name] : kPhases)
      if (json.at("phase") == name) record.phase = value;
    record.heartbeat = json.at("heartbeat");
    RunStatus& status = record.status;
    status.name = json.at("name");
    status.iteration = json.at("iteration");
    status.iterations = json.at("iterations");
    status.stage = {.stage = json.at("stage"),
                    .done = json.at("done"),
                    .total = json.at("total"),
                    .part = json.value("part", 0.0),
                    .rate = json.at("rate").is_number() ? json.at("rate").get<double>() : 0.0,
                    .unit = json.at("unit")};
    if (json.at("seconds_left").is_number()) status.seconds_left = json.at("seconds_left");
    return record;
  } catch (const Error&) {  // an onlooker goes on without it
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace ropd::io
