// Checkpoints that are whole or not there: checkpoints/step-00004/ with any content and a MANIFEST.json of
// sizes and SHA-256. Commit protocol: everything is written into a temporary sibling, every file and folder
// made durable, the manifest last; then rename, fsync of the parent, LATEST replaced the same way, and only
// then older checkpoints are removed. A process killed at any point leaves the old or the new checkpoint
// complete (checkpoint_test.cpp kills it at every system call).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace ropd::io {

struct CheckpointEntry {
  uint64_t step = 0;
  Path path;
};

// Which checkpoints remain after a save.
struct Retention {
  uint64_t keep = 3;                 // the newest so many; 0 = all
  std::vector<uint64_t> keep_steps;  // and these, whatever their age
};

// What is wrong with a checkpoint, a sentence each that begins with the file: absent, another size, other
// content, a damaged manifest. Every file is hashed.
struct CheckpointCheck {
  uint64_t step = 0;
  std::vector<std::string> damages;
  std::vector<std::string> blemishes;  // in files that neither training nor evaluation reads: the model card
};
// Fails where something cannot be read now (rights, an error of the disk or the network): that says nothing
// about its content, and it is no reason to go back to an older checkpoint.
[[nodiscard]] CheckpointCheck check_checkpoint(const Path& checkpoint);
// Fails naming the first damage. Returns the step.
uint64_t verify_checkpoint(const Path& checkpoint);

// Ascending by step; names only, nothing is verified. Empty when the folder does not exist.
[[nodiscard]] std::vector<CheckpointEntry> list_checkpoints(const Path& directory);
// The newest that verifies; a warning names each newer one that does not. Nothing when none was ever made.
// Fails, naming the damages, when there were some and none verifies: beginning again is the user's decision.
[[nodiscard]] std::optional<CheckpointEntry> newest_valid_checkpoint(const Path& directory);

// Writes the checkpoints of a run. One writer at a time (RunDirectory holds the lock).
class CheckpointStore {
 public:
  // Creates the folder if need be and removes what a killed save or removal left behind; readers use the
  // functions above.
  explicit CheckpointStore(Path directory);

  // fill writes the content into the folder it is given. When it or the disk fails, the previous checkpoints
  // are untouched. Afterwards only the newest `keep` up to this step remain; 0 keeps all. A checkpoint of the
  // same step is replaced.
  Path save(uint64_t step, const Retention& retention, const std::function<void(const Path& folder)>& fill);
  // The same in two parts: the folder to fill, and all that follows. Nothing is the store's in between.
  Path begin(uint64_t step);
  Path complete(uint64_t step, const Retention& retention);

  // Before a run goes on behind `step`: finishes what a save killed behind its first rename left undone
  // (LATEST, the removal of older checkpoints).
  void settle(uint64_t step, const Retention& retention);

  const Path& directory() const { return directory_; }

 private:
  Path directory_;
  void remove_leftovers();
  void write_latest(uint64_t step);
  void remove_older(uint64_t step, const Retention& retention);
  void remove_checkpoint(const Path& path);
};

}  // namespace ropd::io
