#include "study/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/json.h"

namespace ropd::study {
Claim::Claim(const Path& folder, const std::string& node) : path_(folder / node) {
  std::filesystem::create_directories(folder);
  const int descriptor = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(path_.string(), ": cannot be made: ", std::strerror(errno));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    close(descriptor);
    if (reason != EWOULDBLOCK)
      fail(path_.string(), ": cannot be locked: ", std::strerror(reason),
           " (does the file system of the study's folder have locks?)");
    return;
  }
  const io::ProcessIdentity self = io::this_process();
  const std::string holder =
      Json{{"host", self.host}, {"pid", self.pid}, {"start_ticks", self.start_ticks}}.dump() + "\n";
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    const int reason = errno;
    close(descriptor);
    fail(path_.string(), ": cannot be written: ", std::strerror(reason));
  }
  descriptor_ = descriptor;
}

Claim::~Claim() {
  if (descriptor_ >= 0) close(descriptor_);
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
