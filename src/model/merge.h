// A base model and its adapter as one model: the tensors of the base, adapted matrices merged as everywhere
// (kernels/low_rank.h) and rounded to the type they are stored in.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "io/model_directory.h"
#include "io/save_model.h"

namespace ropd::model {

// In `dtype`, or each in the type that the base stores it in. One matrix is made at a time, when it is saved.
std::vector<io::TensorToSave> merged_tensors(std::shared_ptr<const io::ModelDirectory> directory,
                                             std::optional<DType> dtype = {});

}  // namespace ropd::model
