// From a student's tokenizer to a teacher's (method.md section 8): which teacher id means the same as a
// student id, and which teacher position follows the same bytes of a response.
//   map(s) = the teacher token of exactly the same string (ordinary tokens by bytes, added tokens by
//            content); EOS maps by meaning (a student EOS -> the teacher's EOS); what has no such token is
//            unmappable and masked from the support.
// With identical tokenizers the map is the identity and align() copies: nothing is re-tokenized.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "records/rollout.h"
#include "text/tokenizer.h"

namespace ropd::text {

// A response as the teacher reads it. Position j of the teacher is the logits that predict teacher_ids[j], as
// position t of the student is the logits that predict its response token t.
struct AlignedResponse {
  std::vector<Token> teacher_ids;  // [teacher response]
  // [student response]; -1 = no teacher position follows the same bytes: masked
  std::vector<int32_t> teacher_position;
  size_t num_masked = 0;
};

// Constant after construction; thread-safe. Holds copies of both tokenizers, which share their data.
class VocabularyMap {
 public:
  // The EOS ids are those a response ends with ("eos_token" of tokenizer_config.json, or the first of
  // generation_config.json). Both must be given unless the tokenizers are identical.
  VocabularyMap(const Tokenizer& student, const Tokenizer& teacher, std::optional<Token> student_eos,
                std::optional<Token> teacher_eos);
  // From two model directories: tokenizer.json and tokenizer_config.json.
  static VocabularyMap load(const Path& student_directory, const Path& teacher_directory);

  // The two tokenizers have the same content: ids mean the same, teacher_id() is the identity for every id.
  bool is_identity() const { return teacher_of_.empty(); }
  // The teacher id that means the same; nothing where unmappable. Ids behind the student's vocabulary
  // (padding rows of a model) are unmappable unless the tokenizers are identical.
  std::optional<Token> teacher_id(Token student_id) const {
    if (is_identity()) return student_id;
    if (student_id < 0 || static_cast<size_t>(student_id) >= teacher_of_.size()) return std::nullopt;
    const Token id = teacher_of_[static_cast<size_t>(student_id)];
    return id < 0 ? std::nullopt : std::optional(id);
  }
  // All student ids without a teacher id, ascending.
  const std::vector<Token>& unmappable() const { return unmappable_; }
  // Share of the student's vocabulary that maps, in [0, 1].
  double coverage() const;
  // Fails with the reason where so little maps that distillation would see almost nothing (coverage below one
  // half).
  void check_usable() const;
  // One line for logs: identical or not, counts, the unmappable tokens by name.
  std::string describe() const;

  // The same response in the teacher's tokens. The student's EOS becomes the teacher's; added tokens of the
  // student are taken over one to one, or read as plain text where the teacher has none; the bytes between
  // them are tokenized afresh by the teacher. Cut characters at the end of a response (not UTF-8) and
  // stretches that NFC changes have no boundary inside. Bytes outside the teacher's alphabet end its reading: no
  // position of it follows the same bytes from there on.
  [[nodiscard]] AlignedResponse align(std::span<const Token> student_response) const;

 private:
  // False, with nothing added, where the teacher has no tokens for the text.
  bool align_text(AlignedResponse& result, std::span<const Token> student_ids) const;
  bool can_spell(std::string_view text) const;

  // constant after construction
  Tokenizer student_, teacher_;
  Token student_eos_ = -1;
  std::vector<Token> teacher_of_;  // [student vocabulary] -1 = unmappable; empty under the identity
  std::vector<Token> unmappable_;
  std::array<bool, 256> teacher_spells_ = {};  // [bytes] whether the teacher has a token for it
};

}  // namespace ropd::text
