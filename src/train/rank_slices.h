// Long vectors of which every rank owns a slice: the summed gradient, AdamW's moments, the gradients' means. A
// slice is whole blocks of 65,536 elements (base/block_sum.h), so sums over blocks keep their order whatever
// the number of ranks. All ranks call together; alone, a slice is everything and nothing is sent.
#pragma once
#include <span>
#include <vector>

#include "comm/crew.h"
#include "tensor/buffer.h"
#include "train/state_tensors.h"

namespace ropd::train {

// Bytes that a rank sends for one step, by the formulas of docs/cluster.md: to the owners its gradients of
// shards, to everybody its slice of the new parameters. The largest of all ranks.
uint64_t step_bytes(uint64_t parameters, uint64_t shards, int ranks);

class RankSlices {
 public:
  // Of vectors of `size` elements. The world must outlive it.
  RankSlices(comm::World& world, size_t size);

  comm::World& world() const { return world_; }
  comm::Slice own() const { return of(world_.rank()); }
  comm::Slice of(int rank) const;
  bool leads() const { return world_.rank() == 0; }

  // From each rank's sums over its own blocks the sum over all blocks, in order; the same on every rank.
  double total(const std::vector<double>& block_sums) const;

  // Rank 0's number on every rank.
  double leaders(double value) const;

  // One round of a left fold over shards: ranks 0 .. active - 1 have a shard each, in order, of which
  // `gradient` [size] is this rank's (else empty). Owners add all of them to `sum` [own], or begin with the
  // first.
  void fold(std::span<float> sum, std::span<const float> gradient, int active, bool is_first) const;

  // Every owner's slice of `values` [size] to everybody.
  void share(std::span<float> values) const;
  // Rank 0's `values` [size] to everybody.
  void copy_from_leader(std::span<float> values) const;

  // Vectors [own] of every rank as files of rank 0 (train/state_tensors.h), which calls `save` or `load` with
  // whole vectors; the others answer meanwhile. Their numbers are the same on every rank.
  using Save = std::function<void(std::span<const SavedVector::Read> vectors)>;
  void save(std::span<const std::span<const float>> vectors, const Save& save) const;
  using Load = std::function<void(std::span<const RestoredVector::Write> vectors)>;
  void load(std::span<const std::span<float>> vectors, const Load& load) const;

 private:
  comm::World& world_;
  const size_t size_;

  comm::Slice piece_of(int rank, size_t round, size_t piece_elements) const;
  size_t num_pieces(size_t piece_elements) const;
};

}  // namespace ropd::train
