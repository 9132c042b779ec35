#include "study/seen_inputs.h"

#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/sealed_json.h"
#include "base/visible_text.h"

namespace ropd::study {
namespace {

Path path_in(const Path& folder) { return folder / "inputs.json"; }

}  // namespace

Json read_seen_inputs(const Path& folder) {
  const Path path = path_in(folder);
  if (!std::filesystem::exists(path)) return Json::object();
  Json seen = parse_json(read_file(path, 16 << 20), path.string());
  if (!seen.is_object()) fail(path.string(), ": expected a JSON object, got ", seen.type_name());
  return unsealed(std::move(seen), path.string());
}

void note_inputs(const Path& folder, const std::map<std::string, std::string>& contents,
                 bool accepts_changes) {
  Json seen = read_seen_inputs(folder);
  const Json before = seen;
  for (const auto& [given, content] : contents) {
    const std::string name = visible_text(given);  // a path need not be UTF-8
    const auto found = seen.find(name);
    const bool has_changed = found != seen.end() && *found != content;
    if (has_changed && accepts_changes) log_warning(name, ": has changed; what depends on it is made anew");
    if (has_changed && !accepts_changes)
      fail(name, ": is not what ", folder.string(),
           " was made from (changed or damaged); put it back, or `ropd study --accept-changed-inputs` makes "
           "everything that depends on it anew");
    seen[name] = content;
  }
  if (seen != before) write_file_atomically(path_in(folder), sealed(seen).dump(1) + "\n");
}

}  // namespace ropd::study
