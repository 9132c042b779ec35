// The YAML that configurations and suites are written in: read by libyaml, written by ourselves.
// What is written may have comments and is read back as the same values.
// Refused by name and line: anchors, aliases, tags, merge keys, lists and maps as keys, directives, a second
// document, keys that occur twice, plain and quoted texts that do not end on their line (several lines stand
// behind | or >).
// Time and memory grow with the length of the text: nothing is expanded, depth and values are bounded.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ropd {

struct ConfigNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string scalar;
  bool is_quoted = false;         // also for texts behind | and >: never a number, null or auto
  std::vector<ConfigNode> items;  // of a list or a map
  std::string name;               // of an item of a map
  std::string where;              // run.yaml:12 (an item of a map: the line of its key), or the override
  std::string comment;            // for writing
};

// The value that a text holds; `where` names the text in errors. At most 1 MB, 32 levels, 100,000 values.
ConfigNode parse_yaml_document(std::string_view text, std::string_view where);

std::string write_yaml(const ConfigNode& map, bool with_comments = false);
std::string write_value(const ConfigNode& node);  // on one line: 1, [1, 2], {a: 1}

}  // namespace ropd
