#include "comm/placement.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/bytes.h"
#include "base/memory_info.h"

namespace ropd::comm {
namespace {

std::vector<int> own_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

}  // namespace

Place own_place(std::string about) {
  const MemoryInfo memory = read_memory_info();
  return {.host = host_name(),
          .cores = own_cores(),
          .machine_cores = std::max(1u, std::thread::hardware_concurrency()),
          .memory_bytes = memory.total_bytes,
          .available_bytes = memory.available_bytes,
          .about = std::move(about)};
}

std::vector<Place> exchange_places(World& world, const Place& own) {
  ByteWriter writer;
  writer.put(own.host).put(own.cores).put(own.machine_cores).put(own.memory_bytes);
  writer.put(own.available_bytes).put(own.about);
  ByteWriter all;
  for (const auto& part : gather(world, writer.bytes(), Tag::state))
    all.put(std::span<const std::byte>(part));
  auto bytes = all.take();
  broadcast(world, bytes, Tag::state);
  std::vector<Place> places(static_cast<size_t>(world.size()));
  ByteReader reader(bytes);
  for (Place& place : places) {
    const auto part = reader.get<std::vector<std::byte>>();
    ByteReader of_rank(part);
    of_rank.get(place.host);
    of_rank.get(place.cores);
    of_rank.get(place.machine_cores);
    of_rank.get(place.memory_bytes);
    of_rank.get(place.available_bytes);
    of_rank.get(place.about);
  }
  return places;
}

size_t ranks_beside(const std::vector<Place>& places, size_t rank) {
  return static_cast<size_t>(
      std::ranges::count_if(places, [&](const Place& place) { return place.host == places[rank].host; }));
}

size_t threads_of(const std::vector<Place>& places, size_t rank) {
  const Place& own = places[rank];
  const auto sharing = static_cast<size_t>(std::ranges::count_if(
      places, [&](const Place& place) { return place.host == own.host && place.cores == own.cores; }));
  return std::max<size_t>(own.cores.size() / sharing, 1);
}

std::vector<std::string> launch_warnings(const std::vector<Place>& places) {
  std::vector<std::string> warnings;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const Place& place = places[rank];
    if (place.cores.size() != 1 || place.machine_cores < 2 * ranks_beside(places, rank)) continue;
    warnings.push_back("rank " + std::to_string(rank) + " on " + place.host + " was given one core of " +
                       std::to_string(place.machine_cores) +
                       " (mpirun's default): pass --bind-to none, or --map-by socket --bind-to socket for a "
                       "rank on each socket");
    break;  // the others are the same
  }
  return warnings;
}

}  // namespace ropd::comm
