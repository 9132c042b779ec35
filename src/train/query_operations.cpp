#include "train/query_operations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/rng.h"

namespace ropd::train {
namespace {

// Script=Han of Unicode 15 (Scripts.txt), first and last of each range.
constexpr std::array<std::pair<char32_t, char32_t>, 22> kHan = {{
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},   {0x3007, 0x3007},
    {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},
    {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3}, {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739},
    {0x2B740, 0x2B81D}, {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF},
}};

// Decodes one character of valid UTF-8 and moves `at` behind it.
char32_t next_character(std::string_view text, size_t& at) {
  const auto lead = uint8_t(text[at++]);
  if (lead < 0x80) return lead;
  const int following = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t value = lead & (0x3F >> following);
  for (int i = 0; i < following && at < text.size(); ++i) value = (value << 6) | (uint8_t(text[at++]) & 0x3F);
  return value;
}

std::vector<Query> pick(const std::vector<Query>& queries, const std::vector<size_t>& indices) {
  std::vector<Query> chosen;
  chosen.reserve(indices.size());
  for (const size_t index : indices) chosen.push_back(queries[index]);
  return chosen;
}

std::vector<Query> select_ids(const std::vector<Query>& queries, const std::vector<std::string>& ids) {
  std::unordered_map<std::string_view, size_t> index_of;
  for (size_t i = 0; i < queries.size(); ++i) index_of.emplace(queries[i].id, i);
  std::unordered_set<std::string_view> used;
  std::vector<size_t> indices;
  for (const auto& id : ids) {
    const auto found = index_of.find(id);
    if (found == index_of.end()) fail("select: id '", id, "' is not among the ", queries.size(), " queries");
    if (!used.insert(id).second) fail("select: id '", id, "' is given twice");
    indices.push_back(found->second);
  }
  return pick(queries, indices);
}

std::vector<Query> select_random(const std::vector<Query>& queries, uint64_t count, uint64_t seed) {
  std::vector<std::pair<uint64_t, size_t>> ranks;  // random rank, index
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto bits = random_bits(seed, Purpose::query_selection, {.key = text_key(queries[i].id)});
    ranks.emplace_back((uint64_t(bits[0]) << 32) | bits[1], i);
  }
  const auto by_rank = [&](const auto& left, const auto& right) {
    return left.first != right.first ? left.first < right.first
                                     : queries[left.second].id < queries[right.second].id;
  };
  std::sort(ranks.begin(), ranks.end(), by_rank);
  std::vector<size_t> indices;
  for (uint64_t i = 0; i < count; ++i) indices.push_back(ranks[i].second);
  std::sort(indices.begin(), indices.end());
  return pick(queries, indices);
}

std::vector<uint64_t> word_keys(const std::vector<std::string>& words) {
  std::vector<uint64_t> keys;
  keys.reserve(words.size());
  for (const auto& word : words) keys.push_back(text_key(word));
  return keys;
}

// One number for a window of words; order counts.
uint64_t window_key(const std::vector<uint64_t>& words, size_t begin, size_t length) {
  uint64_t key = length;
  for (size_t i = begin; i < begin + length; ++i) key = (key ^ words[i]) * 0x9E3779B97F4A7C15u + (key >> 29);
  return key;
}

std::string user_text(const Query& query) {
  std::string text;
  for (const auto& message : query.messages)
    if (message.role == "user") text += message.content + '\n';
  return text;
}

}  // namespace

std::string prompt_text(const Query& query) {
  std::string text;
  for (const auto& message : query.messages) text += message.role + '\0' + message.content + '\0';
  return text;
}

Deduplication deduplicate_by_prompt(const std::vector<Query>& queries) {
  Deduplication result;
  std::unordered_map<std::string, size_t> first;
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto [found, is_new] = first.emplace(prompt_text(queries[i]), i);
    if (is_new) {
      result.kept.push_back(i);
    } else {
      ++result.num_dropped;
      result.num_conflicts += queries[i].answer != queries[found->second].answer;
    }
  }
  return result;
}

bool has_han(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (character < kHan[0].first) continue;
    for (const auto& [first, last] : kHan)
      if (character >= first && character <= last) return true;
  }
  return false;
}

bool has_han(const Query& query) {
  return std::any_of(query.messages.begin(), query.messages.end(),
                     [](const Message& message) { return has_han(message.content); });
}

std::vector<Query> select_queries(const std::vector<Query>& queries, const Selection& selection) {
  const int given = selection.count.has_value() + selection.first.has_value() + !selection.ids.empty();
  if (given != 1) fail("select: ", given, " of count, first and ids are given, expected exactly one");
  if (!selection.ids.empty()) return select_ids(queries, selection.ids);
  const uint64_t wanted = selection.count ? *selection.count : *selection.first;
  if (wanted == 0 || wanted > queries.size())
    fail("select: ", wanted, " queries are asked, expected 1 to ", queries.size(), " (what the set holds)");
  if (selection.first) return {queries.begin(), queries.begin() + std::ptrdiff_t(wanted)};
  return select_random(queries, wanted, selection.seed);
}

std::vector<Query> order_queries(std::vector<Query> queries, uint64_t seed) {
  if (seed == 0) return queries;
  const auto order = random_permutation(uint32_t(queries.size()), seed, Purpose::query_order);
  std::vector<Query> ordered;
  ordered.reserve(queries.size());
  for (const uint32_t index : order) ordered.push_back(std::move(queries[index]));
  return ordered;
}

uint64_t strip_wrapper(std::vector<Query>& queries, std::string_view prefix, std::string_view suffix) {
  uint64_t num_changed = 0;
  for (auto& query : queries) {
    std::string& content = query.messages.back().content;
    const size_t before = content.size();
    if (!prefix.empty() && content.starts_with(prefix)) content.erase(0, prefix.size());
    if (!suffix.empty() && content.ends_with(suffix)) content.erase(content.size() - suffix.size());
    num_changed += content.size() != before;
  }
  return num_changed;
}

std::vector<std::string> normalised_words(std::string_view text) {
  static constexpr std::string_view kLayout[] = {"left",  "right", "displaystyle", "quad",
                                                 "qquad", "text",  "mathrm",       "textbf"};
  std::vector<std::string> words;
  std::string word;
  bool is_command = false;
  const auto finish = [&] {
    const bool is_layout =
        is_command && std::find(std::begin(kLayout), std::end(kLayout), word) != std::end(kLayout);
    if (is_command && (word == "dfrac" || word == "tfrac")) word = "frac";
    if (!word.empty() && !is_layout) words.push_back(word);
    word.clear();
    is_command = false;
  };
  for (const char character : text) {
    const auto byte = uint8_t(character);
    // A command ends with its letters; digits that follow it begin another word.
    const bool continues = byte >= 0x80 || std::isalpha(byte) || (std::isdigit(byte) && !is_command);
    if (continues) {
      word += char(std::tolower(byte));
      continue;
    }
    finish();
    if (character == '\\') is_command = true;
    if (std::isdigit(byte)) word = std::string(1, character);
  }
  finish();
  return words;
}

std::vector<Overlap> find_overlaps(const std::vector<Query>& queries, const std::vector<Query>& benchmark,
                                   double threshold, size_t window) {
  struct Question {
    std::vector<uint64_t> words;
    size_t num_windows = 0;
  };
  std::vector<Question> questions(benchmark.size());
  std::unordered_map<uint64_t, std::vector<size_t>> owners;  // window -> questions that have it, each once
  std::vector<size_t> lengths;  // window lengths in use: short questions have their own
  for (size_t i = 0; i < benchmark.size(); ++i) {
    auto& [words, num_windows] = questions[i];
    words = word_keys(normalised_words(user_text(benchmark[i])));
    if (words.empty()) continue;
    const size_t length = std::min(window, words.size());
    if (std::find(lengths.begin(), lengths.end(), length) == lengths.end()) lengths.push_back(length);
    std::unordered_set<uint64_t> own;
    for (size_t begin = 0; begin + length <= words.size(); ++begin)
      own.insert(window_key(words, begin, length));
    for (const uint64_t key : own) owners[key].push_back(i);
    num_windows = own.size();
  }
  std::vector<Overlap> overlaps;
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto words = word_keys(normalised_words(user_text(queries[i])));
    std::unordered_set<uint64_t> seen;
    std::map<size_t, size_t> hits;  // question -> windows found
    for (const size_t length : lengths)
      for (size_t begin = 0; begin + length <= words.size(); ++begin) {
        const uint64_t key = window_key(words, begin, length);
        const auto found = owners.find(key);
        if (found == owners.end() || !seen.insert(key).second) continue;
        for (const size_t question : found->second) ++hits[question];
      }
    for (const auto& [question, count] : hits) {
      const double share = double(count) / double(questions[question].num_windows);
      if (share >= threshold) overlaps.push_back({i, question, share, words == questions[question].words});
    }
  }
  return overlaps;
}

}  // namespace ropd::train
