#include "eval/responses.h"

#include <simdjson.h>

#include <cassert>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "io/checked_lines.h"
#include "io/rollout_file.h"

namespace ropd::eval {
namespace {

constexpr uint64_t kMaxLineBytes = uint64_t{256} << 20;

// What identifies a line and, when asked for, its text.
struct Fields {
  std::string benchmark;
  std::string query_id;
  int64_t sample = -1;
  std::optional<std::string> text;
};

// Nothing when the line is not such an object. The DOM parser, not the on-demand one, because only it chooses
// its instruction set when the program runs.
std::optional<Fields> parse_fields(std::string_view line, bool wants_text) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(line);
  simdjson::dom::object object;
  if (parser.parse(padded).get(object)) return std::nullopt;
  Fields fields;
  std::string_view value;
  if (!object["benchmark"].get(value)) fields.benchmark = value;
  if (!object["query_id"].get(value)) fields.query_id = value;
  if (object["sample"].get(fields.sample)) fields.sample = -1;
  if (wants_text && !object["text"].get(value)) fields.text.emplace(value);
  return fields;
}

}  // namespace

// Finds a benchmark and a question by name.
class SuiteIndex {
 public:
  explicit SuiteIndex(const Suite& suite) : questions_(suite.benchmarks.size()) {
    for (uint32_t b = 0; b < suite.benchmarks.size(); ++b) {
      benchmarks_.emplace(suite.benchmarks[b].name, b);
      for (uint32_t q = 0; q < suite.benchmarks[b].questions.size(); ++q)
        questions_[b].emplace(suite.benchmarks[b].questions[q].id, q);
    }
  }
  std::optional<uint32_t> benchmark(const std::string& name) const { return find(benchmarks_, name); }
  std::optional<uint32_t> question(uint32_t benchmark, const std::string& id) const {
    return find(questions_[benchmark], id);
  }

 private:
  using Map = std::unordered_map<std::string, uint32_t>;
  Map benchmarks_;
  std::vector<Map> questions_;
  static std::optional<uint32_t> find(const Map& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  }
};

std::vector<ResponseId> all_responses(const Suite& suite) {
  std::vector<ResponseId> ids;
  ids.reserve(suite.num_responses());
  for (uint32_t b = 0; b < suite.benchmarks.size(); ++b)
    for (uint32_t q = 0; q < suite.benchmarks[b].questions.size(); ++q)
      for (uint32_t s = 0; s < suite.benchmarks[b].samples; ++s) ids.push_back({b, q, s});
  return ids;
}

ResponseFile::ResponseFile(const Path& path, const Suite& suite) : suite_(&suite), path_(path) {
  for (const auto& benchmark : suite.benchmarks)
    lines_.emplace_back(benchmark.questions.size() * benchmark.samples);
  if (!std::filesystem::exists(path)) return;
  file_ = MappedFile(path);
  SuiteIndex index(suite);
  const std::string_view text = file_.text();
  uint64_t number = 0;
  bool is_checked = false;  // an unfinished file: what is not whole is sampled again
  for (size_t begin = 0; begin < text.size();) {
    ++number;
    const auto* newline =
        static_cast<const char*>(std::memchr(text.data() + begin, '\n', text.size() - begin));
    if (!newline) {  // a complete line ends with one: the program stopped while it wrote this
      has_torn_line_ = true;
      break;
    }
    const size_t length = size_t(newline - text.data()) - begin;
    if (length > kMaxLineBytes)
      fail(path.string(), ":", number, ": line of ", length, " bytes, at most ", kMaxLineBytes, " are read");
    const std::string_view line = text.substr(begin, length);
    begin += length + 1;
    const auto checked = io::checked_row(line);
    is_checked |= io::is_unfinished_line(line);
    if (is_checked && !checked)
      ++num_broken_;
    else
      add_line(checked.value_or(line), number, index);
  }
}

void ResponseFile::add_line(std::string_view text, uint64_t number, SuiteIndex& index) {
  const std::string place = path_.string() + ":" + std::to_string(number);
  const auto fields = parse_fields(text, false);
  if (!fields || fields->benchmark.empty() || fields->query_id.empty() || fields->sample < 0)
    fail(place, ": not a response, expected a JSON object with 'benchmark', 'query_id' and 'sample'");
  const auto benchmark = index.benchmark(fields->benchmark);
  if (!benchmark)
    fail(place, ": benchmark '", fields->benchmark, "' is not in suite '", suite_->name,
         "' (responses of another suite?)");
  const auto question = index.question(*benchmark, fields->query_id);
  if (!question)
    fail(place, ": question '", fields->query_id, "' is not in benchmark '", fields->benchmark,
         "' (responses to another version of it?)");
  const uint32_t samples = suite_->benchmarks[*benchmark].samples;
  if (fields->sample >= int64_t(samples))
    fail(place, ": sample ", fields->sample, " of question '", fields->query_id, "', the suite asks for ",
         samples);
  Line& line = lines_[*benchmark][uint64_t{*question} * samples + uint64_t(fields->sample)];
  if (line.number)
    fail(place, ": sample ", fields->sample, " of question '", fields->query_id, "' is already at line ",
         line.number);
  line = {text, number};
  ++num_present_;
}

const ResponseFile::Line& ResponseFile::at(ResponseId id) const {
  return lines_[id.benchmark][uint64_t{id.question} * suite_->benchmarks[id.benchmark].samples + id.sample];
}

std::optional<std::string_view> ResponseFile::line(ResponseId id) const {
  const Line& line = at(id);
  return line.number ? std::optional(line.text) : std::nullopt;
}

std::string ResponseFile::where(ResponseId id) const {
  return path_.string() + ":" + std::to_string(at(id).number);
}

std::vector<ResponseId> ResponseFile::missing() const {
  std::vector<ResponseId> ids;
  for (const ResponseId id : all_responses(*suite_))
    if (!at(id).number) ids.push_back(id);
  return ids;
}

std::string response_text(std::string_view line, const std::string& where) {
  auto fields = parse_fields(line, true);
  if (!fields || !fields->text) fail(where, ": no 'text' in the response, expected the decoded response");
  return std::move(*fields->text);
}

std::string response_line(const Rollout& rollout, const std::string& benchmark) {
  // The benchmark comes first: people read the beginning of a long line.
  return "{\"benchmark\":" + Json(benchmark).dump() + "," + io::rollout_line(rollout).substr(1);
}

void for_each_finished_line(const ResponseFile& file, const Suite& suite,
                            const std::function<void(std::string_view line)>& use) {
  for (const ResponseId id : all_responses(suite)) {
    const auto line = file.line(id);
    assert(line);
    use(*line);
  }
}

}  // namespace ropd::eval
