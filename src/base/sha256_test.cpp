#include "base/sha256.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace ropd {
namespace {

TEST(Sha256, OfPiecesIsThatOfTheWhole) {
  Sha256 digest;
  digest.add("a");
  digest.add("");
  digest.add("bc");
  EXPECT_EQ(digest.hexadecimal(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256().hexadecimal(), sha256(""));
}

}  // namespace
}  // namespace ropd
