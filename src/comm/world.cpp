#include "comm/world.h"

#include <unistd.h>

#include <cassert>
#include <cstdlib>
#include <utility>

#include "base/error.h"

namespace ropd::comm {

std::string_view tag_name(Tag tag) {
  switch (tag) {
    case Tag::call:
      return "calls";
    case Tag::lot:
      return "lots of requests";
    case Tag::result:
      return "results";
    case Tag::early_lot:
      return "responses to score";
    case Tag::early_result:
      return "early scores";
    case Tag::slice:
      return "slices";
    case Tag::sums:
      return "sums";
    case Tag::state:
      return "state";
    case Tag::probe:
      return "probes";
  }
  return "messages";
}

void World::begin_activity(std::string activity) {
  const std::lock_guard lock(activity_mutex_);
  activity_ = std::move(activity);
}

std::string World::activity() const {
  const std::lock_guard lock(activity_mutex_);
  return activity_;
}

std::string host_name() {
  char name[256] = "unknown host";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string SoloWorld::host() const { return host_name(); }

void SoloWorld::exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) {
  if (!outgoing.empty() || !incoming.empty()) fail("a world of one exchanges nothing");
}
void SoloWorld::send(std::span<const std::byte>, int, Tag) { fail("a world of one sends nothing"); }
Message SoloWorld::receive(std::optional<int>, Tag, Waiting) { fail("a world of one receives nothing"); }
std::optional<Message> SoloWorld::try_receive(std::optional<int>, Tag) { return std::nullopt; }
void SoloWorld::abort(int exit_code) { std::_Exit(exit_code); }

void broadcast(World& world, std::vector<std::byte>& bytes, Tag tag) {
  if (world.rank() > 0) {
    bytes = world.receive(0, tag).bytes;
    return;
  }
  for (int rank = 1; rank < world.size(); ++rank) world.send(bytes, rank, tag);
}

std::vector<std::vector<std::byte>> gather(World& world, std::span<const std::byte> bytes, Tag tag) {
  if (world.rank() > 0) {
    world.send(bytes, 0, tag);
    return {};
  }
  std::vector<std::vector<std::byte>> parts = {{bytes.begin(), bytes.end()}};
  for (int rank = 1; rank < world.size(); ++rank) parts.push_back(world.receive(rank, tag).bytes);
  return parts;
}

std::vector<std::byte> scatter(World& world, std::vector<std::vector<std::byte>> parts, Tag tag) {
  if (world.rank() > 0) return world.receive(0, tag).bytes;
  assert(parts.size() == static_cast<size_t>(world.size()));
  for (int rank = 1; rank < world.size(); ++rank) world.send(parts[static_cast<size_t>(rank)], rank, tag);
  return std::move(parts[0]);
}

void barrier(World& world) {
  gather(world, {}, Tag::probe);
  std::vector<std::byte> nothing;
  broadcast(world, nothing, Tag::probe);
}

}  // namespace ropd::comm
