// Where ranks were put: hosts, cores, memory; and what follows for a rank: how many threads it takes, and which
// share of its machine's memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/world.h"

namespace ropd::comm {

struct Place {
  std::string host;
  std::vector<int> cores;        // that the process may use
  uint64_t machine_cores = 0;    // that there are
  uint64_t memory_bytes = 0;     // of the machine
  uint64_t available_bytes = 0;  // now
  std::string about;             // what else a rank tells of itself
};

// Of this process.
Place own_place(std::string about = {});
// All ranks together: everybody's places on every rank, by rank.
std::vector<Place> exchange_places(World& world, const Place& own);

// Ranks on the same host as this one, itself included.
size_t ranks_beside(const std::vector<Place>& places, size_t rank);
// A rank's share of its cores: all of those that were given to it alone, a part of those that ranks share.
size_t threads_of(const std::vector<Place>& places, size_t rank);
// What a person should change about the launch, a sentence each: ranks pinned to single cores of machines that
// have more.
std::vector<std::string> launch_warnings(const std::vector<Place>& places);

}  // namespace ropd::comm
