#include "io/input_ledger.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/adapter_directory.h"

namespace ropd::io {
namespace {

constexpr int kFormat = 1;

// A path need not be UTF-8.
std::string text_of(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string title(const std::string& role, const Path& path) { return role + " (" + path.string() + ")"; }

Json write_identity(const FileIdentity& identity) {
  return {{"content", identity.hash},
          {"bytes", identity.stamp.bytes},
          {"device", identity.stamp.device},
          {"inode", identity.stamp.inode},
          {"modified_ns", identity.stamp.modified_ns},
          {"changed_ns", identity.stamp.changed_ns},
          {"hashed_ns", identity.hashed_ns}};
}

FileIdentity read_identity(const Json& json) {
  return {.hash = json.at("content"),
          .stamp = {.device = json.at("device"),
                    .inode = json.at("inode"),
                    .bytes = json.at("bytes"),
                    .modified_ns = json.at("modified_ns"),
                    .changed_ns = json.at("changed_ns")},
          .hashed_ns = json.at("hashed_ns")};
}

}  // namespace

std::vector<InputFile> model_files(const Path& directory, const Path& base) {
  std::vector<InputFile> files = own_model_files(directory);
  if (is_adapter_directory(directory))
    for (InputFile& file : own_model_files(find_base(directory, base)))
      files.push_back({"base/" + file.name, std::move(file.path)});
  return files;
}

std::vector<InputFile> own_model_files(const Path& directory) {
  std::vector<InputFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    const bool is_read = name.ends_with(".safetensors") || name == "model.safetensors.index.json" ||
                         name == "config.json" || name == "adapter_config.json" ||
                         name == "generation_config.json" || name == "tokenizer.json" ||
                         name == "tokenizer_config.json" || name == "special_tokens_map.json" ||
                         name.starts_with("chat_template.");
    if (is_read && entry.is_regular_file()) files.push_back({name, entry.path()});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

InputLedger::InputLedger(Path path) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_)) return;
  Json json = parse_json(read_file(path_, uint64_t{64} << 20), path_.string());
  try {
    const std::string expected = json.at("sha256");
    json.erase("sha256");
    if (sha256(text_of(json)) != expected)
      fail(path_.string(), ": its content does not match its own SHA-256 (damaged, or changed by hand)");
    if (json.at("format") != kFormat)
      fail(path_.string(), ": format ", json.at("format").dump(), ", this program reads ", kFormat,
           " (made by a newer version?)");
    config_ = json.at("config");
    config_before_ = json.at("config_before");
    directory_ = json.at("directory").get<std::string>();
    for (const Json& file : json.at("files"))
      roles_[file.at("role")].push_back(
          {file.at("name"), file.at("path").get<std::string>(), read_identity(file), false});
  } catch (const Json::exception& error) {
    fail(path_.string(), ": not the list of a run's inputs: ", error.what());
  }
}

std::string InputLedger::text() const {
  Json json = {{"format", kFormat},
               {"directory", directory_.string()},
               {"config", config_},
               {"config_before", config_before_},
               {"files", Json::array()}};
  for (const auto& [role, files] : roles_)
    for (const Held& held : files) {
      Json file = write_identity(held.identity);
      file["role"] = role;
      file["name"] = held.name;
      file["path"] = held.path.string();
      json["files"].push_back(std::move(file));
    }
  json["sha256"] = sha256(text_of(json));
  return text_of(json, 1) + "\n";
}

void InputLedger::save() const { write_file_atomically(path_, text()); }

// True when what is kept about the file changed. Fails when its content did.
bool InputLedger::refresh(const std::string& role, Held& held) {
  if (held.identity.vouches_for(stamp_of(held.path))) return false;
  FileIdentity now = identify(held.path);
  if (now.hash != held.identity.hash)
    fail(title(role, held.path), ": its content is not what the run began with (SHA-256 ",
         now.hash.substr(0, 12), ", was ", held.identity.hash.substr(0, 12),
         "); put the old file back, name the place where it lies now (ropd resume RUN key=path), or start a "
         "new run");
  held.identity = std::move(now);
  return true;
}

void InputLedger::hold(const std::string& role, const std::vector<InputFile>& files) {
  if (files.empty()) return;
  auto& held = roles_[role];
  if (held.empty()) {
    for (const InputFile& file : files)
      held.push_back({file.name, std::filesystem::absolute(file.path), identify(file.path), true});
    return;
  }
  for (const InputFile& file : files) {
    const auto found = std::ranges::find(held, file.name, &Held::name);
    if (found == held.end())
      fail(title(role, file.path), ": was not there when the run began; move it away or start a new run");
    found->path = std::filesystem::absolute(file.path);
    found->is_in_use = true;
    (void)refresh(role, *found);
  }
  for (const Held& before : held)
    if (!before.is_in_use)
      fail(title(role, before.path), ": missing, the run began with it; put it back or start a new run");
}

bool InputLedger::is_in_use(const std::string& role) const {
  const auto found = roles_.find(role);
  return found != roles_.end() && std::ranges::all_of(found->second, &Held::is_in_use);
}

void InputLedger::check() {
  bool has_changed = false;
  for (auto& [role, files] : roles_)
    for (Held& held : files)
      if (held.is_in_use) has_changed |= refresh(role, held);
  if (has_changed) save();
}

void InputLedger::check_made(const std::string& role, const std::vector<InputFile>& files) const {
  const auto found = roles_.find(role);
  if (found == roles_.end()) return;
  for (const InputFile& file : files)
    if (std::ranges::find(found->second, file.name, &Held::name) == found->second.end())
      fail(title(role, file.path), ": was not there when the run ended; move it away");
  for (const Held& held : found->second) {
    const auto file = std::ranges::find(files, held.name, &InputFile::name);
    if (file == files.end()) fail(title(role, held.path), ": missing, the run made it");
    if (held.identity.vouches_for(stamp_of(file->path))) continue;
    if (const std::string now = content_hash(file->path); now != held.identity.hash)
      fail(title(role, file->path), ": its content is not what the run made (SHA-256 ", now.substr(0, 12), ", was ",
           held.identity.hash.substr(0, 12), "); put it back, or make the run again");
  }
}

std::vector<std::string> InputLedger::damages(const std::map<std::string, std::vector<InputFile>>& now,
                                              const ContentHash& hash) const {
  std::vector<std::string> damages;
  for (const auto& [role, files] : roles_) {
    const auto found = now.find(role);
    for (const Held& held : files) {
      Path path = held.path;
      if (found != now.end())
        if (const auto file = std::ranges::find(found->second, held.name, &InputFile::name);
            file != found->second.end())
          path = file->path;
      if (!std::filesystem::exists(path)) {
        damages.push_back(title(role, path) + ": missing");
      } else if (hash(path) != held.identity.hash) {
        damages.push_back(title(role, path) + ": its content is not what the run began with");
      }
    }
  }
  return damages;
}

size_t InputLedger::num_files() const {
  size_t count = 0;
  for (const auto& [role, files] : roles_) count += files.size();
  return count;
}

std::string InputLedger::hash_of(const std::string& role) const {
  const auto found = roles_.find(role);
  if (found == roles_.end()) return "";
  std::string all;
  for (const Held& held : found->second) all += held.name + '\0' + held.identity.hash + '\n';
  return sha256(all);
}

void InputLedger::set_config(const std::string& text) {
  config_before_ = config_;
  config_ = text;
}

}  // namespace ropd::io
