// What becomes of a result that is already there.
#pragma once

namespace ropd::kernels {

// Chains begin at the old value or at zero.
enum class Update { add, replace };

}  // namespace ropd::kernels
