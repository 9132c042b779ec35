// JSON objects that notice a change: "checksum" holds the SHA-256 of all their other fields. Against accidents:
// whoever changes a field on purpose can remove the checksum.
#pragma once
#include <string>

#include "base/json.h"

namespace ropd {

[[nodiscard]] Json sealed(Json object);

// Without the checksum. Fails, naming `where`, when it does not fit; objects of earlier versions have none.
[[nodiscard]] Json unsealed(Json object, const std::string& where);

}  // namespace ropd
