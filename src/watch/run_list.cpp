#include "watch/run_list.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/visible_text.h"
#include "watch/file_stamp.h"

namespace ropd::watch {
namespace {

namespace fs = std::filesystem;

constexpr double kWalkSeconds = 5;      // between two walks over the tree
constexpr double kOldSeconds = 10;      // a living process writes more often, or shows in the process table
constexpr double kSilentSeconds = 180;  // of a process that only its file tells of
constexpr int kMaxDepth = 6;
constexpr size_t kMaxFolders = 20'000, kMaxRuns = 500, kMaxStudies = 50;
constexpr uint64_t kTailBytes = 256 << 10;  // of metrics.jsonl; one line is a few kilobytes
constexpr size_t kMaxName = 200, kMaxAlarms = 8, kMaxAlarm = 400;

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (point.value == 0xFFFD && point.num_bytes == 1) return false;
    text.remove_prefix(point.num_bytes);
  }
  return true;
}

// The path below the folder. JSON cannot hold a name that is no text; such a run is known by a number.
std::string id_of(const Path& run, const Path& folder) {
  const std::string path = run.lexically_relative(folder).string();
  return is_utf8(path) ? path : "run-" + sha256(path).substr(0, 16);
}

bool is_run(const Path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "config.yaml", ignored) || fs::exists(folder / "metrics.jsonl", ignored) ||
         fs::exists(folder / "progress.json", ignored);
}

bool is_graph(const Path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(io::kGraphEnding) && !name.starts_with('.');
}

// The newest whole line with "kind": "iteration"; null when there is none or it cannot be read.
Json last_iteration(const Path& metrics) {
  std::error_code ignored;
  if (!fs::is_regular_file(metrics, ignored)) return nullptr;  // opening a pipe would wait for ever
  std::ifstream file(metrics, std::ios::binary | std::ios::ate);
  if (!file) return nullptr;
  const auto size = static_cast<uint64_t>(file.tellg());
  std::string tail(std::min(size, kTailBytes), '\0');
  file.seekg(static_cast<std::streamoff>(size - tail.size()));
  if (!file.read(tail.data(), static_cast<std::streamsize>(tail.size()))) return nullptr;
  for (size_t end = tail.rfind('\n'); end != std::string::npos && end > 0;) {
    const size_t before = tail.rfind('\n', end - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::string_view line = std::string_view(tail).substr(begin, end - begin);
    if (line.starts_with("{\"kind\":\"iteration\"")) {
      try {
        return parse_json(line, metrics.string());
      } catch (const Error&) {
        return nullptr;
      }
    }
    end = before;
  }
  return nullptr;
}

Json number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? *found : Json(nullptr);
}

Json last_json(const Json& line) {
  if (!line.is_object()) return nullptr;
  Json last = {{"iteration", number_of(line, "iteration")},
               {"loss", number_of(line, "loss")},
               {"ratio", number_of(line, "ratio")},
               {"tau", number_of(line, "tau")},
               {"kl", number_of(line, "actor/distillation/kl")},
               {"length", number_of(line, "response_length/mean")},
               {"cut", number_of(line, "response_length/clip_ratio")},
               {"source", ""},
               {"alarms", Json::array()}};
  if (const auto source = line.find("source"); source != line.end() && source->is_string())
    last["source"] = visible_text(source->get_ref<const std::string&>(), kMaxName);
  if (const auto alarms = line.find("alarms"); alarms != line.end() && alarms->is_array())
    for (const Json& alarm : *alarms)
      if (alarm.is_string() && last["alarms"].size() < kMaxAlarms)
        last["alarms"].push_back(visible_text(alarm.get_ref<const std::string&>(), kMaxAlarm));
  return last;
}

}  // namespace

const char* state_name(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::stopped:
      return "stopped";
    case RunState::failed:
      return "failed";
    case RunState::dead:
      return "dead";
    case RunState::silent:
      return "silent";
    case RunState::finished:
      return "finished";
    case RunState::unknown:
      break;
  }
  return "unknown";
}

RunState judge_state(const std::optional<io::ProgressRecord>& progress, std::optional<bool> is_alive,
                     double now) {
  if (!progress) return RunState::unknown;
  if (progress->phase == io::RunPhase::finished) return RunState::finished;
  if (progress->phase == io::RunPhase::stopped) return RunState::stopped;
  if (progress->phase == io::RunPhase::failed) return RunState::failed;
  const double age = now - progress->heartbeat;
  if (!is_alive) return age > kSilentSeconds ? RunState::silent : RunState::running;
  return !*is_alive && age > kOldSeconds ? RunState::dead : RunState::running;
}

std::string visible_name(const RunSummary& run, size_t max_characters) {
  if (!run.label.empty()) return visible_text(run.label, max_characters);
  return visible_text(run.id == "." || !is_utf8(run.path.string()) ? run.path.filename().string() : run.id,
                      max_characters);
}

Json summary_json(const RunSummary& run) {
  Json json = {{"id", run.id},
               {"name", visible_name(run)},
               {"state", state_name(run.state)},
               {"metrics", run.metrics_stamp},
               {"samples", run.samples_stamp},
               {"last", last_json(run.last_iteration)},
               {"progress", nullptr}};
  if (!run.progress) return json;
  const auto& [process, phase, heartbeat, status] = *run.progress;
  json["progress"] = {{"host", visible_text(process.host, kMaxName)},
                      {"pid", process.pid},
                      {"heartbeat", heartbeat},
                      {"iteration", status.iteration},
                      {"iterations", status.iterations},
                      {"stage", visible_text(status.stage.stage, kMaxName)},
                      {"done", static_cast<double>(status.stage.done) + status.stage.part},
                      {"total", status.stage.total},
                      {"rate", status.stage.rate},
                      {"unit", visible_text(status.stage.unit, kMaxName)},
                      {"left", nullptr}};
  if (status.seconds_left) json["progress"]["left"] = *status.seconds_left;
  return json;
}

RunList::RunList(Path folder) : folder_(std::move(folder)) {
  if (!fs::is_directory(folder_)) fail(folder_.string(), ": no such folder");
}

const RunSummary* RunList::find(const std::string& id) const {
  const auto found = std::ranges::find(runs_, id, &RunSummary::id);
  return found == runs_.end() ? nullptr : &*found;
}

const StudySummary* RunList::find_study(const std::string& id) const {
  const auto found = std::ranges::find(studies_, id, &StudySummary::id);
  return found == studies_.end() ? nullptr : &*found;
}

uint64_t RunList::refresh(double now) {
  if (version_ == 0 || now - walked_ >= kWalkSeconds || now < walked_) {
    walked_ = now;
    walk();
  }
  for (StudySummary& study : studies_)
    if (watch::look_at(study)) study.version = ++version_;
  for (RunSummary& run : runs_) look_at(run, now);
  return version_;
}

// Symbolic links to folders are not followed and a run's own folders not entered, so the walk ends.
void RunList::walk() {
  std::vector<RunSummary> found;
  std::vector<StudySummary> studies;
  size_t num_folders = 0;
  std::vector<std::pair<Path, int>> open = {{folder_, 0}};
  while (!open.empty() && found.size() < kMaxRuns && num_folders < kMaxFolders) {
    const auto [folder, depth] = open.back();
    open.pop_back();
    ++num_folders;
    if (is_run(folder)) {
      const std::string id = id_of(folder, folder_);
      const RunSummary* known = find(id);
      found.push_back(known ? *known : RunSummary{.id = id, .path = folder});
      continue;
    }
    if (depth == kMaxDepth) continue;
    std::error_code ignored;
    for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      std::error_code unreadable;
      if (entry->is_directory(unreadable) && !entry->is_symlink(unreadable))
        open.emplace_back(entry->path(), depth + 1);
      else if (is_graph(entry->path()) && studies.size() < kMaxStudies)
        studies.push_back(known_study(entry->path()));
    }
  }
  std::ranges::sort(found, {}, &RunSummary::id);
  std::ranges::sort(studies, {}, &StudySummary::id);
  const bool is_same = std::ranges::equal(found, runs_, {}, &RunSummary::id, &RunSummary::id) &&
                       std::ranges::equal(studies, studies_, {}, &StudySummary::id, &StudySummary::id);
  if (is_same && version_ > 0) return;
  runs_ = std::move(found);
  studies_ = std::move(studies);
  membership_version_ = ++version_;
}

StudySummary RunList::known_study(const Path& file) const {
  std::string id = id_of(file, folder_);
  if (id.ends_with(io::kGraphEnding)) id.resize(id.size() - std::string_view(io::kGraphEnding).size());
  const StudySummary* known = find_study(id);
  return known ? *known : StudySummary{.id = id, .path = file};
}

void RunList::look_at(RunSummary& run, double now) {
  RunSummary seen = run;
  for (const StudySummary& study : studies_)
    if (std::string label = label_of_run(study, run.path); !label.empty()) seen.label = std::move(label);
  seen.progress_stamp = file_stamp(run.path / "progress.json");
  const std::string metrics = file_stamp(run.path / "metrics.jsonl");
  seen.metrics_stamp = metrics + "/" + file_stamp(run.path / "eval");
  seen.samples_stamp = file_stamp(run.path / "samples");
  if (seen.progress_stamp != run.progress_stamp)
    seen.progress = io::read_progress(run.path / "progress.json");
  if (seen.metrics_stamp != run.metrics_stamp)
    seen.last_iteration = last_iteration(run.path / "metrics.jsonl");
  const bool may_live = seen.progress && seen.progress->phase == io::RunPhase::running;
  seen.state =
      judge_state(seen.progress, may_live ? io::is_alive(seen.progress->process) : std::nullopt, now);
  const bool is_same = run.version > 0 && seen.state == run.state && seen.label == run.label &&
                       seen.progress_stamp == run.progress_stamp && seen.metrics_stamp == run.metrics_stamp &&
                       seen.samples_stamp == run.samples_stamp;
  if (is_same) return;
  seen.version = ++version_;
  run = std::move(seen);
}

}  // namespace ropd::watch
