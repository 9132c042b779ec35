// inputs.json of a run (docs/formats.md): the content of every file that influences its result, as it was
// when the run began. Held once, looked at again before every checkpoint, read again where a file looks
// different (file_identity.h) and at `ropd verify`. A file that was moved, copied or touched is the same
// file; one with another content is refused by name.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/file_identity.h"

namespace ropd::io {

// One of the files that make up an input: the weights of a teacher, a bank.
struct InputFile {
  std::string name;  // what it is called inside its input: model.safetensors; empty where there is only one
  Path path;         // where it lies now
};

// The files of a model directory that are read: config, generation config, tokenizer, template, weights; of an
// adapter directory those of its base too (`base`, or the one that it names), as base/NAME. Those that exist,
// by name.
std::vector<InputFile> model_files(const Path& directory, const Path& base = {});
// Without an adapter's base.
std::vector<InputFile> own_model_files(const Path& directory);

// The role of model/ of a finished run of `ropd sft`.
inline constexpr const char* kResultRole = "result";

using ContentHash = std::function<std::string(const Path&)>;

// Not thread-safe; one process at a time (RunDirectory holds the lock).
class InputLedger {
 public:
  // Reads `path` if it is there; otherwise nothing is held yet.
  explicit InputLedger(Path path);
  // Holds nothing, whatever a start that was cut short left in `path`.
  struct New {};
  InputLedger(Path path, New) : path_(std::move(path)) {}

  // From now on `role` (student, teacher, queries, ...) means these files. The first time they are hashed and
  // kept; later they must have the same names and content, wherever they lie. Fails naming what differs.
  void hold(const std::string& role, const std::vector<InputFile>& files);
  bool is_in_use(const std::string& role) const;  // held in this session
  void forget(const std::string& role) { roles_.erase(role); }
  // Looks at everything held in this session. Fails naming the file whose content changed.
  void check();
  // What a run made: fails naming a file that is not as the ledger holds it. Reads those that look different. Nothing
  // where the role is not held.
  void check_made(const std::string& role, const std::vector<InputFile>& files) const;
  // Reads everything that is held as it lies now, whatever its stamps say. One sentence for each damage. `hash` is
  // content_hash or one that remembers: the runs of a study share their inputs.
  std::vector<std::string> damages(const std::map<std::string, std::vector<InputFile>>& now,
                                   const ContentHash& hash = content_hash) const;

  size_t num_files() const;
  // SHA-256 over names and contents of a role's files; empty when it is not held.
  std::string hash_of(const std::string& role) const;

  // The run's config.yaml as it must be. `before` is what a change under way replaces: a kill between this
  // file and config.yaml must not look like an edit by hand.
  const std::string& config() const { return config_; }
  const std::string& config_before() const { return config_before_; }
  void set_config(const std::string& text);
  // Where relative paths of the config begin.
  const Path& directory() const { return directory_; }
  void set_directory(const Path& directory) { directory_ = directory; }

  std::string text() const;  // of the file; what is not UTF-8 in a path is replaced, for people to read
  void save() const;         // durable

 private:
  struct Held {
    std::string name;
    Path path;
    FileIdentity identity;
    bool is_in_use = false;  // of this session: its path is where it lies now
  };
  Path path_, directory_;
  std::string config_, config_before_;
  std::map<std::string, std::vector<Held>> roles_;
  bool refresh(const std::string& role, Held& held);
};

}  // namespace ropd::io
