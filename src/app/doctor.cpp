// ropd doctor: what the ranks of a launch have and how fast they talk, before a run depends on it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/commands.h"
#include "app/output.h"
#include "app/ranks.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/threads.h"
#include "comm/placement.h"
#include "comm/probe.h"
#include "train/run_parts.h"

namespace ropd::app {
namespace {

constexpr double kClockWarning = 1;  // seconds; times in files of several machines then mislead

struct RankReport {
  comm::Place place;
  size_t threads = 0;
  comm::Link link;
};

Json to_json(const RankReport& report, size_t rank) {
  return {{"rank", rank},
          {"host", report.place.host},
          {"cores", report.place.cores.size()},
          {"machine_cores", report.place.machine_cores},
          {"threads", report.threads},
          {"instruction_set", report.place.about},
          {"memory_bytes", report.place.memory_bytes},
          {"available_bytes", report.place.available_bytes},
          {"round_trip_seconds", report.link.round_trip_seconds},
          {"bytes_per_second", report.link.bytes_per_second},
          {"clock_offset_seconds", report.link.clock_offset_seconds}};
}

void print_table(const std::vector<RankReport>& reports) {
  std::printf("%-5s %-20s %-9s %-8s %-10s %-20s %-10s %-10s %s\n", "rank", "host", "cores", "threads", "set",
              "memory free / all", "ping", "per second", "clock");
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const auto& [place, threads, link] = reports[rank];
    std::printf("%-5zu %-20s %-9s %-8zu %-10s %-20s %-10s %-10s %s\n", rank, place.host.c_str(),
                fmt::format("{} of {}", place.cores.size(), place.machine_cores).c_str(), threads,
                place.about.c_str(),
                (format_bytes(static_cast<double>(place.available_bytes)) + " / " +
                 format_bytes(static_cast<double>(place.memory_bytes)))
                    .c_str(),
                rank == 0 ? "-" : fmt::format("{:.0f} us", 1e6 * link.round_trip_seconds).c_str(),
                format_bytes(link.bytes_per_second).c_str(),
                rank == 0 ? "a copy in memory" : fmt::format("{:+.3f} s", link.clock_offset_seconds).c_str());
  }
}

void warn(const std::vector<RankReport>& reports) {
  std::vector<comm::Place> places;
  for (const RankReport& report : reports) places.push_back(report.place);
  for (size_t rank = 1; rank < reports.size(); ++rank) {
    if (places[rank].about != places[0].about)
      log_warning("rank ", rank, " on ", places[rank].host, " has the instruction set ", places[rank].about,
                  ", rank 0 has ", places[0].about, ": bits would differ, a run refuses this");
    if (std::abs(reports[rank].link.clock_offset_seconds) > kClockWarning)
      log_warning("the clock of rank ", rank, " on ", places[rank].host, " differs by ",
                  fmt::format("{:.1f} s", reports[rank].link.clock_offset_seconds), " from rank 0's");
  }
}

void examine(bool as_json) {
  comm::Crew& crew = join_crew();
  comm::World& world = crew.world();
  world.begin_activity("doctor");
  const comm::Place own = comm::own_place(train::program_facts()["instruction set"]);
  const auto places = comm::exchange_places(world, own);
  const auto threads =
      comm::gather(world, ByteWriter().put(uint64_t{num_threads()}).bytes(), comm::Tag::state);
  const auto links = comm::probe_links(world);
  if (!crew.leads()) assist(crew);
  crew.expect_service();
  std::vector<RankReport> reports;
  for (size_t rank = 0; rank < places.size(); ++rank)
    reports.push_back({places[rank], ByteReader(threads[rank]).get<uint64_t>(), links[rank]});
  Json list = Json::array();
  for (size_t rank = 0; rank < reports.size(); ++rank) list.push_back(to_json(reports[rank], rank));
  if (as_json)
    print_json(list);
  else
    print_table(reports);
  warn(reports);
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("doctor", "ranks, hosts, cores, memory, and how fast ranks of a launch talk");
  command->footer("Examples:\n  ropd doctor\n  mpirun -n 4 --bind-to none ropd doctor");
  command->callback([command] { examine(wants_json(*command)); });
}

}  // namespace ropd::app
