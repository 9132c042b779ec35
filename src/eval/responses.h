// responses.jsonl of an evaluation: rollout lines (docs/formats.md) with the name of their benchmark.
// A response is known by its place in the suite: benchmark, question, sample. The file is read by mapping;
// only the fields that scoring needs are parsed, so that gigabytes of token ids cost little. Responses of
// another suite are refused by name. As long as responses are missing every line has a checksum behind it
// (io/checked_lines.h); the finished file has none, and its hash is in generation.json.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "eval/suite.h"
#include "records/rollout.h"

namespace ropd::eval {

// Which response of a suite.
struct ResponseId {
  uint32_t benchmark = 0;
  uint32_t question = 0;
  uint32_t sample = 0;
  bool operator==(const ResponseId&) const = default;
};

// All responses of a suite in request order: by benchmark, question, sample.
std::vector<ResponseId> all_responses(const Suite& suite);

// The responses that a file holds. Constant after construction; any thread may read it.
class ResponseFile {
 public:
  // The file may be absent, end in a torn line or hold lines that do not fit their checksum (an interrupted
  // evaluation); such lines are left out and counted. Fails for a line that is not a response, one of another
  // suite, and one that occurs twice. The suite must outlive the object.
  ResponseFile(const Path& path, const Suite& suite);

  uint64_t num_present() const { return num_present_; }
  bool has_torn_line() const { return has_torn_line_; }
  uint64_t num_broken() const { return num_broken_; }
  // In request order.
  std::vector<ResponseId> missing() const;
  // The response's line, or nothing where it is missing; lives as long as the object.
  std::optional<std::string_view> line(ResponseId id) const;
  // "responses.jsonl:17" of a response that is present.
  std::string where(ResponseId id) const;

 private:
  struct Line {
    std::string_view text;
    uint64_t number = 0;  // 0 = missing
  };
  const Suite* suite_;
  Path path_;
  MappedFile file_;
  std::vector<std::vector<Line>> lines_;  // [benchmarks][questions * samples]
  uint64_t num_present_ = 0;
  uint64_t num_broken_ = 0;
  bool has_torn_line_ = false;

  const Line& at(ResponseId id) const;
  void add_line(std::string_view text, uint64_t number, class SuiteIndex& index);
};

// The text of a response line.
std::string response_text(std::string_view line, const std::string& where);

// A rollout as a line of the finished file, without the newline.
std::string response_line(const Rollout& rollout, const std::string& benchmark);

// The lines of the finished file: in request order, so that it does not depend on the order in which responses
// finished or on interruptions. Every response must be present.
void for_each_finished_line(const ResponseFile& file, const Suite& suite,
                            const std::function<void(std::string_view line)>& use);

}  // namespace ropd::eval
