// A file of scores that an interrupted command goes on with. Rows go to <stem>.partial.jsonl, each with its
// checksum, behind a first line that says what they are scores of; finish() copies them to the file itself,
// which appears whole. A pipe or a device gets its rows as they come.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace ropd::io {

Path partial_scores(const Path& out);  // scores.partial.jsonl

// One writer at a time: a second one is refused. Not thread-safe.
class ScoreStream {
 public:
  // `origin` is one line that holds all that determines the rows. Fails when what is there was begun with
  // another one; a torn or broken end is cut off.
  ScoreStream(Path out, const std::string& origin);

  uint64_t num_done() const { return num_done_; }  // rows that are there already
  // Durable after sync().
  void add(std::string_view row);
  void sync();
  // Afterwards the file is in its place.
  void finish();

 private:
  const Path out_, partial_;
  std::optional<AtomicFile> direct_;
  std::optional<AppendFile> file_;
  uint64_t num_done_ = 0;
  void take_in(const std::string& origin);
};

}  // namespace ropd::io
