// metrics.jsonl: one line an optimization step ("kind": "step") and one an iteration ("kind": "iteration"),
// in the order they happened; an iteration's line follows those of its steps. Names and meanings are the
// field lists of records/metrics.h. Append-only and durable line by line. A resumed run cuts the file back to
// its checkpoint; what is cut goes to metrics.discarded.jsonl, so no measurement is ever lost.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "io/checkpoint.h"
#include "records/metrics.h"

namespace ropd::io {

std::string metrics_line(const StepRecord& record);       // without the newline
std::string metrics_line(const IterationRecord& record);  // without its steps

// Named numbers of a record, for charts: (name, value). Flags are 0 or 1; absent values, texts and counters
// of the record's own place (step, iteration, unix_time) are left out.
using Scalars = std::vector<std::pair<std::string, double>>;
Scalars scalars_of(const StepRecord& record);
Scalars scalars_of(const IterationRecord& record);

// The field lists as a table for docs/formats.md.
std::string metrics_reference_markdown();

class MetricsFile {
 public:
  // Opens or creates; keeps what is there.
  explicit MetricsFile(const Path& path);
  void append(const StepRecord& record) { append_line(metrics_line(record)); }
  void append(const IterationRecord& record) { append_line(metrics_line(record)); }
  // What was there and what was appended, whatever has become of the file: for checkpoints.
  const std::string& text() const { return text_; }

 private:
  void append_line(const std::string& line);
  AppendFile file_;
  std::string text_;
};

struct Metrics {
  std::vector<IterationRecord> iterations;  // with their steps
  std::vector<StepRecord> open_steps;       // of an iteration that has no line yet
};

// Fails with file:line for a line that is not a record. A last line without newline (torn, or still being
// written) is ignored.
[[nodiscard]] Metrics read_metrics(const Path& path);

// Removes every line from the first one with a step after `step` on, once it is safe in
// metrics.discarded.jsonl beside the file. Returns the number of lines removed. An absent file is an empty
// one.
uint64_t cut_metrics_back(const Path& path, uint64_t step);

// The lines that a checkpoint holds, under its manifest's hash.
inline constexpr const char* kMetricsCopy = "metrics.jsonl";

// Puts the lines of `copy` (a checkpoint's) in the place of a file that does not begin with them; what was
// there is appended to metrics.discarded.jsonl first. Returns the first line that was lost or changed as file:line;
// empty when nothing was to be done.
std::string restore_metrics(const Path& path, const Path& copy);

// The first line that is not the one that a checkpoint holds, the newest one asked first, in a sentence that begins
// with file:line. Empty when there is none.
[[nodiscard]] std::string metrics_damage(const Path& path, const std::vector<CheckpointEntry>& checkpoints);

// What is missing between the steps first_step + 1 .. step of a file that ends there, in words: "no line of
// step 5 .. 8". Empty when nothing is.
[[nodiscard]] std::string find_gap(const Metrics& metrics, uint64_t first_step, uint64_t step);

}  // namespace ropd::io
