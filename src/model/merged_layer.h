// The matrices of one layer with their low-rank changes merged (kernels/low_rank.h), in memory that serves one
// layer after the other: adapted weights are never merged all at once.
#pragma once
#include "model/weights.h"

namespace ropd::model {

// Not shared between threads.
class MergedLayer {
 public:
  // The layer as it is where nothing has to be merged, else a copy whose matrices are, in the type that products
  // of this precision round to; valid until the next call. with_gradient: products' gradients are wanted too.
  const LayerWeights& of(const LayerWeights& layer, Precision precision, bool with_gradient = false);
  // Gives the memory back.
  void clear() { *this = {}; }

 private:
  LayerWeights layer_;
  Buffer values_;  // of all merged matrices
};

}  // namespace ropd::model
