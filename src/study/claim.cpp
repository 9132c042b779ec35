#include "study/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace ropd::study {
namespace {

std::string this_process() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  return std::string(host) + ", process " + std::to_string(getpid());
}

}  // namespace

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
  const std::string holder = this_process() + "\n";
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

std::string claim_holder(const Path& folder, const std::string& node) {
  const Path path = folder / node;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return "";
  const bool is_free = flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  close(descriptor);
  if (is_free) return "";
  std::string holder = read_file(path, 1024);
  return holder.substr(0, holder.find('\n'));
}

}  // namespace ropd::study
