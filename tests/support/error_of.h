// The message that an action ends with.
#pragma once
#include <stdexcept>
#include <string>

namespace ropd::test {

// What() of the ropd::Error an action ends with; "no error" when it does not.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace ropd::test
