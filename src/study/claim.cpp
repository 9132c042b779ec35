#include "study/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "io/durable_folder.h"

namespace ropd::study {
namespace {

Path claim_file(const Path& folder, const std::string& node) {
  io::make_durable_folder(folder);
  return folder / node;
}

}  // namespace

Claim::Claim(const Path& folder, const std::string& node) : file_(claim_file(folder, node)) {
  if (!file_.is_held()) return;
  const io::ProcessIdentity self = io::this_process();
  file_.replace_content(
      Json{{"host", self.host}, {"pid", self.pid}, {"start_ticks", self.start_ticks}}.dump() + "\n");
}

std::optional<io::ProcessIdentity> claim_holder(const Path& folder, const std::string& node) {
  const Path path = folder / node;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  const bool is_free = flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  close(descriptor);
  if (is_free) return std::nullopt;
  try {
    const Json json = parse_json(read_file(path, 1024), path.string());
    return io::ProcessIdentity{json.at("host"), json.at("pid"), json.at("start_ticks")};
  } catch (const Error&) {  // locked a moment ago and not written yet
  } catch (const Json::exception&) {
  }
  return io::ProcessIdentity{.host = "another process"};
}

}  // namespace ropd::study
