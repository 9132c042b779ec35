#include "base/sealed_json.h"

#include "base/error.h"
#include "base/file.h"

namespace ropd {
namespace {

constexpr const char* kChecksum = "checksum";

std::string checksum_of(const Json& object) {
  return sha256(object.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

Json sealed(Json object) {
  object.erase(kChecksum);
  object[kChecksum] = checksum_of(object);
  return object;
}

Json unsealed(Json object, const std::string& where) {
  if (!object.is_object() || !object.contains(kChecksum)) return object;
  const Json checksum = object[kChecksum];
  object.erase(kChecksum);
  if (checksum != checksum_of(object))
    fail(where, ": its content does not fit its checksum (edited, or damaged on the disk)");
  return object;
}

}  // namespace ropd
