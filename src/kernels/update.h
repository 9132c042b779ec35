#pragma once

namespace ropd::kernels {

// What becomes of a result that is already there. Chains begin at zero or at the old value.
enum class Update { add, replace };

}  // namespace ropd::kernels
