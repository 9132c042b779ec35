// Which program this is: its version and the git revision it was built from. main sets both before anything
// else runs, so that only the program itself, and not every library, is rebuilt when the revision changes.
#pragma once
#include <string>

namespace ropd {

struct ProgramVersion {
  std::string number = "unknown";    // 0.1.0
  std::string revision = "unknown";  // git describe --always --dirty; "unknown" outside a git checkout
};

void set_program_version(ProgramVersion version);
const ProgramVersion& program_version();

}  // namespace ropd
