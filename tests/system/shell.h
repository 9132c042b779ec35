// Runs a line of bash and keeps what it said.
#pragma once
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "support/test_data.h"

namespace ropd::test {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

inline Outcome run_shell(const std::string& command) {
  const TemporaryDirectory directory;
  // From a file: no quoting.
  write_file_atomically(directory / "script", command + "\n");
  const int status = std::system(("bash " + (directory / "script").string() + " >" +
                                  (directory / "out").string() + " 2>" + (directory / "err").string())
                                     .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(directory / "out"),
          read_file(directory / "err")};
}

inline Outcome run_ropd(const std::string& arguments) {
  return run_shell(std::string(ROPD_PROGRAM) + " " + arguments);
}

}  // namespace ropd::test
