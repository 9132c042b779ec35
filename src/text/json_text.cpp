#include "text/json_text.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace ropd::text {

namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxBytes = size_t{1} << 30;

// simdjson does not say where an error is; the line of the first byte that is not UTF-8 is easy to find.
std::string place_of_broken_utf8(std::string_view json) {
  size_t line = 1;
  for (size_t begin = 0; begin < json.size(); ++line) {
    const size_t end = std::min(json.find('\n', begin), json.size());
    if (!is_valid_utf8(json.substr(begin, end - begin))) return "line " + std::to_string(line) + ": ";
    begin = end + 1;
  }
  return "";
}

}  // namespace

JsonDocument::JsonDocument(std::string_view json, const std::string& where) {
  if (json.starts_with("\xEF\xBB\xBF")) json.remove_prefix(3);
  if (json.size() > kMaxBytes)
    fail(where, ": ", json.size(), " bytes of JSON (expected at most ", kMaxBytes, ")");
  if (const auto error = parser_.allocate(json.size(), kMaxDepth); error != simdjson::SUCCESS)
    fail(where, ": cannot hold ", json.size(), " bytes of JSON: ", simdjson::error_message(error));
  const auto error = parser_.parse(json.data(), json.size()).get(root_);
  if (error == simdjson::SUCCESS) return;
  if (error == simdjson::UTF8_ERROR)
    fail(where, ": ", place_of_broken_utf8(json), "the bytes are not valid UTF-8 (damaged file?)");
  if (error == simdjson::DEPTH_ERROR)
    fail(where, ": JSON nested deeper than ", kMaxDepth, " levels (damaged or hostile file?)");
  if (error == simdjson::STRING_ERROR)
    fail(where, ": not valid JSON: a string with a broken escape or a lone surrogate");
  fail(where, ": not valid JSON: ", simdjson::error_message(error), " (incomplete download?)");
}

}  // namespace ropd::text
