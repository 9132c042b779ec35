// The processes that a launcher (mpirun, srun) started this program as; without one, this process alone. A
// command that can be spread over ranks joins before it loads anything:
//   comm::Crew& crew = join_crew();
//   ... what every rank needs ...
//   if (!crew.leads()) assist(crew);   // does not return
//   crew.expect_service();
//   ... the command as one process runs it
#pragma once
#include <functional>
#include <string>

#include "comm/crew.h"
#include "rollout/engine.h"

namespace ropd::app {

// Once a process, from the main thread. Gives every rank its share of the machine's cores (unless --threads did)
// and memory, has the others speak in warnings only, and makes signals stop requests.
comm::Crew& join_crew();

// What may fail for everybody alike (arguments, missing files): the leader does it first, and where it fails its
// line is the only one. The others do it too, or end with the leader's exit code.
void leader_first(comm::Crew& crew, const std::function<void()>& work);

// Serves the leader until it dismisses everybody, then ends the command with the leader's exit code.
[[noreturn]] void assist(comm::Crew& crew);
[[noreturn]] void end_assisting(int exit_code);

// Fails where a rank has another program, instruction set, model or setting of sampling than the leader.
void require_same_sampling(comm::Crew& crew, const std::string& precision,
                           const std::string& model_fingerprint, const rollout::EngineConfig& config);

// For main, at the end, with the exit code of the command: everybody leaves together, or, where this rank failed
// while others were at work, all are ended.
void leave_crew(int exit_code);

// "rank 2 on node7: ", for the line that says what ended this process; nothing for the leader or alone.
std::string name_of_rank();

// Refuses several ranks for a command that is one process, in one line of the leader's. Such a command does not
// join.
void require_alone(const std::string& command);

// --threads and --rank-timeout of the program.
struct RankSettings {
  bool has_threads = false;
  double silence_seconds = 120;
};
void set_rank_settings(const RankSettings& settings);

}  // namespace ropd::app
