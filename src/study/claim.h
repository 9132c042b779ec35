// Who works on a node: a locked file. The system gives the lock back when its holder ends, however it ends,
// so a dead claim is simply taken over. On folders that machines share their file system must lock (NFSv4,
// Lustre with flock).
#pragma once
#include <optional>
#include <string>

#include "base/file.h"
#include "io/progress_file.h"

namespace ropd::study {

class Claim {
 public:
  // Takes the claim if nobody alive has it; makes the folder.
  Claim(const Path& folder, const std::string& node);
  bool is_held() const { return file_.is_held(); }

 private:
  LockedFile file_;
};

// The living holder; nothing when there is none.
std::optional<io::ProcessIdentity> claim_holder(const Path& folder, const std::string& node);

}  // namespace ropd::study
