#include "stats/scored_responses.h"

#include <filesystem>

#include "base/error.h"
#include "base/json.h"

namespace ropd::stats {

void check_responses(const Path& folder, const std::string& sha256) {
  const Path path = folder / "responses.jsonl";
  if (sha256.empty() || !std::filesystem::exists(path) || sha256_file(path) == sha256) return;
  fail(path.string(),
       ": is not what was sampled (a response was changed, or a copy cut short); `ropd eval --overwrite` "
       "samples anew, and without generation.json beside it --rescore scores it as of unknown origin");
}

void check_scored_responses(const Path& directory_or_file) {
  const Path path = std::filesystem::is_directory(directory_or_file) ? directory_or_file / "summary.json"
                                                                     : directory_or_file;
  const Json summary = parse_json(read_file(path, uint64_t{256} << 20), path.string());
  const Json about = summary.is_object() ? summary.value("about", Json()) : Json();
  const Json hash = about.is_object() ? about.value("responses_sha256", Json()) : Json();
  if (hash.is_string()) check_responses(path.parent_path(), hash.get<std::string>());
}

}  // namespace ropd::stats
