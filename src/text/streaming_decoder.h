// Text for people while ids arrive one by one: a character is shown when its last byte is there, never half
// of it.
#pragma once
#include <string>
#include <string_view>

#include "records/rollout.h"
#include "text/tokenizer.h"

namespace ropd::text {

// Holds back at most three bytes. Not thread-safe; `tokenizer` must outlive it.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}
  // The text that is certain after this token. All pushes and finish() together give decode() of the ids.
  [[nodiscard]] std::string push(Token id);
  // What is left, with U+FFFD for a cut character.
  [[nodiscard]] std::string finish();

 private:
  // constant after construction
  const Tokenizer& tokenizer_;
  bool skip_special_;
  // state
  std::string pending_;
};

}  // namespace ropd::text
