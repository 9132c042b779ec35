#include "torture/tree.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace ropd::torture {

namespace fs = std::filesystem;

Tree read_tree(const Path& folder) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    TreeEntry& place = tree[entry.path().lexically_relative(folder).string()];
    if (entry.is_symlink()) {
      place = {TreeEntry::Kind::link, fs::read_symlink(entry.path()).string()};
    } else if (entry.is_directory()) {
      place = {TreeEntry::Kind::folder, ""};
    } else {
      place = {TreeEntry::Kind::file, read_file(entry.path())};
    }
  }
  return tree;
}

void write_tree(const Path& folder, const Tree& tree) {
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  for (const auto& [name, entry] : tree) {
    const Path path = folder / name;
    switch (entry.kind) {
      case TreeEntry::Kind::folder:
        fs::create_directory(path);
        break;
      case TreeEntry::Kind::link:
        fs::create_symlink(entry.content, path);
        break;
      case TreeEntry::Kind::file:
        if (!(std::ofstream(path, std::ios::binary) << entry.content)) fail(path.string(), ": cannot write");
    }
  }
}

std::string hash_of(const Tree& tree) {
  std::string all;
  for (const auto& [name, entry] : tree)
    all += name + '\0' + static_cast<char>('0' + static_cast<int>(entry.kind)) + sha256(entry.content) + '\n';
  return sha256(all);
}

}  // namespace ropd::torture
