// Waiting for whoever is at the other end of a pipe, a terminal or a device, asleep and not for ever: a request to
// stop (base/stop.h) ends it. A blocking read or write would sleep through the request, which a signal handler only
// notes.
#pragma once
#include <string>

#include "base/error.h"

namespace ropd {

// Ends the program as one that was stopped, not as one that failed (app/main.cpp).
class Stopped : public Error {
 public:
  using Error::Error;
};

// Until there is something to read, or the other end is closed. `name` is said in errors.
void wait_for_input(int descriptor, const std::string& name);

// Until something can be written. What can be written at once still is, whatever was requested.
void wait_for_room(int descriptor, const std::string& name);

}  // namespace ropd
