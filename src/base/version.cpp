#include "base/version.h"

#include <utility>

namespace ropd {
namespace {

ProgramVersion& stored_version() {
  static ProgramVersion version;  // a fact about the process, set once by main
  return version;
}

}  // namespace

void set_program_version(ProgramVersion version) { stored_version() = std::move(version); }

const ProgramVersion& program_version() { return stored_version(); }

}  // namespace ropd
