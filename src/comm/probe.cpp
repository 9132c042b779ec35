#include "comm/probe.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/bytes.h"
#include "base/stopwatch.h"

namespace ropd::comm {
namespace {

constexpr int kRoundTrips = 21, kLongMessages = 3;

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void answer(World& world, std::vector<std::byte>& place) {
  for (int i = 0; i < kRoundTrips; ++i) {
    (void)world.receive(0, Tag::probe);
    world.send(ByteWriter().put(unix_seconds()).bytes(), 0, Tag::probe);
  }
  for (int i = 0; i < kLongMessages; ++i) {
    const Incoming incoming{place, 0, Tag::slice};
    world.exchange({}, {&incoming, 1});
    world.send({}, 0, Tag::probe);
  }
}

Link ask(World& world, int rank, const std::vector<std::byte>& message) {
  std::vector<double> seconds, offsets, long_seconds;
  for (int i = 0; i < kRoundTrips; ++i) {
    const Stopwatch watch;
    const double before = unix_seconds();
    world.send({}, rank, Tag::probe);
    const Message reply = world.receive(rank, Tag::probe);
    seconds.push_back(watch.seconds());
    offsets.push_back(ByteReader(reply.bytes).get<double>() - (before + unix_seconds()) / 2);
  }
  for (int i = 0; i < kLongMessages; ++i) {
    const Stopwatch watch;
    const Outgoing outgoing{message, rank, Tag::slice};
    world.exchange({&outgoing, 1}, {});
    (void)world.receive(rank, Tag::probe);
    long_seconds.push_back(watch.seconds());
  }
  const double round_trip = median(seconds);
  return {.round_trip_seconds = round_trip,
          .bytes_per_second = static_cast<double>(message.size()) / std::max(median(long_seconds), 1e-9),
          .clock_offset_seconds = median(offsets)};
}

Link copy_in_memory(const std::vector<std::byte>& message, std::vector<std::byte>& place) {
  std::vector<double> seconds;
  for (int i = 0; i < kLongMessages; ++i) {
    const Stopwatch watch;
    std::memcpy(place.data(), message.data(), message.size());
    seconds.push_back(watch.seconds());
  }
  return {.bytes_per_second = static_cast<double>(message.size()) / std::max(median(seconds), 1e-9)};
}

}  // namespace

std::vector<Link> probe_links(World& world, size_t message_bytes) {
  std::vector<std::byte> place(message_bytes);
  if (world.rank() > 0) {
    answer(world, place);
    return {};
  }
  const std::vector<std::byte> message(message_bytes, std::byte{1});
  std::vector<Link> links = {copy_in_memory(message, place)};
  for (int rank = 1; rank < world.size(); ++rank) links.push_back(ask(world, rank, message));
  return links;
}

}  // namespace ropd::comm
