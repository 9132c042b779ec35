#include "torture/disk.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace ropd::torture {

namespace fs = std::filesystem;

namespace {

constexpr size_t kSector = 512;

void apply_write(std::string& content, uint64_t offset, std::string_view bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
  content.replace(offset, bytes.size(), bytes);
}

uint64_t inode_of(const Path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) fail(path.string(), ": cannot be looked at");
  return status.st_ino;
}

}  // namespace

const char* name_of(Loss loss) {
  switch (loss) {
    case Loss::nothing:
      return "nothing";
    case Loss::bytes:
      return "bytes";
    case Loss::everything:
      return "everything";
    case Loss::reordered:
      return "reordered";
    case Loss::torn:
      return "torn";
  }
  return "";
}

Disk::Disk(Path folder) : folder_(fs::canonical(folder)) {
  scan(folder_, add_node(TreeEntry::Kind::folder, inode_of(folder_)));
  for (const Node& node : nodes_) safe_names_.push_back(node.names);
}

size_t Disk::add_node(TreeEntry::Kind kind, uint64_t inode) {
  nodes_.push_back({.kind = kind, .content = {}, .synced = {}, .pending = {}, .names = {}});
  node_of_inode_[inode] = nodes_.size() - 1;  // an inode that was freed may come again
  return nodes_.size() - 1;
}

void Disk::scan(const Path& path, size_t node) {
  for (const auto& entry : fs::directory_iterator(path)) {
    const auto kind = entry.is_symlink()     ? TreeEntry::Kind::link
                      : entry.is_directory() ? TreeEntry::Kind::folder
                                             : TreeEntry::Kind::file;
    const size_t child = add_node(kind, inode_of(entry.path()));
    nodes_[node].names[entry.path().filename().string()] = child;
    if (kind == TreeEntry::Kind::folder) {
      scan(entry.path(), child);
    } else {
      nodes_[child].content =
          kind == TreeEntry::Kind::link ? fs::read_symlink(entry.path()).string() : read_file(entry.path());
      nodes_[child].synced = nodes_[child].content;
    }
  }
}

size_t Disk::find(const Path& path) const {
  size_t node = 0;
  const Path inside = path.lexically_relative(folder_);
  if (inside == ".") return node;
  for (const Path& part : inside) {
    const auto found = nodes_[node].names.find(part.string());
    if (found == nodes_[node].names.end()) fail(path.string(), ": not on the simulated disk");
    node = found->second;
  }
  return node;
}

size_t Disk::node_with(const Change& change) const {
  const auto found = node_of_inode_.find(change.inode);
  if (found == node_of_inode_.end())
    fail(change.path.string(), ": inode ", change.inode, " not on the simulated disk");
  return found->second;
}

void Disk::change_folders(std::vector<FolderChange::Edit> edits) {
  for (const auto& edit : edits) {
    auto& names = nodes_[edit.folder].names;
    if (edit.node == kNone) {
      names.erase(edit.name);
    } else {
      names[edit.name] = edit.node;
    }
  }
  folder_changes_.push_back({std::move(edits), false});
}

void Disk::sync(size_t node) {
  if (nodes_[node].kind != TreeEntry::Kind::folder) {
    nodes_[node].synced = nodes_[node].content;
    nodes_[node].pending.clear();
    return;
  }
  for (FolderChange& change : folder_changes_)
    change.is_synced |=
        std::ranges::any_of(change.edits, [&](const auto& edit) { return edit.folder == node; });
}

void Disk::apply(const Change& change) {
  const auto folder = [](const Disk& disk, const Path& path) { return disk.find(path.parent_path()); };
  const auto name = [](const Path& path) { return path.filename().string(); };
  switch (change.kind) {
    case Change::Kind::create:
    case Change::Kind::make_folder:
    case Change::Kind::make_link: {
      const bool is_link = change.kind == Change::Kind::make_link;
      const size_t node = add_node(is_link                                    ? TreeEntry::Kind::link
                                   : change.kind == Change::Kind::make_folder ? TreeEntry::Kind::folder
                                                                              : TreeEntry::Kind::file,
                                   change.inode);
      // A link's target is part of its entry.
      if (is_link) nodes_[node].content = nodes_[node].synced = change.bytes;
      return change_folders({{folder(*this, change.path), name(change.path), node}});
    }
    case Change::Kind::write: {
      Node& node = nodes_[node_with(change)];
      apply_write(node.content, change.offset, change.bytes);
      node.pending.push_back({true, change.offset, change.bytes});
      return;
    }
    case Change::Kind::resize: {
      Node& node = nodes_[node_with(change)];
      node.content.resize(change.size);
      node.pending.push_back({false, change.size, {}});
      return;
    }
    case Change::Kind::sync:
      return sync(node_with(change));
    case Change::Kind::rename:
      return change_folders({{folder(*this, change.path), name(change.path), kNone},
                             {folder(*this, change.to), name(change.to), find(change.path)}});
    case Change::Kind::exchange:
      return change_folders({{folder(*this, change.path), name(change.path), find(change.to)},
                             {folder(*this, change.to), name(change.to), find(change.path)}});
    case Change::Kind::remove:
      return change_folders({{folder(*this, change.path), name(change.path), kNone}});
    case Change::Kind::other:
      return;
  }
}

std::string Disk::content_of(const Node& node, Loss loss, std::mt19937_64& random) const {
  if (loss == Loss::nothing) return node.content;
  if (loss != Loss::torn) return node.synced;
  std::string content = node.synced;
  for (const Pending& pending : node.pending) {
    const uint64_t choice = random() % 4;
    if (!pending.is_write) {
      if (choice < 2) content.resize(pending.offset);
    } else if (choice == 0) {
      apply_write(content, pending.offset, pending.bytes);
    } else if (choice == 1) {  // the beginning of it, whole sectors
      const size_t kept = random() % (pending.bytes.size() + 1) / kSector * kSector;
      if (kept > 0) apply_write(content, pending.offset, std::string_view(pending.bytes).substr(0, kept));
    } else if (choice == 2) {  // the file has grown, the bytes have not arrived
      content.resize(std::max<size_t>(content.size(), pending.offset + pending.bytes.size()));
    }
  }
  return content;
}

void Disk::collect(Tree& tree, const Names& names, size_t node, const std::string& prefix, Loss loss,
                   std::mt19937_64& random, std::vector<bool>& is_seen) const {
  for (const auto& [name, child] : names[node]) {
    // A folder that a reordered rename shows twice stays at the first of its names.
    const bool is_folder = nodes_[child].kind == TreeEntry::Kind::folder;
    if (is_folder && is_seen[child]) continue;
    is_seen[child] = true;
    const std::string path = prefix.empty() ? name : prefix + "/" + name;
    tree[path] = {nodes_[child].kind, is_folder ? "" : content_of(nodes_[child], loss, random)};
    if (is_folder) collect(tree, names, child, path, loss, random, is_seen);
  }
}

Tree Disk::after_crash(Loss loss, uint64_t draw) const {
  std::mt19937_64 random(draw);
  Names names = safe_names_;
  names.resize(nodes_.size());
  for (const FolderChange& change : folder_changes_) {
    const bool is_kept = change.is_synced || (loss != Loss::everything && loss != Loss::reordered) ||
                         (loss == Loss::reordered && random() % 2 == 0);
    if (!is_kept) continue;
    for (const auto& edit : change.edits) {
      if (edit.node == kNone) {
        names[edit.folder].erase(edit.name);
      } else {
        names[edit.folder][edit.name] = edit.node;
      }
    }
  }
  Tree tree;
  std::vector<bool> is_seen(nodes_.size());
  collect(tree, names, 0, "", loss, random, is_seen);
  return tree;
}

}  // namespace ropd::torture
