#include "io/jsonl.h"

#include <simdjson.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "io/compressed_text.h"

namespace ropd::io {

namespace {
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr uint64_t kMaxStreamBytes = uint64_t{1} << 34;
}  // namespace

JsonlReader::JsonlReader(const Path& path, uint64_t max_line_bytes)
    : name_(path.string()), max_line_bytes_(max_line_bytes) {
  std::error_code error;
  if (std::filesystem::is_fifo(path, error) || std::filesystem::is_character_file(path, error)) {
    held_ = read_file(path, kMaxStreamBytes);
    text_ = held_;
  } else {
    file_ = MappedFile(path);
    text_ = file_.text();
  }
  if (auto text = uncompressed_text(text_, name_)) {
    held_ = std::move(*text);
    text_ = held_;
    file_ = {};
  }
  if (text_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
}

JsonlReader::JsonlReader(std::string_view text, std::string name, uint64_t max_line_bytes)
    : text_(text), name_(std::move(name)), max_line_bytes_(max_line_bytes) {
  if (text_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
}

std::string JsonlReader::where(uint64_t line_number) const {
  return name_ + ":" + std::to_string(line_number);
}

std::optional<JsonlLine> JsonlReader::next() {
  while (position_ < text_.size()) {
    ++number_;
    const char* begin = text_.data() + position_;
    const uint64_t left = text_.size() - position_;
    // The search stops at the limit, so that one endless line costs no more than the limit.
    const uint64_t searched = std::min(left, max_line_bytes_ + 1);
    const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', searched));
    if (!newline && searched < left)
      fail(where(number_), ": line longer than ", max_line_bytes_, " bytes (not a JSONL file?)");
    const uint64_t length = newline ? uint64_t(newline - begin) : left;
    if (length > max_line_bytes_)
      fail(where(number_), ": line of ", length, " bytes, at most ", max_line_bytes_,
           " are read (not a JSONL file?)");
    position_ += length + (newline ? 1 : 0);
    std::string_view line(begin, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const auto checked = simdjson::validate_utf8(line.data(), line.size());
    if (!checked) fail(where(number_), ": not valid UTF-8 (another encoding, or a damaged file?)");
    return JsonlLine{line, number_};
  }
  return std::nullopt;
}

void for_each_json_row(JsonlReader& reader,
                       const std::function<void(Json&&, const std::string& where)>& row) {
  while (const auto line = reader.next()) {
    const std::string where = reader.where(line->number);
    Json value = parse_json(line->text, where);
    if (!value.is_object()) fail(where, ": expected a JSON object, got ", value.type_name());
    row(std::move(value), where);
  }
}

}  // namespace ropd::io
