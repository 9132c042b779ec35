#include "io/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/threads.h"
#include "base/version.h"
#include "io/durable_folder.h"

namespace ropd::io {
namespace {

namespace fs = std::filesystem;

std::string padded(uint64_t value, size_t width) {
  std::string digits = std::to_string(value);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// The value of the first "key : value" line of a /proc file.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "unknown";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

RunDirectory::RunDirectory(Path path) : path_(std::move(path)) {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0)
    fail(path_.string(), ": cannot open the run directory: ", std::generic_category().message(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int error_number = errno;
    ::close(std::exchange(lock_, -1));
    if (error_number == EWOULDBLOCK) fail(path_.string(), ": another process is working on this run");
    // A file system without locks (some network mounts): go on as every other trainer does.
    lock_ = -1;
  }
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void RunDirectory::require_new(const Path& path) {
  if (fs::exists(path / "config.yaml"))
    fail(path.string(), ": holds a run already; go on with `ropd resume ", path.string(),
         "` or choose another output");
  if (fs::exists(path) && !fs::is_directory(path))
    fail(path.string(), ": is a file, expected the folder of a run or a new name");
  if (fs::exists(path))
    for (const auto& entry : fs::directory_iterator(path)) {
      // these alone are a start that was cut short before its config was written
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("environment.json") && !name.starts_with("inputs.json") &&
          !name.starts_with("config.yaml.tmp-"))
        fail(path.string(), ": is not empty (", name, ") and not a run; choose another output");
    }
  Path existing = fs::absolute(path);
  while (!fs::exists(existing) && existing.has_relative_path()) existing = existing.parent_path();
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    fail(path.string(), ": cannot be made: ", existing.string(), ": ",
         std::generic_category().message(errno));
}

RunDirectory RunDirectory::create(Path path, std::string_view resolved_config_yaml,
                                  std::string_view environment_json, std::string_view inputs_json) {
  require_new(path);
  make_durable_folder(path);
  RunDirectory run(std::move(path));
  require_new(run.path_);  // nobody else may have made it meanwhile
  write_file_atomically(run.environment(), environment_json);
  if (!inputs_json.empty()) write_file_atomically(run.inputs(), inputs_json);
  write_file_atomically(run.config(), resolved_config_yaml);
  for (const char* name : {"banks", "rollouts", "checkpoints"}) make_durable_folder(run.path_ / name);
  return run;
}

RunDirectory RunDirectory::open(Path path) {
  if (!fs::is_directory(path)) fail(path.string(), ": not a folder, expected a run directory");
  if (!fs::exists(path / "config.yaml"))
    fail(path.string(), ": has no config.yaml, expected a run directory made by `ropd train`");
  RunDirectory run(std::move(path));
  for (const char* name : {"banks", "rollouts", "checkpoints"}) make_durable_folder(run.path_ / name);
  return run;
}

Path RunDirectory::recent_bank(uint64_t step) const {
  return path_ / "banks" / ("recent-" + padded(step, 5) + ".jsonl");
}
Path RunDirectory::rollouts(uint64_t iteration) const {
  return path_ / "rollouts" / ("iter-" + padded(iteration, 4) + ".jsonl");
}

Path RunDirectory::samples(uint64_t iteration) const {
  return path_ / "samples" / ("iter-" + padded(iteration, 4) + ".jsonl");
}

namespace {

nlohmann::ordered_json environment_of(std::string_view command_line) {
  utsname system{};
  ::uname(&system);
  return {
      {"started", utc_now()},
      {"command_line", command_line},
      {"version", program_version().number},
      {"git_revision", program_version().revision},
      {"compiler", __VERSION__},
      {"host", system.nodename},
      {"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
      {"cpu", proc_value("/proc/cpuinfo", "model name")},
      {"cpu_flags", proc_value("/proc/cpuinfo", "flags")},
      {"cores", std::thread::hardware_concurrency()},
      {"threads", num_threads()},
      {"memory", proc_value("/proc/meminfo", "MemTotal")},
  };
}

}  // namespace

std::string describe_environment(std::string_view command_line) {
  return environment_of(command_line).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void append_history(const RunDirectory& directory, const SessionLine& line) {
  nlohmann::ordered_json json = environment_of(line.command_line);
  json["step"] = line.step;
  for (const ConfigDifference& change : line.changes)
    json["changes"].push_back({{"key", change.key}, {"before", change.before}, {"after", change.after}});
  AppendFile(directory.history()).append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void require_free_space(const Path& directory, uint64_t bytes_needed, std::string_view what) {
  const uint64_t free_bytes = free_disk_bytes(directory);
  if (free_bytes < bytes_needed)
    fail(directory.string(), ": ", format_bytes(static_cast<double>(free_bytes)), " free, the run needs ",
         format_bytes(static_cast<double>(bytes_needed)), " (", what,
         "); free space, lower checkpoint.keep or change output");
}

}  // namespace ropd::io
