// Ranks that are processes started by mpirun or srun, on one machine or several. MPI is the transport: standard
// calls of point-to-point messages, polled with short sleeps between; a program built without MPI knows only
// the world of one.
//
// Every rank and rank 0 send each other a pulse; a rank that was not heard of for `silence_seconds` (dead,
// stopped, cut off) ends the run, with a line that names it. The pulse also carries stop requests (base/stop.h):
// a signal that reaches one rank reaches all.
#pragma once
#include <memory>
#include <string>

#include "comm/world.h"

namespace ropd::comm {

struct MpiSettings {
  double silence_seconds = 120;
};

// Whether this process was started as one of several: by the variables of the launcher, the only environment
// that the program reads.
bool is_started_by_launcher();

// What a person should know of how this launcher ends its ranks; empty: nothing.
std::string launcher_warning();

// Open MPI's mpirun, interrupted or terminated, sends its ranks SIGCONT at once, SIGTERM odls_base_sigkill_timeout
// seconds later and SIGKILL as much later again: from here on the first of the three is a stop request
// (base/stop.h), if it comes from the launcher.
void take_launchers_end_as_request();

// The world that the launcher made, otherwise one of one. Once in a process. Fails when there is a launcher, but
// no MPI in this program. What it returns must be left with leave_world() or aborted.
std::unique_ptr<World> join_world(const MpiSettings& settings = {});
// All ranks, together, when nobody has anything left to say.
void leave_world(std::unique_ptr<World> world);

}  // namespace ropd::comm
