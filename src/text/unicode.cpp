#include "text/unicode.h"

#include <simdjson.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "base/error.h"

namespace ropd::text {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

uint8_t byte_at(std::string_view text, size_t index) { return static_cast<uint8_t>(text[index]); }

struct Sequence {
  size_t num_bytes = 0;
  bool is_valid = false;
};

// The character at text[index], or the longest prefix of a character that is broken there (at least one
// byte).
Sequence sequence_at(std::string_view text, size_t index) {
  const uint8_t lead = byte_at(text, index);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
  uint8_t low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  size_t used = 1;
  while (used < length && index + used < text.size()) {
    const uint8_t next = byte_at(text, index + used);
    if (next < low || next > high) break;
    low = 0x80;
    high = 0xBF;
    ++used;
  }
  return {used, used == length};
}

CharClass class_of_character(char32_t code_point, utf8proc_propval_t category) {
  if (code_point == '\r' || code_point == '\n') return CharClass::newline;
  if (is_white_space(code_point)) return CharClass::space;
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::number;
    default:
      return CharClass::other;
  }
}

// The tokenizers library normalises by Unicode 9. What later versions made a combining mark is a plain
// character to it, and ids must be its ids; found by comparing every mark (./run peers). U+11930 is the
// second half of U+11938.
constexpr struct {
  char32_t first, last;
} kMarksAfterUnicode9[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},
    {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};
constexpr char32_t kComposedAfterUnicode9 = 0x11938;

bool is_mark_after_unicode9(char32_t code_point) {
  const auto after =
      std::upper_bound(std::begin(kMarksAfterUnicode9), std::end(kMarksAfterUnicode9), code_point,
                       [](char32_t point, const auto& range) { return point < range.first; });
  return after != std::begin(kMarksAfterUnicode9) && code_point <= std::prev(after)->last;
}

// Canonical decomposition of one code point; returns the number of code points written.
constexpr size_t kMaxDecomposition = 32;
using Decomposition = std::array<utf8proc_int32_t, kMaxDecomposition>;

size_t decompose(Decomposition& result, char32_t code_point) {
  if (code_point == kComposedAfterUnicode9) {
    result[0] = static_cast<utf8proc_int32_t>(code_point);
    return 1;
  }
  int boundary_state = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), result.data(), result.size(),
                              static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE), &boundary_state);
  assert(count > 0 && static_cast<size_t>(count) <= result.size());
  return static_cast<size_t>(count);
}

int combining_class(char32_t code_point) {
  if (is_mark_after_unicode9(code_point)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point))->combining_class;
}

// Appends NFC of [begin, end) to `result`. Sorting by std::stable_sort keeps a megabyte of combining marks
// cheap, where utf8proc_map would take quadratic time.
void append_nfc(std::string& result, std::string_view segment) {
  std::vector<utf8proc_int32_t> points;
  points.reserve(segment.size());
  Decomposition decomposition;
  for (size_t index = 0; index < segment.size();) {
    const CodePoint point = code_point_at(segment, index);
    const size_t count = decompose(decomposition, point.value);
    points.insert(points.end(), decomposition.begin(),
                  decomposition.begin() + static_cast<std::ptrdiff_t>(count));
    index += point.num_bytes;
  }
  const auto is_starter = [](utf8proc_int32_t point) {
    return combining_class(static_cast<char32_t>(point)) == 0;
  };
  for (auto run = points.begin(); run != points.end();) {
    run = std::find_if_not(run, points.end(), is_starter);
    const auto end = std::find_if(run, points.end(), is_starter);
    std::stable_sort(run, end, [](utf8proc_int32_t left, utf8proc_int32_t right) {
      return combining_class(static_cast<char32_t>(left)) < combining_class(static_cast<char32_t>(right));
    });
    run = end;
  }
  // utf8proc composes across the later marks, so it sees what lies between them piece by piece.
  for (auto piece = points.begin(); piece != points.end();) {
    const auto end = std::find_if(piece + 1, points.end(), [](utf8proc_int32_t point) {
      return is_mark_after_unicode9(static_cast<char32_t>(point));
    });
    const auto count = utf8proc_normalize_utf32(
        &*piece, end - piece, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    assert(count >= 0);
    for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(result, static_cast<char32_t>(piece[i]));
    piece = end;
  }
}

// The first byte from `begin` on that is not ASCII.
size_t find_non_ascii(std::string_view text, size_t begin) {
  while (begin + 8 <= text.size()) {
    uint64_t word;
    std::copy_n(text.data() + begin, 8, reinterpret_cast<char*>(&word));
    if ((word & 0x8080808080808080u) != 0) break;
    begin += 8;
  }
  while (begin < text.size() && byte_at(text, begin) < 0x80) ++begin;
  return begin;
}

// The first character from `begin` on that may change under NFC; text.size() when there is none.
size_t find_unstable(const CharacterTable& table, std::string_view text, size_t begin) {
  for (size_t index = begin; index < text.size();) {
    if (byte_at(text, index) < 0x80) {
      index = find_non_ascii(text, index);
      continue;
    }
    const CodePoint point = code_point_at(text, index);
    if (table.may_change_under_nfc(point.value)) return index;
    index += point.num_bytes;
  }
  return text.size();
}

}  // namespace

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::string repair_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t index = 0; index < text.size();) {
    const Sequence sequence = sequence_at(text, index);
    if (sequence.is_valid)
      result.append(text.substr(index, sequence.num_bytes));
    else
      append_utf8(result, kReplacement);
    index += sequence.num_bytes;
  }
  return result;
}

bool is_white_space(char32_t code_point) {
  if (code_point < 0x80) return code_point == ' ' || (code_point >= 0x09 && code_point <= 0x0D);
  return code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
         (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 || code_point == 0x2029 ||
         code_point == 0x202F || code_point == 0x205F || code_point == 0x3000;
}

bool is_word_character(char32_t code_point) {
  // Join controls, and the circled and squared letters that are Alphabetic although their category is So.
  if (code_point == 0x200C || code_point == 0x200D) return true;
  if ((code_point >= 0x24B6 && code_point <= 0x24E9) || (code_point >= 0x1F130 && code_point <= 0x1F149) ||
      (code_point >= 0x1F150 && code_point <= 0x1F169) || (code_point >= 0x1F170 && code_point <= 0x1F189))
    return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

CharacterTable::CharacterTable() : flags_(kEnd, 0) {
  constexpr char32_t kHangulBegin = 0xAC00, kHangulEnd = 0xD7A4;
  Decomposition decomposition;
  for (char32_t point = 0; point < kEnd; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(point));
    flags_[point] |= static_cast<uint8_t>(class_of_character(point, property->category));
    if (property->combining_class != 0) flags_[point] |= kNfcFlag;
    // Hangul syllables are stable; they decompose by rule, not by table.
    if (property->decomp_seqindex == UINT16_MAX || (point >= kHangulBegin && point < kHangulEnd)) continue;
    const size_t count = decompose(decomposition, point);
    if (count == 1 && decomposition[0] == static_cast<utf8proc_int32_t>(point)) continue;
    // A later part of a decomposition may be composed with the character before it.
    for (size_t part = 1; part < count; ++part) flags_[static_cast<size_t>(decomposition[part])] |= kNfcFlag;
    const auto composed =
        utf8proc_normalize_utf32(decomposition.data(), static_cast<utf8proc_ssize_t>(count),
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (composed != 1 || decomposition[0] != static_cast<utf8proc_int32_t>(point)) flags_[point] |= kNfcFlag;
  }
  for (char32_t vowel = 0x1161; vowel <= 0x1175; ++vowel) flags_[vowel] |= kNfcFlag;
  for (char32_t tail = 0x11A8; tail <= 0x11C2; ++tail) flags_[tail] |= kNfcFlag;
}

const CharacterTable& character_table() {
  static const CharacterTable table;
  return table;
}

bool is_nfc(std::string_view text) { return find_unstable(character_table(), text, 0) == text.size(); }

std::string normalize_nfc(std::string_view text) {
  const CharacterTable& table = character_table();
  std::string result;
  result.reserve(text.size());
  for (size_t copied = 0; copied < text.size();) {
    const size_t unstable = find_unstable(table, text, copied);
    // The character before it may be composed with it; nothing before that one can change.
    const size_t begin = unstable == copied || unstable == text.size()
                             ? unstable
                             : std::max(copied, character_begin_before(text, unstable));
    result.append(text.substr(copied, begin - copied));
    size_t end = unstable;
    while (end < text.size()) {
      const CodePoint point = code_point_at(text, end);
      if (!table.may_change_under_nfc(point.value)) break;
      end += point.num_bytes;
    }
    append_nfc(result, text.substr(begin, end - begin));
    copied = end;
  }
  return result;
}

std::vector<size_t> offsets_after_nfc(std::string_view bytes) {
  const CharacterTable& table = character_table();
  std::vector<size_t> offsets(bytes.size() + 1, kNoOffset);
  size_t done = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    const Sequence first = sequence_at(bytes, begin);
    size_t end = begin + first.num_bytes;
    offsets[begin] = done;
    if (!first.is_valid) {
      done += 3;  // U+FFFD
      begin = end;
      continue;
    }
    while (end < bytes.size()) {
      const Sequence next = sequence_at(bytes, end);
      if (!next.is_valid || !table.may_change_under_nfc(code_point_at(bytes, end).value)) break;
      end += next.num_bytes;
    }
    const std::string_view segment = bytes.substr(begin, end - begin);
    const bool may_change =
        segment.size() > first.num_bytes || table.may_change_under_nfc(code_point_at(bytes, begin).value);
    const std::string normalized = may_change ? normalize_nfc(segment) : std::string();
    const bool is_unchanged = !may_change || normalized == segment;
    for (size_t i = 1; is_unchanged && i < segment.size(); ++i) offsets[begin + i] = done + i;
    done += is_unchanged ? segment.size() : normalized.size();
    begin = end;
  }
  offsets[bytes.size()] = done;
  return offsets;
}

}  // namespace ropd::text
