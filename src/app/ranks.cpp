#include "app/ranks.h"

#include <fmt/format.h>

#include <CLI/Error.hpp>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/threads.h"
#include "comm/agreement.h"
#include "comm/mpi_world.h"
#include "comm/placement.h"
#include "train/run_parts.h"

namespace ropd::app {
namespace {

// MPI belongs to the process, so what was joined does too.
struct Ranks {
  RankSettings settings;
  std::unique_ptr<comm::World> world;
  std::optional<comm::Crew> crew;
  bool is_dismissed = false;  // by the leader
};
Ranks& ranks() {
  static Ranks of_the_program;
  return of_the_program;
}

comm::Crew& join() {
  Ranks& own = ranks();
  own.world = comm::join_world({.silence_seconds = own.settings.silence_seconds});
  return own.crew.emplace(*own.world);
}

void settle_in(comm::World& world, bool has_threads) {
  const auto places = comm::exchange_places(world, comm::own_place());
  const auto rank = static_cast<size_t>(world.rank());
  if (!has_threads) set_num_threads(comm::threads_of(places, rank));
  share_memory_with(comm::ranks_beside(places, rank));
  if (rank > 0) {
    if (log_level() > LogLevel::warnings) set_log_level(LogLevel::warnings);
    set_progress_mode(ProgressMode::quiet);
    return;
  }
  for (const std::string& warning : comm::launch_warnings(places)) log_warning(warning);
  if (const std::string warning = comm::launcher_warning(); !warning.empty()) log_warning(warning);
  log_info(world.size(), " ranks, the leader on ", places[0].host, " with ", num_threads(), " threads");
}

}  // namespace

void set_rank_settings(const RankSettings& settings) { ranks().settings = settings; }

comm::Crew& join_crew() {
  comm::Crew& crew = join();
  if (crew.is_alone()) return crew;
  install_stop_handlers();
  comm::take_launchers_end_as_request();
  settle_in(crew.world(), ranks().settings.has_threads);
  return crew;
}

void leader_first(comm::Crew& crew, const std::function<void()>& work) {
  if (const auto exit_code = crew.leader_first(work)) end_assisting(*exit_code);
}

void end_assisting(int exit_code) {
  ranks().is_dismissed = true;
  if (exit_code == 0) throw CLI::Success();
  throw CLI::RuntimeError(exit_code);
}

void assist(comm::Crew& crew) { end_assisting(crew.serve()); }

void require_same_sampling(comm::Crew& crew, const std::string& precision,
                           const std::string& model_fingerprint, const rollout::EngineConfig& config) {
  const auto& sampling = config.sampling;
  comm::Facts facts = train::program_facts();
  facts["model"] = model_fingerprint;
  facts["sampling"] = fmt::format("{} max_tokens {} temperature {} top_p {} top_k {} greedy {} logprobs {}",
                                  precision, config.max_response_tokens, sampling.temperature, sampling.top_p,
                                  sampling.top_k, sampling.greedy, config.with_logprobs);
  comm::require_agreement(crew.world(), facts);
}

void leave_crew(int exit_code) {
  Ranks& own = ranks();
  if (!own.crew) return;
  if (own.crew->leads()) {
    if (!own.crew->is_idle()) own.world->abort(exit_code);
    own.crew->dismiss(exit_code);
  } else if (!own.is_dismissed) {
    own.world->abort(exit_code);
  }
  own.crew.reset();
  comm::leave_world(std::move(own.world));
}

std::string name_of_rank() {
  const Ranks& own = ranks();
  if (!own.crew || own.crew->leads()) return "";
  return "rank " + std::to_string(own.world->rank()) + " on " + own.world->host() + ": ";
}

void require_alone(const std::string& command) {
  if (!comm::is_started_by_launcher()) return;
  comm::Crew& crew = join();
  if (crew.is_alone()) return;
  if (!crew.leads()) assist(crew);
  crew.expect_service();
  fail("ropd ", command, " is one process; start it without mpirun or srun");
}

}  // namespace ropd::app
