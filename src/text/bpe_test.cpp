#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace ropd::text {
namespace {

using testing::ElementsAre;

// Letters a..h, then random merges of earlier tokens.
TokenizerFile random_file(uint32_t seed, size_t num_merges) {
  TokenizerFile file;
  for (char c = 'a'; c <= 'h'; ++c) file.tokens.emplace_back(1, c);
  for (uint32_t i = 0; file.merges.size() < num_merges && i < 10 * num_merges; ++i) {
    const auto bits = random_bits(seed, Purpose::test, {.key = 11, .row = i});
    const auto left = static_cast<Token>(bits[0] % file.tokens.size());
    const auto right = static_cast<Token>(bits[1] % file.tokens.size());
    const std::string joined =
        file.tokens[static_cast<size_t>(left)] + file.tokens[static_cast<size_t>(right)];
    const auto found = std::find(file.tokens.begin(), file.tokens.end(), joined);
    if (joined.size() > 12) continue;
    const auto result = static_cast<Token>(found - file.tokens.begin());
    if (found == file.tokens.end()) file.tokens.push_back(joined);
    file.merges.push_back({left, right, result});
  }
  file.is_byte_level.assign(file.tokens.size(), 1);
  return file;
}

// The definition: apply the earliest merge that occurs, at its leftmost place, until none occurs.
std::vector<Token> naive(const TokenizerFile& file, std::string_view piece) {
  std::vector<Token> ids;
  for (const char c : piece) ids.push_back(c - 'a');
  while (true) {
    size_t best_rank = file.merges.size(), best = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      for (size_t rank = file.merges.size(); rank-- > 0;)  // of a pair listed twice the last counts
        if (file.merges[rank].left == ids[i] && file.merges[rank].right == ids[i + 1]) {
          if (rank < best_rank) best_rank = rank, best = i;
          break;
        }
    if (best_rank == file.merges.size()) return ids;
    ids[best] = file.merges[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<Token> encode(const Bpe& bpe, std::string_view piece) {
  BpeScratch scratch;
  std::vector<Token> ids;
  bpe.encode(ids, scratch, piece);
  return ids;
}

TEST(Bpe, EqualsTheDefinitionOnRandomVocabulariesAndPieces) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    TokenizerFile file = random_file(seed, 40);
    // Two merges of one result are the subject of the next test.
    std::vector<Merge> unique;
    for (const Merge& merge : file.merges)
      if (std::none_of(unique.begin(), unique.end(),
                       [&](const Merge& m) { return m.result == merge.result; }))
        unique.push_back(merge);
    file.merges = unique;
    const Bpe bpe(file);
    for (uint32_t round = 0; round < 60; ++round) {
      std::string piece;
      const uint32_t length = 1 + random_bits(seed, Purpose::test, {.key = 12, .row = round})[0] % 150;
      for (uint32_t i = 0; i < length; ++i)
        piece.push_back(static_cast<char>(
            'a' + random_bits(seed, Purpose::test, {.key = 13, .row = round, .column = i})[0] % 8));
      ASSERT_EQ(encode(bpe, piece), naive(file, piece)) << piece;
    }
  }
}

TEST(Bpe, BytesAreKeptWhateverTheMerges) {
  for (uint32_t seed = 100; seed < 120; ++seed) {
    const Bpe bpe(random_file(seed, 60));  // several merges may share a result
    const std::string piece = "abcdefghhgfedcbaabababcdcdcdefefghghhhaabbccdd";
    std::string joined;
    for (const Token id : encode(bpe, piece)) joined += bpe.bytes_of(id);
    EXPECT_EQ(joined, piece);
  }
}

TEST(Bpe, ATokenThatMergesDoNotReachIsNotUsed) {
  TokenizerFile file;
  file.tokens = {"a", "b", "ab"};
  file.is_byte_level = {1, 1, 1};
  EXPECT_THAT(encode(Bpe(file), "ab"), ElementsAre(0, 1));
  file.ignores_merges = true;
  EXPECT_THAT(encode(Bpe(file), "ab"), ElementsAre(2));
}

TEST(Bpe, AByteWithoutATokenIsUnknownOrRefused) {
  TokenizerFile file;
  file.tokens = {"a", "?"};
  file.is_byte_level = {1, 1};
  EXPECT_THROW(encode(Bpe(file), "axx"), Error);
  file.unknown = 1;
  EXPECT_THAT(encode(Bpe(file), "axxa"), ElementsAre(0, 1, 1, 0));
  file.fuses_unknown = true;
  EXPECT_THAT(encode(Bpe(file), "axxa"), ElementsAre(0, 1, 0));
}

TEST(Bpe, AMegabyteOfOnePieceIsEncoded) {
  TokenizerFile file;
  file.tokens = {"a", "aa", "aaaa"};
  file.is_byte_level = {1, 1, 1};
  file.merges = {{0, 0, 1}, {1, 1, 2}};
  const std::string piece(1'000'001, 'a');
  const auto ids = encode(Bpe(file), piece);
  EXPECT_EQ(ids.size(), 250'001u);
  EXPECT_EQ(ids.back(), 0);
}

}  // namespace
}  // namespace ropd::text
