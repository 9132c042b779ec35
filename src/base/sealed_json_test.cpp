#include "base/sealed_json.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace ropd {
namespace {

const Json kObject = {{"seed", 1}, {"temperature", 0.1}, {"name", "ünï"}};

std::string error_of(const Json& object) {
  try {
    (void)unsealed(object, "file.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SealedJson, ComesBackAfterItWasWrittenAndRead) {
  EXPECT_EQ(unsealed(parse_json(sealed(kObject).dump(2), "x"), "x"), kObject);
  EXPECT_EQ(sealed(sealed(kObject)), sealed(kObject));
}

TEST(SealedJson, AnyOtherValueIsNoticed) {
  for (const auto& [key, value] : kObject.items()) {
    Json changed = sealed(kObject);
    changed[key] = 2;
    EXPECT_THAT(error_of(changed), testing::StartsWith("file.json: its content does not fit")) << key;
    changed.erase(key);
    EXPECT_NE(error_of(changed), "") << key;
  }
  Json more = sealed(kObject);
  more["another"] = nullptr;
  EXPECT_NE(error_of(more), "");
}

TEST(SealedJson, WhatEarlierVersionsWroteHasNoChecksum) {
  EXPECT_EQ(unsealed(kObject, "x"), kObject);
  EXPECT_EQ(unsealed(Json(nullptr), "x"), nullptr);
}

}  // namespace
}  // namespace ropd
