#include "io/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

namespace ropd::io {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kTemporary = ".tmp-";  // a save in progress
constexpr std::string_view kGarbage = ".old-";    // a checkpoint being removed

std::string step_name(uint64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

std::optional<uint64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  uint64_t step = 0;
  const char* end = name.data() + name.size();
  const auto result = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (result.ec != std::errc() || result.ptr != end || step_name(step) != name) return std::nullopt;
  return step;
}

void check(const std::error_code& error, const Path& path, std::string_view action) {
  if (error) fail(path.string(), ": cannot ", action, ": ", error.message());
}

// Regular files below folder, as relative paths, sorted; folders are made durable on the way.
std::vector<std::string> sync_tree(const Path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) {
      sync_directory(entry.path());
    } else if (entry.is_regular_file()) {
      sync_file(entry.path());
      files.push_back(entry.path().lexically_relative(folder).generic_string());
    } else {
      fail(entry.path().string(), ": neither a file nor a folder, cannot be part of a checkpoint");
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void write_manifest(const Path& folder, uint64_t step, const std::vector<std::string>& files) {
  Json manifest = {{"format", 1}, {"step", step}, {"files", Json::array()}};
  for (const std::string& name : files)
    manifest["files"].push_back(
        {{"path", name}, {"bytes", fs::file_size(folder / name)}, {"sha256", sha256_file(folder / name)}});
  manifest["sha256"] = sha256(manifest.dump());  // of all the rest, so that a damaged manifest is seen
  write_file_atomically(folder / "MANIFEST.json", manifest.dump(1) + "\n");
}

// Puts the complete folder `from` in the place of `to`; an older `to` ends up under the name of `from`, in
// one step.
void move_into_place(const Path& from, const Path& to) {
  if (!fs::exists(to)) {
    std::error_code error;
    fs::rename(from, to, error);
    return check(error, to, "put the checkpoint in place");
  }
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0)
    fail(to.string(), ": cannot replace the checkpoint: ", std::generic_category().message(errno));
}

}  // namespace

uint64_t verify_checkpoint(const Path& checkpoint) {
  const Path path = checkpoint / "MANIFEST.json";
  if (!fs::exists(path))
    fail(checkpoint.string(), ": has no MANIFEST.json (not a checkpoint, or a copy was cut short)");
  Json manifest = parse_json(read_file(path, uint64_t{64} << 20), path.string());
  std::string damage;
  try {
    const std::string expected = manifest.at("sha256");
    manifest.erase("sha256");
    if (sha256(manifest.dump()) != expected) damage = "its content does not match its own SHA-256";
    for (const Json& file : manifest.at("files")) {
      if (!damage.empty()) break;
      const Path name = file.at("path").get<std::string>();
      const uint64_t bytes = file.at("bytes");
      const bool escapes = name.is_absolute() || std::find(name.begin(), name.end(), "..") != name.end();
      if (escapes) fail(path.string(), ": names ", name.string(), ", which lies outside the checkpoint");
      const Path full = checkpoint / name;
      if (!fs::is_regular_file(full)) fail(full.string(), ": missing from the checkpoint");
      if (fs::file_size(full) != bytes)
        fail(full.string(), ": has ", fs::file_size(full), " bytes, the manifest says ", bytes,
             " (a copy cut short?)");
      if (sha256_file(full) != file.at("sha256").get<std::string>())
        fail(full.string(), ": SHA-256 differs from the manifest (damaged on disk or changed by hand)");
    }
    if (damage.empty()) return manifest.at("step");
  } catch (const Json::exception& error) {
    damage = error.what();
  }
  fail(path.string(), ": damaged: ", damage);
}

CheckpointStore::CheckpointStore(Path directory) : directory_(std::move(directory)) {
  std::error_code error;
  fs::create_directories(directory_, error);
  check(error, directory_, "create the folder");
  remove_leftovers();
}

void CheckpointStore::remove_leftovers() {
  std::vector<Path> leftovers;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kTemporary) || name.starts_with(kGarbage) || name.starts_with("LATEST.tmp-"))
      leftovers.push_back(entry.path());
  }
  std::error_code error;
  for (const Path& path : leftovers) fs::remove_all(path, error);
  check(error, directory_, "remove what an interrupted save left");
}

// The name goes first: a kill in the middle must not leave half a checkpoint under a checkpoint's name.
void CheckpointStore::remove_checkpoint(const Path& path) {
  const Path garbage = directory_ / (std::string(kGarbage) + path.filename().string());
  std::error_code error;
  fs::rename(path, garbage, error);
  if (!error) fs::remove_all(garbage, error);
  check(error, path, "remove the old checkpoint");
}

Path CheckpointStore::save(uint64_t step, const Retention& retention,
                           const std::function<void(const Path& folder)>& fill) {
  remove_leftovers();
  const Path path = directory_ / step_name(step);
  const Path temporary = directory_ / (std::string(kTemporary) + step_name(step));
  std::error_code error;
  fs::create_directory(temporary, error);
  check(error, temporary, "create the folder");
  fill(temporary);
  write_manifest(temporary, step, sync_tree(temporary));
  sync_directory(temporary);
  move_into_place(temporary, path);
  sync_directory(directory_);
  write_file_atomically(directory_ / "LATEST", step_name(step) + "\n");
  remove_leftovers();
  if (retention.keep == 0) return path;
  auto entries = list_checkpoints(directory_);
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step > step; });
  const auto& wanted = retention.keep_steps;
  for (size_t i = 0; i + retention.keep < entries.size(); ++i)
    if (std::find(wanted.begin(), wanted.end(), entries[i].step) == wanted.end())
      remove_checkpoint(entries[i].path);
  return path;
}

std::vector<CheckpointEntry> list_checkpoints(const Path& directory) {
  std::vector<CheckpointEntry> entries;
  if (!fs::is_directory(directory)) return entries;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const auto step = step_of(entry.path().filename().string()))
      if (entry.is_directory()) entries.push_back({*step, entry.path()});
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return entries;
}

std::optional<CheckpointEntry> newest_valid_checkpoint(const Path& directory) {
  auto entries = list_checkpoints(directory);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      if (verify_checkpoint(entry->path) == entry->step) return *entry;
      log_warning(entry->path.string(), ": the manifest is of another step; trying an older checkpoint");
    } catch (const Error& error) {
      log_warning(error.what(), "; trying an older checkpoint");
    }
  }
  return std::nullopt;
}

}  // namespace ropd::io
