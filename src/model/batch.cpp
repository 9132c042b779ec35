#include "model/batch.h"

namespace ropd::model {

void PackedBatch::append(std::span<const Token> first, std::span<const Token> second) {
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.insert(tokens.end(), second.begin(), second.end());
  for (size_t i = 0; i < first.size() + second.size(); ++i) positions.push_back(static_cast<int32_t>(i));
  sequence_begins.push_back(num_tokens());
}

}  // namespace ropd::model
