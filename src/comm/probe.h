// How fast rank 0 and each other rank talk, and whether their clocks agree: measured with a few messages.
#pragma once
#include <vector>

#include "comm/world.h"

namespace ropd::comm {

struct Link {
  double round_trip_seconds = 0;    // of an empty message, the median
  double bytes_per_second = 0;      // of a long one, one way
  double clock_offset_seconds = 0;  // the other's clock minus rank 0's
};

// All ranks together. On rank 0, by rank; of itself a copy in memory stands for the long message. Empty
// elsewhere.
std::vector<Link> probe_links(World& world, size_t message_bytes = size_t{32} << 20);

}  // namespace ropd::comm
