#include "text/added_tokens.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "text/unicode.h"

namespace ropd::text {

namespace {

bool touches_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word_character(code_point_at(text, character_begin_before(text, begin)).value))
    return true;
  return end < text.size() && is_word_character(code_point_at(text, end).value);
}

size_t white_space_begin(std::string_view text, size_t end, size_t lowest) {
  while (end > lowest) {
    const size_t begin = character_begin_before(text, end);
    if (!is_white_space(code_point_at(text, begin).value)) break;
    end = begin;
  }
  return end;
}

size_t white_space_end(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const CodePoint point = code_point_at(text, begin);
    if (!is_white_space(point.value)) break;
    begin += point.num_bytes;
  }
  return begin;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<std::string> contents,
                                     std::vector<const AddedToken*> tokens) {
  assert(contents.size() == tokens.size());
  for (size_t i = 0; i < contents.size(); ++i) entries_.push_back({std::move(contents[i]), tokens[i]});
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& left, const Entry& right) { return left.content < right.content; });
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    Range& range = by_first_[static_cast<uint8_t>(entries_[i].content[0])];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
}

// Narrows the sorted entries byte by byte; an entry that ends at the current depth is first among those that
// share it.
const AddedTokenMatcher::Entry* AddedTokenMatcher::longest_at(std::string_view text, size_t index) const {
  const Range range = by_first_[static_cast<uint8_t>(text[index])];
  auto begin = entries_.begin() + range.begin;
  auto end = entries_.begin() + range.end;
  const Entry* longest = nullptr;
  for (size_t depth = 1; begin != end; ++depth) {
    if (begin->content.size() == depth) {
      longest = &*begin;
      while (begin != end && begin->content.size() == depth) ++begin;
    }
    if (index + depth >= text.size()) break;
    const auto wanted = static_cast<uint8_t>(text[index + depth]);
    const auto byte = [&](const Entry& entry) { return static_cast<uint8_t>(entry.content[depth]); };
    begin = std::partition_point(begin, end, [&](const Entry& entry) { return byte(entry) < wanted; });
    end = std::partition_point(begin, end, [&](const Entry& entry) { return byte(entry) == wanted; });
  }
  return longest;
}

void AddedTokenMatcher::find_all(std::vector<AddedTokenMatch>& matches, std::string_view text,
                                 bool parse_special) const {
  matches.clear();
  if (is_empty()) return;
  size_t previous_end = 0;
  for (size_t index = 0; index < text.size();) {
    const Range& range = by_first_[static_cast<uint8_t>(text[index])];
    const Entry* entry = range.end == 0 ? nullptr : longest_at(text, index);
    if (entry == nullptr) {
      ++index;
      continue;
    }
    AddedTokenMatch match{entry->token, index, index + entry->content.size()};
    index = match.end;
    if (match.token->is_special && !parse_special) continue;
    if (match.token->is_single_word && touches_word(text, match.begin, match.end)) continue;
    if (match.token->strips_left)
      match.begin = std::max(white_space_begin(text, match.begin, previous_end), previous_end);
    // White space taken by the token before is not walked again: a long run stays linear.
    if (match.token->strips_right) match.end = white_space_end(text, std::max(match.end, previous_end));
    previous_end = match.end;
    // White space that the token before has taken already leaves nothing of a token that strips to its left.
    if (match.begin < match.end) matches.push_back(match);
  }
}

}  // namespace ropd::text
