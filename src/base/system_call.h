// What every caller of the system needs: a call that a signal interrupted is made again, an error number is said in
// words.
#pragma once
#include <cerrno>
#include <string>
#include <system_error>

namespace ropd {

// What `call` returns; a call that a signal interrupted is made again.
template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

inline std::string system_reason(int error_number) { return std::generic_category().message(error_number); }

}  // namespace ropd
