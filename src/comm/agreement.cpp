#include "comm/agreement.h"

#include "base/bytes.h"
#include "base/error.h"

namespace ropd::comm {
namespace {

std::string shown(const Facts& facts, const std::string& what) {
  const auto found = facts.find(what);
  return found == facts.end() ? "nothing" : found->second;
}

void compare(const Facts& own, const Facts& other, int rank, const std::string& host) {
  for (const auto& [what, value] : own)
    if (shown(other, what) != value)
      fail("rank ", rank, " on ", host, " differs from rank 0: ", what, " is ", shown(other, what),
           ", rank 0 has ", value, " (all ranks need the same program, settings, files and instruction set)");
  for (const auto& [what, value] : other)
    if (!own.contains(what))
      fail("rank ", rank, " on ", host, " differs from rank 0: ", what, " is ", value,
           ", rank 0 has nothing");
}

}  // namespace

void require_agreement(World& world, const Facts& facts) {
  ByteWriter writer;
  writer.put(world.host()).put(uint64_t{facts.size()});
  for (const auto& [what, value] : facts) writer.put(what).put(value);
  const auto parts = gather(world, writer.bytes(), Tag::state);
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    ByteReader reader(parts[rank]);
    const auto host = reader.get<std::string>();
    Facts other;
    for (auto left = reader.get<uint64_t>(); left > 0; --left) {
      const auto what = reader.get<std::string>();
      other[what] = reader.get<std::string>();
    }
    compare(facts, other, static_cast<int>(rank), host);
  }
  barrier(world);
}

}  // namespace ropd::comm
