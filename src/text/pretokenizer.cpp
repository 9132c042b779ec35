#include "text/pretokenizer.h"

namespace ropd::text {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Bytes of 's 't 're 've 'm 'll 'd at text[begin], which is an apostrophe; 0 where there is none.
size_t contraction_bytes(std::string_view text, size_t begin) {
  const std::string_view rest = text.substr(begin + 1, 2);
  if (rest.empty()) return 0;
  const char first = lower(rest[0]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (rest == "\xC5\xBF") return 3;  // U+017F, the long s, is an s when case does not matter
  if (rest.size() < 2) return 0;
  const char second = lower(rest[1]);
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  return first == 'l' && second == 'l' ? 3 : 0;
}

}  // namespace

size_t Pretokenizer::skip(std::string_view text, size_t begin, CharClass kind) const {
  while (begin < text.size()) {
    const Character next = character_at(text, begin);
    if (next.kind != kind) break;
    begin = next.end;
  }
  return begin;
}

// \s*[\r\n]+ | \s+(?!\S) | \s+ at a white space character.
size_t Pretokenizer::white_space_end(std::string_view text, size_t begin) const {
  size_t end = begin, last_begin = begin, newline_end = 0;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != CharClass::space && next.kind != CharClass::newline) break;
    last_begin = end;
    end = next.end;
    if (next.kind == CharClass::newline) newline_end = end;
  }
  if (newline_end != 0) return newline_end;
  // The look-ahead leaves the last space to the word behind it.
  return end < text.size() && last_begin > begin ? last_begin : end;
}

size_t Pretokenizer::piece_end(std::string_view text, size_t begin) const {
  if (rule_ == SplitRule::whole_text) return text.size();
  const Character first = character_at(text, begin);
  if (first.kind == CharClass::letter) return skip(text, first.end, CharClass::letter);
  if (first.kind == CharClass::number) {
    size_t end = first.end;
    for (int digits = 1; digits < max_digits_ && end < text.size(); ++digits) {
      const Character next = character_at(text, end);
      if (next.kind != CharClass::number) break;
      end = next.end;
    }
    return end;
  }
  if (first.kind == CharClass::newline) return white_space_end(text, begin);
  if (text[begin] == '\'')
    if (const size_t bytes = contraction_bytes(text, begin); bytes != 0) return begin + bytes;
  // One character that is neither newline, letter nor number may lead a word.
  size_t end = first.end;
  if (end < text.size()) {
    const Character second = character_at(text, end);
    if (second.kind == CharClass::letter) return skip(text, second.end, CharClass::letter);
    if (first.kind == CharClass::space) {
      if (text[begin] != ' ' || second.kind != CharClass::other) return white_space_end(text, begin);
      end = second.end;
    }
  } else if (first.kind == CharClass::space) {
    return end;
  }
  end = skip(text, end, CharClass::other);
  while (end < text.size() && (text[end] == '\r' || text[end] == '\n')) ++end;
  return end;
}

}  // namespace ropd::text
