// Mutable memory of forward passes of one model (its rope table is in here), kept between calls so that it is
// allocated once. Not shared between threads: those that work on sequences of their own each take one of
// `of_threads`.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "kernels/rope.h"
#include "model/batch_part.h"
#include "model/block.h"
#include "model/merged_layer.h"

namespace ropd::model {

// Told before each layer how many of them a pass is through: a long one takes minutes. May be empty.
using OnLayer = std::function<void(size_t layers)>;

struct Workspace {
  BlockTrace trace;
  BlockScratch scratch;
  MergedLayer merged;
  kernels::RopeTable rope;
  Buffer x;  // [T, D]
  std::vector<SharedPrefix> prefixes;
  std::vector<std::unique_ptr<Workspace>> of_threads;
  // A table for positions below `num_positions` at least.
  const kernels::RopeTable& rope_for(const ModelConfig& config, int64_t num_positions);
  void provide_threads(size_t count);
};

}  // namespace ropd::model
