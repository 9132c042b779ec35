#include "text/vocabulary_map.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/error.h"
#include "base/visible_text.h"
#include "text/tokenizer_config.h"
#include "text/unicode.h"

namespace ropd::text {

namespace {

std::optional<Token> eos_of(const Path& directory, const Tokenizer& tokenizer) {
  const auto name = read_tokenizer_config(directory).eos_token;
  if (!name) return std::nullopt;
  const auto id = tokenizer.token_id(*name);
  if (!id)
    fail(directory.string(), ": eos_token \"", *name, "\" of tokenizer_config.json is not in tokenizer.json");
  return id;
}

}  // namespace

VocabularyMap::VocabularyMap(const Tokenizer& student, const Tokenizer& teacher,
                             std::optional<Token> student_eos, std::optional<Token> teacher_eos)
    : student_(student), teacher_(teacher), student_eos_(student_eos.value_or(-1)) {
  if (student.fingerprint() == teacher.fingerprint()) return;
  if (!student_eos || !teacher_eos)
    fail("student and teacher have different tokenizers, and the EOS token of the ",
         student_eos ? "teacher" : "student",
         " is not known (expected \"eos_token\" in its tokenizer_config.json): responses could not end");
  for (size_t value = 0; value < teacher_spells_.size(); ++value) {
    const char byte = static_cast<char>(value);
    teacher_spells_[value] = teacher.token_id({&byte, 1}).has_value();
  }
  teacher_of_.resize(student.vocab_size());
  for (size_t index = 0; index < teacher_of_.size(); ++index) {
    const auto id = static_cast<Token>(index);
    // EOS by meaning: the raw id or string may be something else on the other side ("Assistant", for Qwen3 ->
    // DeepSeek).
    teacher_of_[index] =
        id == *student_eos ? *teacher_eos : teacher.token_id(student.token_bytes(id)).value_or(-1);
    if (teacher_of_[index] < 0) unmappable_.push_back(id);
  }
}

VocabularyMap VocabularyMap::load(const Path& student_directory, const Path& teacher_directory) {
  const Tokenizer student = Tokenizer::load(student_directory), teacher = Tokenizer::load(teacher_directory);
  return VocabularyMap(student, teacher, eos_of(student_directory, student),
                       eos_of(teacher_directory, teacher));
}

double VocabularyMap::coverage() const {
  if (is_identity()) return 1.0;
  return 1.0 - static_cast<double>(unmappable_.size()) / static_cast<double>(teacher_of_.size());
}

void VocabularyMap::check_usable() const {
  constexpr double kLowestCoverage = 0.5;
  if (coverage() < kLowestCoverage)
    fail("only ", static_cast<int>(coverage() * 100), "% of the student's ", teacher_of_.size(),
         " tokens are single tokens of the teacher (expected at least ",
         static_cast<int>(kLowestCoverage * 100),
         "%): the tokenizers are too different for a vocabulary map; choose a teacher of a nearer family");
}

std::string VocabularyMap::describe() const {
  if (is_identity()) return "student and teacher have the same tokenizer";
  std::ostringstream text;
  text << "vocabulary map: " << teacher_of_.size() - unmappable_.size() << " of " << teacher_of_.size()
       << " student tokens map, EOS " << student_eos_ << " -> " << *teacher_id(student_eos_)
       << ", unmappable " << unmappable_.size();
  constexpr size_t kMaxShown = 12;
  for (size_t i = 0; i < unmappable_.size() && i < kMaxShown; ++i)
    text << (i == 0 ? ": " : ", ") << unmappable_[i] << " "
         << visible_text(student_.token_bytes(unmappable_[i]));
  if (unmappable_.size() > kMaxShown) text << ", ...";
  return text.str();
}

bool VocabularyMap::can_spell(std::string_view text) const {
  return std::all_of(text.begin(), text.end(),
                     [&](char byte) { return teacher_spells_[static_cast<uint8_t>(byte)]; });
}

bool VocabularyMap::align_text(AlignedResponse& result, std::span<const Token> student_ids) const {
  std::string bytes;
  std::vector<size_t> begin;  // [student_ids] in bytes
  for (const Token id : student_ids) {
    begin.push_back(bytes.size());
    bytes += student_.token_bytes(id);
  }
  const std::string readable = repair_utf8(bytes);
  if (!can_spell(readable) || !can_spell(normalize_nfc(readable)))
    return false;  // whether it normalises or not
  // Control tokens spelled out by the student stay text for the teacher.
  const OffsetEncoding teacher = teacher_.encode_with_offsets(bytes, /*parse_special=*/false);
  const std::vector<size_t> offsets = offsets_after_nfc(bytes);
  // Unequal lengths: an added token of the teacher kept a stretch from being normalised, so the offsets
  // cannot be trusted.
  const bool is_comparable = offsets.back() == teacher.text.size();
  const auto base = static_cast<int32_t>(result.teacher_ids.size());
  for (const size_t at : begin) {
    const size_t offset = offsets[at];
    const auto found = std::lower_bound(teacher.begin.begin(), teacher.begin.end(), offset);
    const bool is_aligned = at == 0 || (is_comparable && found != teacher.begin.end() && *found == offset);
    const auto index = at == 0 ? 0 : static_cast<int32_t>(found - teacher.begin.begin());
    result.teacher_position.push_back(is_aligned && !teacher.ids.empty() ? base + index : -1);
  }
  result.teacher_ids.insert(result.teacher_ids.end(), teacher.ids.begin(), teacher.ids.end());
  return true;
}

AlignedResponse VocabularyMap::align(std::span<const Token> student_response) const {
  AlignedResponse result;
  if (is_identity()) {
    result.teacher_ids.assign(student_response.begin(), student_response.end());
    for (size_t i = 0; i < student_response.size(); ++i)
      result.teacher_position.push_back(static_cast<int32_t>(i));
    return result;
  }
  const auto is_whole = [&](Token id) { return id == student_eos_ || student_.is_added(id); };
  for (size_t begin = 0; begin < student_response.size();) {
    size_t end = begin;
    while (end < student_response.size() && !is_whole(student_response[end])) ++end;
    if (end > begin && !align_text(result, student_response.subspan(begin, end - begin))) break;
    if (end == student_response.size()) break;
    const Token id = student_response[end];
    if (const auto mapped = teacher_id(id)) {
      result.teacher_position.push_back(static_cast<int32_t>(result.teacher_ids.size()));
      result.teacher_ids.push_back(*mapped);
    } else if (!align_text(result, student_response.subspan(end, 1))) {
      break;
    }
    begin = end + 1;
  }
  result.teacher_position.resize(student_response.size(), -1);  // behind what the teacher cannot read
  result.num_masked =
      static_cast<size_t>(std::count(result.teacher_position.begin(), result.teacher_position.end(), -1));
  return result;
}

}  // namespace ropd::text
