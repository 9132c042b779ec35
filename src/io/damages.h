// For whoever reads everything and tells all that is damaged, instead of ending at the first.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"

namespace ropd::io {

// Adds what `check` fails with to `damages`. True when it does not fail.
template <class Check>
bool finds_whole(std::vector<std::string>& damages, Check&& check) {
  try {
    check();
    return true;
  } catch (const Error& error) {
    damages.emplace_back(error.what());
    return false;
  }
}

}  // namespace ropd::io
