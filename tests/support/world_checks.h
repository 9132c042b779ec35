// What every world must do, whatever its transport: comm_test asks it of worlds of threads, and of MPI by
// starting itself under mpirun.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/agreement.h"
#include "comm/crew.h"
#include "comm/lots.h"

namespace ropd::test {

inline void require(bool is_so, const std::string& what) {
  if (!is_so) fail("not so: ", what);
}

inline std::vector<std::byte> filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

// Every rank to every other at once, small and larger than any transport's buffers.
inline void check_exchange(comm::World& world) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{3 << 20}}) {
    const auto own = filled(size, world.rank() + 1);
    std::vector<std::vector<std::byte>> received(static_cast<size_t>(world.size()));
    std::vector<comm::Outgoing> outgoing;
    std::vector<comm::Incoming> incoming;
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank()) continue;
      auto& place = received[static_cast<size_t>(rank)];
      place.resize(size);
      outgoing.push_back({own, rank, comm::Tag::slice});
      incoming.push_back({place, rank, comm::Tag::slice});
    }
    world.exchange(outgoing, incoming);
    for (const comm::Incoming& in : incoming)
      require(std::ranges::equal(in.bytes, filled(size, in.from + 1)),
              "bytes of each rank arrive at every other");
  }
}

// Messages with one tag keep their order; another tag may overtake. Nobody receives before all have sent.
inline void check_order(comm::World& world) {
  if (world.size() == 1) return;
  const int next = (world.rank() + 1) % world.size(), last = (world.rank() + world.size() - 1) % world.size();
  constexpr size_t kStep = 20'000;  // up to more than any transport keeps for a receiver
  for (int i = 0; i < 20; ++i) world.send(filled(kStep * static_cast<size_t>(i), i), next, comm::Tag::result);
  world.send(filled(7, 99), next, comm::Tag::state);
  require(world.receive(last, comm::Tag::state).bytes == filled(7, 99), "another tag overtakes");
  for (int i = 0; i < 20; ++i) {
    const comm::Message message = world.receive(std::nullopt, comm::Tag::result);
    require(message.from == last && message.bytes == filled(kStep * static_cast<size_t>(i), i),
            "order of one tag");
  }
  require(!world.try_receive(last, comm::Tag::result), "nothing is left");
}

inline void check_collectives(comm::World& world) {
  auto bytes = world.rank() == 0 ? filled(5, 42) : std::vector<std::byte>();
  comm::broadcast(world, bytes, comm::Tag::state);
  require(bytes == filled(5, 42), "broadcast");
  const auto parts =
      comm::gather(world, filled(static_cast<size_t>(world.rank()), world.rank()), comm::Tag::state);
  require(parts.size() == (world.rank() == 0 ? static_cast<size_t>(world.size()) : 0), "gather's size");
  for (size_t rank = 0; rank < parts.size(); ++rank)
    require(parts[rank] == filled(rank, static_cast<int>(rank)), "gather");
  std::vector<std::vector<std::byte>> shares;
  for (int rank = 0; world.rank() == 0 && rank < world.size(); ++rank) shares.push_back(filled(2, 10 + rank));
  require(comm::scatter(world, shares, comm::Tag::state) == filled(2, 10 + world.rank()), "scatter");
  comm::barrier(world);
}

// Every piece is done once, by whomever; the leader calls twice.
inline void check_lots(comm::World& world) {
  comm::Crew crew(world);
  const size_t duty = crew.enlist([&](ByteReader& call) {
    require(call.get<std::string>() == "hello", "a call's message");
    comm::Taker taker(world);
    while (const auto lot = taker.take({.most = 5}, /*may_wait=*/true))
      for (size_t piece = lot->begin; piece < lot->end; ++piece)
        taker.send_result(piece, ByteWriter().put(uint64_t{piece * piece}));
    taker.finish(ByteWriter().put(world.rank()));
  });
  if (!crew.leads()) {
    require(crew.serve() == 3, "the exit code of a dismissal");
    return;
  }
  for (int round = 0; round < 2; ++round) {
    const auto call = crew.call(duty, "step 1, squares", ByteWriter().put(std::string("hello")).bytes());
    std::vector<uint64_t> squares(100);
    int ended = 0;
    comm::Dealer dealer(
        world, squares.size(),
        {.on_result = [&](size_t piece, ByteReader& result) { squares[piece] += result.get<uint64_t>(); },
         .on_end = [&](ByteReader&) { ++ended; }});
    for (auto lot = dealer.take({.most = 3}); !lot.empty(); lot = dealer.take({.most = 3}))
      for (size_t piece = lot.begin; piece < lot.end; ++piece) {
        const std::lock_guard lock(dealer.mutex());
        squares[piece] += piece * piece;
      }
    dealer.finish();
    require(ended == world.size() - 1, "everybody ends");
    for (size_t i = 0; i < squares.size(); ++i) require(squares[i] == i * i, "each piece is done once");
  }
  require(crew.is_idle(), "a call that ended leaves nobody at work");
  crew.dismiss(3);
}

inline void check_agreement(comm::World& world) {
  comm::require_agreement(world, {{"program", "1.0"}, {"student files", "abc"}});
}

inline void check_world(comm::World& world) {
  check_exchange(world);
  check_order(world);
  check_collectives(world);
  check_agreement(world);
  check_lots(world);
  comm::barrier(world);
}

}  // namespace ropd::test
