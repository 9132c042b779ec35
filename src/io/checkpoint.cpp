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

Path temporary_of(const Path& directory, uint64_t step) {
  return directory / (std::string(kTemporary) + step_name(step));
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

struct ManifestFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  uint64_t step = 0;
  std::vector<ManifestFile> files;
  std::string damage;  // empty when it is whole
};

Manifest parse_manifest(const std::string& text, const Path& path) {
  Manifest manifest;
  try {
    Json json = parse_json(text, path.string());
    const std::string expected = json.at("sha256");
    json.erase("sha256");
    if (sha256(json.dump()) != expected) {
      manifest.damage = "its content does not match its own SHA-256";
      return manifest;
    }
    manifest.step = json.at("step");
    for (const Json& file : json.at("files"))
      manifest.files.push_back({file.at("path"), file.at("bytes"), file.at("sha256")});
  } catch (const Error& error) {
    manifest.damage = error.what();
  } catch (const Json::exception& error) {
    manifest.damage = error.what();
  }
  return manifest;
}

// Nothing when there is no such regular file. Fails when that cannot be told.
std::optional<uint64_t> size_of(const Path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  check(error, path, "look at it");
  if (status.type() != fs::file_type::regular) return std::nullopt;
  const uint64_t size = fs::file_size(path, error);
  check(error, path, "read its size");
  return size;
}

std::string damage_of(const Path& checkpoint, const ManifestFile& file) {
  const Path name = file.name, path = checkpoint / name;
  if (name.is_absolute() || std::find(name.begin(), name.end(), "..") != name.end())
    return path.string() + ": named by the manifest, but outside the checkpoint";
  const auto bytes = size_of(path);
  if (!bytes) return path.string() + ": missing from the checkpoint";
  if (*bytes != file.bytes)
    return path.string() + ": has " + std::to_string(*bytes) + " bytes, the manifest says " +
           std::to_string(file.bytes) + " (a copy cut short?)";
  if (sha256_file(path) != file.sha256)
    return path.string() + ": SHA-256 differs from the manifest (damaged on disk or changed by hand)";
  return "";
}

bool is_needed(const std::string& name) { return name != "model/README.md"; }

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

CheckpointCheck check_checkpoint(const Path& checkpoint) {
  CheckpointCheck check;
  const Path path = checkpoint / "MANIFEST.json";
  if (!size_of(path)) {
    check.damages.push_back(checkpoint.string() +
                            ": has no MANIFEST.json (not a checkpoint, or a copy was cut short)");
    return check;
  }
  const Manifest manifest = parse_manifest(read_file(path, uint64_t{64} << 20), path);
  check.step = manifest.step;
  if (!manifest.damage.empty()) check.damages.push_back(path.string() + ": damaged: " + manifest.damage);
  for (const ManifestFile& file : manifest.files)
    if (std::string damage = damage_of(checkpoint, file); !damage.empty())
      (is_needed(file.name) ? check.damages : check.blemishes).push_back(std::move(damage));
  return check;
}

uint64_t verify_checkpoint(const Path& checkpoint) {
  const CheckpointCheck check = check_checkpoint(checkpoint);
  if (!check.damages.empty()) fail(check.damages.front());
  return check.step;
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

// The name goes first, for good: neither a kill in the middle nor a power cut, which may keep later operations and
// lose earlier ones, must leave half a checkpoint under a checkpoint's name.
void CheckpointStore::remove_checkpoint(const Path& path) {
  const Path garbage = directory_ / (std::string(kGarbage) + path.filename().string());
  std::error_code error;
  fs::rename(path, garbage, error);
  check(error, path, "remove the old checkpoint");
  sync_directory(directory_);
  fs::remove_all(garbage, error);
  check(error, path, "remove the old checkpoint");
}

Path CheckpointStore::save(uint64_t step, const Retention& retention,
                           const std::function<void(const Path& folder)>& fill) {
  fill(begin(step));
  return complete(step, retention);
}

Path CheckpointStore::begin(uint64_t step) {
  remove_leftovers();
  const Path temporary = temporary_of(directory_, step);
  std::error_code error;
  fs::create_directory(temporary, error);
  check(error, temporary, "create the folder");
  return temporary;
}

Path CheckpointStore::complete(uint64_t step, const Retention& retention) {
  const Path path = directory_ / step_name(step), temporary = temporary_of(directory_, step);
  write_manifest(temporary, step, sync_tree(temporary));
  sync_directory(temporary);
  move_into_place(temporary, path);
  sync_directory(directory_);
  write_latest(step);
  remove_leftovers();
  remove_older(step, retention);
  return path;
}

void CheckpointStore::settle(uint64_t step, const Retention& retention) {
  const Path latest = directory_ / "LATEST";
  if (!fs::exists(latest) || read_file(latest, 1 << 10) != step_name(step) + "\n") write_latest(step);
  remove_older(step, retention);
}

void CheckpointStore::write_latest(uint64_t step) {
  write_file_atomically(directory_ / "LATEST", step_name(step) + "\n");
}

void CheckpointStore::remove_older(uint64_t step, const Retention& retention) {
  if (retention.keep == 0) return;
  auto entries = list_checkpoints(directory_);
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step > step; });
  const auto& wanted = retention.keep_steps;
  for (size_t i = 0; i + retention.keep < entries.size(); ++i)
    if (std::find(wanted.begin(), wanted.end(), entries[i].step) == wanted.end())
      remove_checkpoint(entries[i].path);
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
  const auto entries = list_checkpoints(directory);
  std::string damages;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    CheckpointCheck check = check_checkpoint(entry->path);
    if (check.damages.empty() && check.step != entry->step)
      check.damages.push_back(entry->path.string() + ": the manifest is of step " +
                              std::to_string(check.step));
    for (const std::string& blemish : check.blemishes) log_warning(blemish, "; not needed to go on");
    if (check.damages.empty()) {
      if (!damages.empty()) log_warning(damages, "; going back to ", entry->path.string());
      return *entry;
    }
    damages += (damages.empty() ? "" : "; ") + check.damages.front();
  }
  if (damages.empty() && fs::exists(directory / "LATEST"))
    damages = (directory / "LATEST").string() + ": names a checkpoint, but there is none";
  if (!damages.empty())
    fail("no checkpoint can be used: ", damages,
         "; put one back from a copy, or begin again at step 0 with `ropd resume ",
         directory.parent_path().string(), " --start-over`, which moves them aside");
  return std::nullopt;
}

}  // namespace ropd::io
