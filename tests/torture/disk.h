// What a power cut leaves on a disk. The file-changing calls of a program are applied one after the other;
// at any moment the disk can be asked for a state that a crash at this moment may leave.
// The model is weaker than any usual file system, so whoever survives it survives those:
//   - the bytes of a file are safe once the file was synced; before that each write may be there, in part,
//     as zeros, or not at all, in any combination
//   - an entry of a folder (a creation, a removal, a rename) is safe once the folder was synced; before that
//     any subset of these operations may have happened, whatever their order. A rename happens wholly or not
//     at all
#pragma once
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "torture/tree.h"

namespace ropd::torture {

// One call that was done. Paths are absolute and below the disk's folder.
struct Change {
  enum class Kind { create, write, resize, sync, rename, exchange, remove, make_folder, make_link, other };
  Kind kind = Kind::other;
  Path path;            // for write, resize and sync only to be read by people
  Path to;              // rename, exchange
  uint64_t inode = 0;   // of the file or folder; of the one that was created
  uint64_t offset = 0;  // write
  uint64_t size = 0;    // resize
  std::string bytes;    // write; the target of a link
};

enum class Loss {
  nothing,     // the program was killed, the machine runs on
  bytes,       // all that was not synced inside of files; folders are as they were
  everything,  // all that was not synced, in files and folders
  reordered,   // unsynced bytes and any subset of the folders' operations
  torn,        // parts of the unsynced bytes; folders are as they were
};
inline constexpr Loss kLosses[] = {Loss::nothing, Loss::bytes, Loss::everything, Loss::reordered, Loss::torn};
const char* name_of(Loss loss);

// Not thread-safe. What lies in the folder at the beginning is safe.
class Disk {
 public:
  explicit Disk(Path folder);
  void apply(const Change& change);
  // The draw decides where the loss leaves a choice; the same draw, the same state.
  [[nodiscard]] Tree after_crash(Loss loss, uint64_t draw) const;

 private:
  struct Pending {
    bool is_write = true;
    uint64_t offset = 0;  // for a resize the new size
    std::string bytes;
  };
  struct Node {
    TreeEntry::Kind kind = TreeEntry::Kind::file;
    std::string content, synced;
    std::vector<Pending> pending;         // since the last sync
    std::map<std::string, size_t> names;  // of a folder, as the program sees it
  };
  // One operation on folders; all of its edits happen or none.
  struct FolderChange {
    struct Edit {
      size_t folder = 0;
      std::string name;
      size_t node = 0;  // kNone: the name goes away
    };
    std::vector<Edit> edits;
    bool is_synced = false;
  };
  static constexpr size_t kNone = SIZE_MAX;
  using Names = std::vector<std::map<std::string, size_t>>;  // by node

  const Path folder_;
  std::vector<Node> nodes_;  // the first is the folder itself
  std::unordered_map<uint64_t, size_t> node_of_inode_;
  Names safe_names_;  // before folder_changes_
  std::vector<FolderChange> folder_changes_;

  void scan(const Path& path, size_t node);
  size_t add_node(TreeEntry::Kind kind, uint64_t inode);
  size_t find(const Path& path) const;
  size_t node_with(const Change& change) const;
  void change_folders(std::vector<FolderChange::Edit> edits);
  void sync(size_t node);
  std::string content_of(const Node& node, Loss loss, std::mt19937_64& random) const;
  void collect(Tree& tree, const Names& names, size_t node, const std::string& prefix, Loss loss,
               std::mt19937_64& random, std::vector<bool>& is_seen) const;
};

}  // namespace ropd::torture
