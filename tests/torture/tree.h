// A folder with all that is in it, in memory: what a crash leaves, what a damage begins with.
#pragma once
#include <map>
#include <string>

#include "base/file.h"

namespace ropd::torture {

struct TreeEntry {
  enum class Kind { folder, file, link };
  Kind kind = Kind::file;
  std::string content;  // of a file; where a link points
  bool operator==(const TreeEntry&) const = default;
};

// By path inside the folder; a folder comes before what it holds.
using Tree = std::map<std::string, TreeEntry>;

[[nodiscard]] Tree read_tree(const Path& folder);
// Afterwards the folder holds this and nothing else. Nothing is made durable.
void write_tree(const Path& folder, const Tree& tree);
// SHA-256 over names and contents.
[[nodiscard]] std::string hash_of(const Tree& tree);

}  // namespace ropd::torture
