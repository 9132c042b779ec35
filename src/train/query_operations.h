// Operations on sets of queries: what `ropd data` and a run's `data:` section do, without files or models.
// Everything is a pure function of its arguments; orders are kept unless the function is about order.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/query.h"

namespace ropd::train {

// All roles and contents as one text; two queries with equal prompt_text are the same question.
std::string prompt_text(const Query& query);

struct Deduplication {
  std::vector<size_t> kept;  // indices of the first query of each prompt
  uint64_t num_dropped = 0;
  uint64_t num_conflicts = 0;  // dropped queries whose answer differs from the kept one's
};
Deduplication deduplicate_by_prompt(const std::vector<Query>& queries);

// True where the text holds a character of the Han script (Chinese, Japanese kanji). Valid UTF-8 expected.
bool has_han(std::string_view text);
bool has_han(const Query& query);

// Which queries of a set to use; exactly one of the three is set. `count` with `seed` nests: the choice of 8
// is part of the choice of 48 with the same seed, also when the 8 are chosen from a file that holds the 48,
// because each id has a random rank of its own that depends on nothing but seed and id.
struct Selection {
  std::optional<uint64_t> count;
  uint64_t seed = 0;
  std::optional<uint64_t> first;
  std::vector<std::string> ids;
};
// The chosen queries in the order of the set (for ids: in the order of the ids). Fails when the set holds
// fewer, or an id is absent.
std::vector<Query> select_queries(const std::vector<Query>& queries, const Selection& selection);

// The queries permuted by seed; seed 0 keeps the order.
std::vector<Query> order_queries(std::vector<Query> queries, uint64_t seed);

// Removes `prefix` and `suffix` from the last user turn where they are there; returns how many queries
// changed.
uint64_t strip_wrapper(std::vector<Query>& queries, std::string_view prefix, std::string_view suffix);

// The words of a text for comparing questions: lower-case runs of letters and digits, LaTeX commands without
// their backslash; spacing, punctuation and layout commands (\left, \,, $) do not count.
std::vector<std::string> normalised_words(std::string_view text);

struct Overlap {
  size_t query = 0;      // index into the training set
  size_t benchmark = 0;  // index into the benchmark set
  double share =
      0;  // of the benchmark question's windows of words that occur in the query; 1 = it is contained
  bool is_equal = false;  // the normalised texts are the same
};
// Pairs whose share is at least `threshold`, by query, then benchmark. A window is `window` words; a shorter
// question is one window.
std::vector<Overlap> find_overlaps(const std::vector<Query>& queries, const std::vector<Query>& benchmark,
                                   double threshold = 0.5, size_t window = 8);

}  // namespace ropd::train
