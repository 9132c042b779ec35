// Rollouts and banks as JSONL (docs/formats.md): reading with every field checked, and a stream that survives
// a kill.
//   {"query_id":"q","sample":0,"prompt_ids":[..],"response_ids":[..],"finish":"eos","policy_step":0,"seed":1,"text":"..","answer":".."}
// Ids in, ids out: nothing here decodes or encodes text. Errors begin with file:line.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "records/rollout.h"

namespace ropd::io {

// The line without its newline; the same rollout always gives the same bytes.
std::string rollout_line(const Rollout& rollout);

// What a file is checked against while it is read.
struct RolloutLimits {
  int64_t vocab_size = 0;      // ids must be below it; 0 = any id that fits a Token
  std::vector<Token> eos_ids;  // a response is cut behind its first; also tells `finish` where it is absent
  uint64_t max_prompt_tokens = uint64_t{1} << 24;
  uint64_t max_response_tokens = uint64_t{1} << 24;
};

// One line. `sample` is 0 and `has_sample` false where the line has none.
struct ParsedRollout {
  Rollout rollout;
  bool has_sample = false;
};
ParsedRollout parse_rollout(std::string_view line, std::string_view where, const RolloutLimits& limits);

// All rollouts in file order. A row without `sample` gets the number of earlier such rows of its query.
// Fails for an empty file, a broken row and a (query_id, sample) that occurs twice; and, where the description
// of a bank lies beside the file, for any other content than it speaks of. A file without one is the user's own.
[[nodiscard]] std::vector<Rollout> read_rollouts(const Path& path, const RolloutLimits& limits = {});

// The whole file at once, in the given order.
void write_rollouts(const Path& path, std::span<const Rollout> rollouts);

struct RolloutKey {
  std::string query_id;
  uint32_t sample = 0;
  bool operator==(const RolloutKey&) const = default;
};

// How a bank was made; beside it in <stem>.meta.json.
struct BankMeta {
  std::string model_fingerprint;
  std::string model;  // where it was, for people
  uint64_t policy_step = 0;
  uint64_t seed = 0;
  std::string stream = {};  // of its draws
  double temperature = 1;
  double top_p = 1;
  uint64_t top_k = 0;  // 0 = off
  uint64_t max_response_tokens = 0;
  std::string precision;
  std::string requests_fingerprint;  // of the prompts that were asked for, in order
  uint64_t count = 0;
  std::string content;  // SHA-256 of the finished bank; empty until then, and from earlier versions
};

Path bank_meta_path(const Path& bank);                                   // banks/initial.meta.json
Path bank_partial_path(const Path& bank);                                // banks/initial.partial.jsonl
[[nodiscard]] std::optional<BankMeta> read_bank_meta(const Path& bank);  // nothing when there is no such file
// Begins a model_fingerprint that covers every weight. Those of earlier versions looked at some of the
// weights and cannot be compared with these: they agree with all of them.
inline constexpr const char* kFingerprintOfAllValues = "all:";
[[nodiscard]] bool fingerprints_agree(const std::string& a, const std::string& b);

// Empty when both describe the same bank, else the first difference: "seed is 2, expected 1". `model` is not
// compared.
[[nodiscard]] std::string bank_difference(const BankMeta& found, const BankMeta& expected);

// Why read_rollouts refuses a bank, a sentence that begins with the file. Empty when it is whole.
[[nodiscard]] std::string bank_damage(const Path& bank);

// The bank, its description and what an interrupted stream left of it.
void remove_bank(const Path& bank);

// Writes a bank as its responses finish and ends with rows in request order: the same bytes whether it was
// killed on the way or not. Rows go to <stem>.partial.jsonl in the order they finish, each with a checksum
// behind it (a tab and 16 digits); finish() copies the rows into the bank and removes the partial. Not
// thread-safe.
class BankStream {
 public:
  // Opens a new bank or one that was interrupted; what is there is kept, a torn or broken tail is cut off.
  // Fails when the bank or its partial was made in another way (meta differs) or holds responses that were
  // not requested, and when a finished bank is not what was written.
  BankStream(Path bank, std::vector<RolloutKey> requests, const BankMeta& meta,
             const RolloutLimits& limits = {});

  bool has(const RolloutKey& key) const;             // durable already
  bool is_finished() const { return is_finished_; }  // the bank itself is there
  size_t num_done() const { return num_done_; }
  std::vector<size_t> missing() const;  // positions in requests, ascending

  // Buffered in the file; durable, and to be reported as done, after sync().
  void add(const Rollout& rollout);
  void sync();
  // Requires nothing missing. Afterwards is_finished().
  void finish();

 private:
  struct Line {
    uint64_t begin = 0, size = 0;  // of the row in the partial; size 0 = missing
  };
  // constant after construction
  Path bank_, partial_;
  std::vector<RolloutKey> requests_;
  std::unordered_map<std::string, size_t> request_index_;
  // state
  std::vector<Line> lines_;  // [requests]
  std::optional<AppendFile> file_;
  size_t num_done_ = 0;
  bool is_finished_ = false;
  BankMeta meta_;
  uint64_t read_partial(const RolloutLimits& limits);
};

}  // namespace ropd::io
