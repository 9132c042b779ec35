// The one exception of the program and the one way to throw it.
//   fail(path, ": header claims ", n, " bytes, the file has ", m, " (incomplete download?)")
// Text = the thing, the actual value, what was expected, the likely cause. For what a user, a file, a peer or
// the disk can cause; what only our own bug can cause is an assert.
#pragma once
#include <sstream>
#include <stdexcept>

namespace ropd {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(text.str());
}

}  // namespace ropd
