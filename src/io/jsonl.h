// Lines of a JSONL file, read from a mapping without copying; gzip and zstd files are uncompressed into
// memory first, standard input and other pipes are read into it.
// Accepts a byte-order mark, CRLF, blank lines and a last line without newline. A line longer than the limit,
// broken UTF-8 and wrong JSON are refused with "file:line". Not thread-safe; the text of a line lives as long
// as the reader.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"

namespace ropd::io {

inline constexpr uint64_t kMaxJsonlLineBytes = uint64_t{256} << 20;

struct JsonlLine {
  std::string_view text;  // valid UTF-8, not blank, without the line end
  uint64_t number = 0;    // from 1, as editors count
};

class JsonlReader {
 public:
  explicit JsonlReader(const Path& path, uint64_t max_line_bytes = kMaxJsonlLineBytes);
  JsonlReader(const JsonlReader&) = delete;  // text_ refers to the reader
  JsonlReader& operator=(const JsonlReader&) = delete;
  // Over text that the caller keeps alive; `name` stands for the file in errors.
  JsonlReader(std::string_view text, std::string name, uint64_t max_line_bytes = kMaxJsonlLineBytes);

  // The next line that is not blank, or nothing at the end.
  std::optional<JsonlLine> next();
  // "file:17", the beginning of every error about a line.
  std::string where(uint64_t line_number) const;
  // All of it, as it is read: uncompressed.
  std::string_view text() const { return text_; }
  // Bytes consumed so far and in all, for progress.
  uint64_t position() const { return position_; }
  uint64_t size() const { return text_.size(); }

 private:
  // constant after construction
  MappedFile file_;
  std::string held_;  // the content of what is not used as mapped: compressed files, pipes
  std::string_view text_;
  std::string name_;
  uint64_t max_line_bytes_;
  // state
  uint64_t position_ = 0;
  uint64_t number_ = 0;
};

// Calls `row(object, where)` for every line; each line must be a JSON object.
void for_each_json_row(JsonlReader& reader, const std::function<void(Json&&, const std::string& where)>& row);

}  // namespace ropd::io
