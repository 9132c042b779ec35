#include "study/seen_inputs.h"

#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/sealed_json.h"

namespace ropd::study {

void note_inputs(const Path& folder, const std::map<std::string, std::string>& contents,
                 bool accepts_changes) {
  const Path path = folder / "inputs.json";
  Json seen = Json::object();
  if (std::filesystem::exists(path)) {
    seen = parse_json(read_file(path, 16 << 20), path.string());
    if (!seen.is_object()) fail(path.string(), ": expected a JSON object, got ", seen.type_name());
    seen = unsealed(std::move(seen), path.string());
  }
  const Json before = seen;
  for (const auto& [name, content] : contents) {
    const auto found = seen.find(name);
    const bool has_changed = found != seen.end() && *found != content;
    if (has_changed && accepts_changes) log_warning(name, ": has changed; what depends on it is made anew");
    if (has_changed && !accepts_changes)
      fail(name, ": is not what ", folder.string(),
           " was made from (changed or damaged); put it back, or `ropd study --accept-changed-inputs` makes "
           "everything that depends on it anew");
    seen[name] = content;
  }
  if (seen != before) write_file_atomically(path, sealed(seen).dump(1) + "\n");
}

}  // namespace ropd::study
