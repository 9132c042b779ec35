#include "io/score_file.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/json.h"

namespace ropd::io {
namespace {

void put(std::string& line, float value) {
  if (std::isfinite(value))
    fmt::format_to(std::back_inserter(line), "{}", value);  // shortest text that reads back to the same float
  else
    line += "null";
}
void put(std::string& line, Token value) { fmt::format_to(std::back_inserter(line), "{}", value); }

template <class Value>
void put_flat(std::string& line, const char* name, const std::vector<Value>& values) {
  fmt::format_to(std::back_inserter(line), ",\"{}\":[", name);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) line += ',';
    put(line, values[i]);
  }
  line += ']';
}

template <class Value>
void put_rows(std::string& line, const char* name, const std::vector<Value>& values, size_t width) {
  fmt::format_to(std::back_inserter(line), ",\"{}\":[", name);
  for (size_t row = 0; width > 0 && row < values.size() / width; ++row) {
    line += row ? ",[" : "[";
    for (size_t j = 0; j < width; ++j) {
      if (j) line += ',';
      put(line, values[row * width + j]);
    }
    line += ']';
  }
  line += ']';
}

}  // namespace

std::string scores_line(const Scores& scores) {
  std::string line = "{\"query_id\":" + Json(scores.query_id).dump();
  fmt::format_to(std::back_inserter(line), ",\"sample\":{}", scores.sample);
  put_rows(line, "candidates", scores.candidates, scores.top_k);
  put_rows(line, "student_logprobs", scores.student_logprobs, scores.top_k);
  if (!scores.teacher_sampled_logprobs.empty())
    put_rows(line, "teacher_logprobs", scores.teacher_logprobs, scores.top_k);
  put_flat(line, "sampled_logprobs", scores.sampled_logprobs);
  if (!scores.teacher_sampled_logprobs.empty())
    put_flat(line, "teacher_sampled_logprobs", scores.teacher_sampled_logprobs);
  put_flat(line, "entropy", scores.student_entropy);
  return line + "}";
}

}  // namespace ropd::io
