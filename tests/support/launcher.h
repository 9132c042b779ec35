// Programs under mpirun, as tests start them: any number of ranks on the cores there are, as root too.
#pragma once
#include <cstdlib>
#include <string>

namespace ropd::test {

inline bool has_mpirun() { return std::system("command -v mpirun > /dev/null 2>&1") == 0; }

// The beginning of a shell command.
inline std::string mpirun(int ranks) {
  return "mpirun --allow-run-as-root --oversubscribe --bind-to none -n " + std::to_string(ranks) + " ";
}

}  // namespace ropd::test
