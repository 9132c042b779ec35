#include "train/rank_slices.h"

#include <algorithm>
#include <cassert>

#include "base/block_sum.h"
#include "base/bytes.h"
#include "base/parallel.h"

namespace ropd::train {
namespace {

using comm::Slice;
using comm::Tag;

constexpr size_t kPiece = size_t{1} << 20;       // elements received at a time from each rank
constexpr size_t kLargePiece = size_t{1} << 24;  // where what is received lies in its place at once

// sum += part, or = part.
void add(std::span<float> sum, std::span<const float> part, bool is_first) {
  assert(sum.size() == part.size());
  parallel_chunks(static_cast<int64_t>(sum.size()), 16384, 2 * static_cast<int64_t>(sum.size()),
                  [&](int64_t begin, int64_t end) {
                    float* to = sum.data();
                    const float* from = part.data();
                    if (is_first)
                      std::copy(from + begin, from + end, to + begin);
                    else
                      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
                  });
}

// What rank 0 asks for or gives while a checkpoint is written or read; vector kEnd: it is done.
struct Part {
  static constexpr uint64_t kEnd = UINT64_MAX;
  uint64_t vector = kEnd, offset = 0, size = 0;  // of the whole vector
};

void send_part(comm::World& world, const Part& part, int rank) {
  ByteWriter writer;
  writer.put(part.vector).put(part.offset).put(part.size);
  world.send(writer.bytes(), rank, Tag::state);
}

Part receive_part(comm::World& world) {
  const comm::Message message = world.receive(0, Tag::state);
  ByteReader reader(message.bytes);
  Part part;
  reader.get(part.vector);
  reader.get(part.offset);
  reader.get(part.size);
  return part;
}

void send_to(comm::World& world, std::span<const float> values, int rank) {
  const comm::Outgoing outgoing{std::as_bytes(values), rank, Tag::slice};
  world.exchange({&outgoing, 1}, {});
}

void receive_from(comm::World& world, std::span<float> values, int rank) {
  const comm::Incoming incoming{std::as_writable_bytes(values), rank, Tag::slice};
  world.exchange({}, {&incoming, 1});
}

}  // namespace

uint64_t step_bytes(uint64_t parameters, uint64_t shards, int ranks) {
  const auto count = static_cast<uint64_t>(ranks);
  const uint64_t all_but_own = sizeof(float) * (parameters - parameters / count);
  const uint64_t rounds = (shards + count - 1) / count;  // of rank 0, which has the most shards
  return rounds * all_but_own + sizeof(float) * (parameters / count) * (count - 1);
}

RankSlices::RankSlices(comm::World& world, size_t size) : world_(world), size_(size) {}

Slice RankSlices::of(int rank) const { return comm::slice_of(size_, kSumBlock, rank, world_.size()); }

// Slices are passed on in pieces, everybody's first ones, then everybody's second ones, ...
Slice RankSlices::piece_of(int rank, size_t round, size_t piece_elements) const {
  const Slice slice = of(rank);
  return {std::min(slice.end, slice.begin + round * piece_elements),
          std::min(slice.end, slice.begin + (round + 1) * piece_elements)};
}

size_t RankSlices::num_pieces(size_t piece_elements) const {
  size_t most = 0;
  for (int rank = 0; rank < world_.size(); ++rank) most = std::max(most, of(rank).size());
  return (most + piece_elements - 1) / piece_elements;
}

double RankSlices::total(const std::vector<double>& block_sums) const {
  std::vector<double> all;
  for (const auto& part : comm::gather(world_, std::as_bytes(std::span(block_sums)), Tag::sums)) {
    const auto* sums = reinterpret_cast<const double*>(part.data());
    all.insert(all.end(), sums, sums + part.size() / sizeof(double));
  }
  return leaders(sum_in_order(all));
}

double RankSlices::leaders(double value) const {
  auto bytes = ByteWriter().put(value).take();
  comm::broadcast(world_, bytes, Tag::sums);
  return ByteReader(bytes).get<double>();
}

void RankSlices::fold(std::span<float> sum, std::span<const float> gradient, int active,
                      bool is_first) const {
  assert(sum.size() == own().size() && (gradient.empty() || gradient.size() == size_));
  const int rank = world_.rank(), ranks = world_.size();
  const bool has_shard = rank < active;
  Buffer received(static_cast<size_t>(ranks) * std::min(kPiece, own().size()));
  for (size_t round = 0; round < num_pieces(kPiece); ++round) {
    const Slice own_piece = piece_of(rank, round, kPiece);
    std::vector<comm::Outgoing> outgoing;
    std::vector<comm::Incoming> incoming;
    const auto place = [&](int from) {
      return received.span().subspan(static_cast<size_t>(from) * std::min(kPiece, own().size()),
                                     own_piece.size());
    };
    for (int other = 0; other < ranks; ++other) {
      if (other == rank) continue;
      const Slice piece = piece_of(other, round, kPiece);
      if (has_shard && piece.size() > 0)
        outgoing.push_back({std::as_bytes(gradient.subspan(piece.begin, piece.size())), other, Tag::slice});
      if (other < active && own_piece.size() > 0)
        incoming.push_back({std::as_writable_bytes(place(other)), other, Tag::slice});
    }
    world_.exchange(outgoing, incoming);
    if (own_piece.size() == 0) continue;
    const auto part = sum.subspan(own_piece.begin - own().begin, own_piece.size());
    for (int from = 0; from < active; ++from)
      add(part, from == rank ? gradient.subspan(own_piece.begin, own_piece.size()) : place(from),
          is_first && from == 0);
  }
}

void RankSlices::share(std::span<float> values) const {
  assert(values.size() == size_);
  for (size_t round = 0; round < num_pieces(kLargePiece); ++round) {
    std::vector<comm::Outgoing> outgoing;
    std::vector<comm::Incoming> incoming;
    const auto piece_values = [&](int rank) {
      const Slice piece = piece_of(rank, round, kLargePiece);
      return values.subspan(piece.begin, piece.size());
    };
    const std::span<float> own_piece = piece_values(world_.rank());
    for (int other = 0; other < world_.size(); ++other) {
      if (other == world_.rank()) continue;
      if (!own_piece.empty()) outgoing.push_back({std::as_bytes(own_piece), other, Tag::slice});
      if (!piece_values(other).empty())
        incoming.push_back({std::as_writable_bytes(piece_values(other)), other, Tag::slice});
    }
    world_.exchange(outgoing, incoming);
  }
}

void RankSlices::copy_from_leader(std::span<float> values) const {
  for (size_t begin = 0; begin < values.size(); begin += kLargePiece) {
    const auto piece = values.subspan(begin, std::min(kLargePiece, values.size() - begin));
    if (!leads())
      receive_from(world_, piece, 0);
    else
      for (int rank = 1; rank < world_.size(); ++rank) send_to(world_, piece, rank);
  }
}

void RankSlices::save(std::span<const std::span<const float>> vectors, const Save& save) const {
  if (!leads()) {
    for (Part part = receive_part(world_); part.vector != Part::kEnd; part = receive_part(world_))
      send_to(world_, vectors[part.vector].subspan(part.offset - own().begin, part.size), 0);
    return;
  }
  Buffer received(world_.size() > 1 ? kPiece : 0);
  std::vector<SavedVector::Read> reads;
  for (uint64_t vector = 0; vector < vectors.size(); ++vector)
    reads.push_back([&, vector](size_t offset, size_t size, const SavedVector::Sink& sink) {
      for (int rank = 0; rank < world_.size(); ++rank) {
        const Slice slice = of(rank);
        const size_t end = std::min(slice.end, offset + size);
        for (size_t begin = std::max(slice.begin, offset), next; begin < end; begin = next) {
          next = rank == 0 ? end : std::min(end, begin + kPiece);
          if (rank == 0) {
            sink(vectors[vector].subspan(begin, next - begin));
            continue;
          }
          send_part(world_, {vector, begin, next - begin}, rank);
          const auto piece = received.span().first(next - begin);
          receive_from(world_, piece, rank);
          sink(piece);
        }
      }
    });
  save(reads);
  for (int rank = 1; rank < world_.size(); ++rank) send_part(world_, {}, rank);
}

void RankSlices::load(std::span<const std::span<float>> vectors, const Load& load) const {
  if (!leads()) {
    for (Part part = receive_part(world_); part.vector != Part::kEnd; part = receive_part(world_))
      receive_from(world_, vectors[part.vector].subspan(part.offset - own().begin, part.size), 0);
    return;
  }
  std::vector<RestoredVector::Write> writes;
  for (uint64_t vector = 0; vector < vectors.size(); ++vector)
    writes.push_back([&, vector](size_t offset, std::span<const float> values) {
      for (int rank = 0; rank < world_.size(); ++rank) {
        const Slice slice = of(rank);
        const size_t end = std::min(slice.end, offset + values.size());
        for (size_t begin = std::max(slice.begin, offset), next; begin < end; begin = next) {
          next = std::min(end, begin + kLargePiece);
          const auto piece = values.subspan(begin - offset, next - begin);
          if (rank == 0) {
            std::copy(piece.begin(), piece.end(), vectors[vector].subspan(begin, piece.size()).begin());
            continue;
          }
          send_part(world_, {vector, begin, piece.size()}, rank);
          send_to(world_, piece, rank);
        }
      }
    });
  load(writes);
  for (int rank = 1; rank < world_.size(); ++rank) send_part(world_, {}, rank);
}

}  // namespace ropd::train
