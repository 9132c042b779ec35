#include "io/rollout_file.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "io/checked_lines.h"
#include "io/jsonl.h"

namespace ropd::io {
namespace {

// --- writing ---

void put_text(std::string& out, std::string_view text) {
  out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Number>
void put_number(std::string& out, Number value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end.ptr);
}

template <class Number>
void put_array(std::string& out, const std::vector<Number>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ',';
    put_number(out, values[i]);
  }
  out += ']';
}

// --- reading ---

namespace dom = simdjson::dom;

// Checks one object field by field; every message begins with the place.
class RowReader {
 public:
  RowReader(std::string_view where, const RolloutLimits& limits) : where_(where), limits_(limits) {}

  ParsedRollout read(dom::parser& parser, std::string_view line) {
    dom::element document;
    if (const auto error = parser.parse(line.data(), line.size()).get(document))
      fail(where_, ": not JSON: ", simdjson::error_message(error));
    dom::object object;
    if (document.get_object().get(object)) fail(where_, ": not a JSON object");
    for (const dom::key_value_pair field : object) {
      if (!seen_.emplace(field.key).second) fail(where_, ": ", field.key.substr(0, 40), " occurs twice");
      read_field(field.key, field.value);
    }
    finish();
    return std::move(parsed_);
  }

 private:
  std::string_view where_;
  const RolloutLimits& limits_;
  ParsedRollout parsed_;
  std::unordered_set<std::string> seen_;

  std::string text(std::string_view name, dom::element value) {
    std::string_view result;
    if (value.get_string().get(result)) fail(where_, ": ", name, " is not a text");
    return std::string(result);
  }

  uint64_t count(std::string_view name, dom::element value, uint64_t limit) {
    uint64_t result = 0;
    if (value.get_uint64().get(result) || result > limit)
      fail(where_, ": ", name, " is not a whole number in [0, ", limit, "]");
    return result;
  }

  dom::array list(std::string_view name, dom::element value, uint64_t max_size) {
    dom::array array;
    if (value.get_array().get(array)) fail(where_, ": ", name, " is not a list");
    if (array.size() > max_size)
      fail(where_, ": ", name, " has ", array.size(), " tokens, at most ", max_size, " are read");
    return array;
  }

  std::vector<Token> ids(std::string_view name, dom::element value, uint64_t max_size) {
    const int64_t limit = limits_.vocab_size > 0 ? limits_.vocab_size : int64_t{1} << 31;
    std::vector<Token> out;
    for (const dom::element item : list(name, value, max_size)) {
      int64_t id = 0;
      if (item.get_int64().get(id)) fail(where_, ": ", name, "[", out.size(), "] is not a token id");
      if (id < 0 || id >= limit)
        fail(where_, ": ", name, "[", out.size(), "] is ", id, ", the vocabulary has ", limit,
             " entries (rollouts of another model?)");
      out.push_back(static_cast<Token>(id));
    }
    return out;
  }

  void read_field(std::string_view name, dom::element value) {
    Rollout& rollout = parsed_.rollout;
    if (name == "query_id") {
      // Data sets number their queries; the number is the name.
      uint64_t number = 0;
      rollout.query_id = value.get_uint64().get(number) ? text(name, value) : std::to_string(number);
    } else if (name == "sample") {
      rollout.sample = static_cast<uint32_t>(count(name, value, UINT32_MAX));
      parsed_.has_sample = true;
    } else if (name == "prompt_ids") {
      rollout.prompt_ids = ids(name, value, limits_.max_prompt_tokens);
    } else if (name == "response_ids") {
      rollout.response_ids = ids(name, value, limits_.max_response_tokens);
    } else if (name == "finish") {
      const std::string finish = text(name, value);
      if (finish != "eos" && finish != "length")
        fail(where_, ": finish is \"", finish.substr(0, 40), "\", expected \"eos\" or \"length\"");
      rollout.finish = finish == "eos" ? Finish::eos : Finish::length;
    } else if (name == "policy_step") {
      rollout.policy_step = count(name, value, UINT64_MAX);
    } else if (name == "seed") {
      rollout.seed = count(name, value, UINT64_MAX);
    } else if (name == "text") {
      rollout.text = text(name, value);
    } else if (name == "answer") {
      if (!value.is_null()) rollout.answer = text(name, value);
    } else if (name == "sampled_logprobs") {
      for (const dom::element item : list(name, value, limits_.max_response_tokens)) {
        double number = 0;
        if (item.get_double().get(number))
          fail(where_, ": sampled_logprobs[", rollout.sampled_logprobs.size(), "] is not a number");
        rollout.sampled_logprobs.push_back(static_cast<float>(number));
      }
    }
  }

  void finish() {
    Rollout& rollout = parsed_.rollout;
    for (const char* name : {"query_id", "prompt_ids", "response_ids"})
      if (!seen_.contains(name))
        fail(where_, ": ", name, " is missing (required: query_id, prompt_ids, response_ids)");
    if (rollout.prompt_ids.empty()) fail(where_, ": prompt_ids is empty");
    if (rollout.response_ids.empty()) fail(where_, ": response_ids is empty, expected at least one token");
    if (!rollout.sampled_logprobs.empty() && rollout.sampled_logprobs.size() != rollout.response_ids.size())
      fail(where_, ": ", rollout.sampled_logprobs.size(), " sampled_logprobs for ",
           rollout.response_ids.size(), " response_ids");
    const auto eos = std::find_first_of(rollout.response_ids.begin(), rollout.response_ids.end(),
                                        limits_.eos_ids.begin(), limits_.eos_ids.end());
    if (eos == rollout.response_ids.end()) return;
    rollout.response_ids.erase(eos + 1, rollout.response_ids.end());
    if (!rollout.sampled_logprobs.empty()) rollout.sampled_logprobs.resize(rollout.response_ids.size());
    if (!seen_.contains("finish")) rollout.finish = Finish::eos;
  }
};

std::string key_text(std::string_view query_id, uint32_t sample) {
  return std::to_string(sample) + ":" + std::string(query_id);
}

Path sibling(const Path& bank, std::string_view ending) {
  Path path = bank;
  return path.replace_extension(std::string(ending));
}

}  // namespace

std::string rollout_line(const Rollout& rollout) {
  std::string out;
  out.reserve(200 + 7 * (rollout.prompt_ids.size() + rollout.response_ids.size()) +
              (rollout.text ? rollout.text->size() : 0));
  out += "{\"query_id\":";
  put_text(out, rollout.query_id);
  out += ",\"sample\":";
  put_number(out, rollout.sample);
  out += ",\"prompt_ids\":";
  put_array(out, rollout.prompt_ids);
  out += ",\"response_ids\":";
  put_array(out, rollout.response_ids);
  out += rollout.finish == Finish::eos ? ",\"finish\":\"eos\"" : ",\"finish\":\"length\"";
  out += ",\"policy_step\":";
  put_number(out, rollout.policy_step);
  out += ",\"seed\":";
  put_number(out, rollout.seed);
  if (rollout.text) put_text(out += ",\"text\":", *rollout.text);
  if (!rollout.answer.empty()) put_text(out += ",\"answer\":", rollout.answer);
  if (!rollout.sampled_logprobs.empty()) put_array(out += ",\"sampled_logprobs\":", rollout.sampled_logprobs);
  return out += '}';
}

ParsedRollout parse_rollout(std::string_view line, std::string_view where, const RolloutLimits& limits) {
  dom::parser parser;
  return RowReader(where, limits).read(parser, line);
}

namespace {

// `found`: the SHA-256 of the bank's text as it is now.
void check_content(const Path& bank, const BankMeta& meta, const std::string& found) {
  if (meta.content.empty() || found == meta.content) return;  // the former: of an earlier version
  fail(bank.string(),
       ": its content is not what its description says (a row was changed, or a copy cut short); put the old "
       "file back, move it away, or, if the change is meant, remove ",
       bank_meta_path(bank).string());
}

}  // namespace

std::vector<Rollout> read_rollouts(const Path& path, const RolloutLimits& limits) {
  const auto meta = read_bank_meta(path);
  JsonlReader reader(path);
  if (meta && !meta->content.empty()) check_content(path, *meta, sha256(reader.text()));
  dom::parser parser;
  std::vector<Rollout> rollouts;
  std::unordered_map<std::string, uint32_t> unnumbered;
  std::unordered_map<std::string, uint64_t> line_of;
  while (const auto line = reader.next()) {
    const std::string where = reader.where(line->number);
    ParsedRollout parsed = RowReader(where, limits).read(parser, line->text);
    if (!parsed.has_sample) parsed.rollout.sample = unnumbered[parsed.rollout.query_id]++;
    const auto [place, is_new] =
        line_of.emplace(key_text(parsed.rollout.query_id, parsed.rollout.sample), line->number);
    if (!is_new)
      fail(where, ": query_id \"", parsed.rollout.query_id, "\" sample ", parsed.rollout.sample,
           " is also in line ", place->second);
    rollouts.push_back(std::move(parsed.rollout));
  }
  if (rollouts.empty()) fail(path.string(), ": holds no rollouts");
  if (meta && meta->count != rollouts.size())
    fail(path.string(), ": ", rollouts.size(), " rollouts, its description says ", meta->count,
         " (cut or edited file?)");
  return rollouts;
}

void write_rollouts(const Path& path, std::span<const Rollout> rollouts) {
  AtomicFile file(path);
  for (const Rollout& rollout : rollouts) file.write(rollout_line(rollout) + "\n");
  file.commit();
}

// --- how a bank was made ---

Path bank_meta_path(const Path& bank) { return sibling(bank, ".meta.json"); }
Path bank_partial_path(const Path& bank) { return sibling(bank, ".partial.jsonl"); }

std::optional<BankMeta> read_bank_meta(const Path& bank) {
  const Path path = bank_meta_path(bank);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json json = parse_json(read_file(path, 1 << 20), path.string());
  try {
    return BankMeta{.model_fingerprint = json.at("model_fingerprint"),
                    .model = json.at("model"),
                    .policy_step = json.at("policy_step"),
                    .seed = json.at("seed"),
                    .stream = json.value("stream", std::string()),
                    .temperature = json.at("temperature"),
                    .top_p = json.at("top_p"),
                    .top_k = json.at("top_k"),
                    .max_response_tokens = json.at("max_response_tokens"),
                    .precision = json.at("precision"),
                    .requests_fingerprint = json.at("requests_fingerprint"),
                    .count = json.at("count"),
                    .content = json.value("content", "")};
  } catch (const Json::exception& error) {
    fail(path.string(), ": not the description of a bank: ", error.what(),
         " (damaged? What belongs to something else "
         "cannot lie under this name beside ",
         bank.filename().string(), ")");
  }
}

namespace {

void write_bank_meta(const Path& bank, const BankMeta& meta) {
  const nlohmann::ordered_json json = {{"model_fingerprint", meta.model_fingerprint},
                                       {"model", meta.model},
                                       {"policy_step", meta.policy_step},
                                       {"seed", meta.seed},
                                       {"stream", meta.stream},
                                       {"temperature", meta.temperature},
                                       {"top_p", meta.top_p},
                                       {"top_k", meta.top_k},
                                       {"max_response_tokens", meta.max_response_tokens},
                                       {"precision", meta.precision},
                                       {"requests_fingerprint", meta.requests_fingerprint},
                                       {"count", meta.count},
                                       {"content", meta.content}};
  // A path need not be UTF-8; the model's is there for people.
  write_file_atomically(bank_meta_path(bank),
                        json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

bool fingerprints_agree(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(kFingerprintOfAllValues) != b.starts_with(kFingerprintOfAllValues);
}

std::string bank_difference(const BankMeta& found, const BankMeta& expected) {
  std::ostringstream text;
  const auto compare = [&](std::string_view name, const auto& is, const auto& should_be) {
    if (is != should_be && text.tellp() == 0) text << name << " is " << is << ", expected " << should_be;
  };
  if (!fingerprints_agree(found.model_fingerprint, expected.model_fingerprint))
    compare("model_fingerprint", found.model_fingerprint, expected.model_fingerprint);
  compare("policy_step", found.policy_step, expected.policy_step);
  compare("seed", found.seed, expected.seed);
  compare("stream", found.stream, expected.stream);
  compare("temperature", found.temperature, expected.temperature);
  compare("top_p", found.top_p, expected.top_p);
  compare("top_k", found.top_k, expected.top_k);
  compare("max_response_tokens", found.max_response_tokens, expected.max_response_tokens);
  compare("precision", found.precision, expected.precision);
  compare("requests_fingerprint", found.requests_fingerprint, expected.requests_fingerprint);
  compare("count", found.count, expected.count);
  return text.str();
}

std::string bank_damage(const Path& bank) {
  try {
    (void)read_rollouts(bank);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void remove_bank(const Path& bank) {
  for (const Path& path : {bank, bank_meta_path(bank), bank_partial_path(bank)})
    std::filesystem::remove(path);
}

// --- the stream ---

BankStream::BankStream(Path bank, std::vector<RolloutKey> requests, const BankMeta& meta,
                       const RolloutLimits& limits)
    : bank_(std::move(bank)),
      partial_(bank_partial_path(bank_)),
      requests_(std::move(requests)),
      lines_(requests_.size()),
      meta_(meta) {
  for (size_t i = 0; i < requests_.size(); ++i)
    if (!request_index_.emplace(key_text(requests_[i].query_id, requests_[i].sample), i).second)
      fail(bank_.string(), ": query \"", requests_[i].query_id, "\" sample ", requests_[i].sample,
           " is requested twice");
  const auto has_meta = [&] {
    const auto found = read_bank_meta(bank_);
    const std::string difference = found ? bank_difference(*found, meta) : "";
    if (!difference.empty())
      fail(bank_meta_path(bank_).string(), ": made in another way: ", difference,
           "; move the bank away to sample a new one");
    return found.has_value();
  };
  has_meta();  // refuses before anything is written
  // The lock on the partial file: from here on no other process changes what is read.
  if (!std::filesystem::exists(bank_)) file_.emplace(partial_);
  const bool has_bank = !file_ || std::filesystem::exists(bank_);  // maybe finished just now
  if (!has_meta()) {
    if (has_bank)
      fail(bank_.string(), ": exists, but not ", bank_meta_path(bank_).string(),
           "; move it away or use it as {source: bank}");
    file_->cut(0);  // of an unknown origin
    write_bank_meta(bank_, meta);
  }
  if (has_bank) {
    check_content(bank_, *read_bank_meta(bank_), sha256_file(bank_));
    is_finished_ = true;
    num_done_ = requests_.size();
    file_.reset();
    std::filesystem::remove(partial_);  // a kill may have come between the bank and this
    return;
  }
  const uint64_t valid = read_partial(limits);
  if (valid < file_->size()) {
    log_warning(partial_.string(), ": cut from ", file_->size(), " to ", valid,
                " bytes, the rest is not whole");
    file_->cut(valid);
  }
}

// Takes in the rows of an interrupted stream; returns the size of its valid beginning.
uint64_t BankStream::read_partial(const RolloutLimits& limits) {
  const MappedFile file(partial_);
  const std::string_view content = file.text();
  uint64_t begin = 0, number = 0;
  for (size_t end; (end = content.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    const std::string where = partial_.string() + ":" + std::to_string(++number);
    const auto row = checked_row(content.substr(begin, end - begin));
    Rollout rollout;
    try {
      if (!row) fail(where, ": its checksum does not fit");
      rollout = parse_rollout(*row, where, limits).rollout;
    } catch (const Error& error) {
      log_warning(
          error.what());  // a crash of the machine can leave such a tail; its responses are sampled again
      return begin;
    }
    const auto found = request_index_.find(key_text(rollout.query_id, rollout.sample));
    if (found == request_index_.end())
      fail(where, ": query \"", rollout.query_id, "\" sample ", rollout.sample, " was not requested");
    if (lines_[found->second].size == 0) ++num_done_;
    lines_[found->second] = {begin, row->size()};
  }
  return begin;
}

bool BankStream::has(const RolloutKey& key) const {
  if (is_finished_) return request_index_.contains(key_text(key.query_id, key.sample));
  const auto found = request_index_.find(key_text(key.query_id, key.sample));
  return found != request_index_.end() && lines_[found->second].size > 0;
}

std::vector<size_t> BankStream::missing() const {
  std::vector<size_t> positions;
  if (is_finished_) return positions;
  for (size_t i = 0; i < lines_.size(); ++i)
    if (lines_[i].size == 0) positions.push_back(i);
  return positions;
}

void BankStream::add(const Rollout& rollout) {
  const auto found = request_index_.find(key_text(rollout.query_id, rollout.sample));
  if (is_finished_ || found == request_index_.end() || lines_[found->second].size > 0)
    fail(bank_.string(), ": query \"", rollout.query_id, "\" sample ", rollout.sample,
         " was not requested or is there already");
  const std::string line = rollout_line(rollout);
  const uint64_t begin = file_->size();
  file_->append_unsynced(with_checksum(line));
  lines_[found->second] = {begin, line.size()};
  ++num_done_;
}

void BankStream::sync() {
  if (file_) file_->sync();
}

void BankStream::finish() {
  if (is_finished_) return;
  if (num_done_ != requests_.size())
    fail(bank_.string(), ": ", requests_.size() - num_done_, " of ", requests_.size(),
         " responses are missing");
  file_->sync();
  {
    const MappedFile partial(partial_);
    AtomicFile file(bank_);
    Sha256 digest;
    for (const Line& line : lines_)
      for (const std::string_view text :
           {partial.text().substr(line.begin, line.size), std::string_view("\n")}) {
        file.write(text);
        digest.add(text);
      }
    // Before the bank appears: a bank without its hash would be trusted as it is.
    meta_.content = digest.hexadecimal();
    write_bank_meta(bank_, meta_);
    file.commit();
  }
  file_.reset();
  std::filesystem::remove(partial_);
  // Nobody looks for it again once the run has gone on: a power cut must not bring it back.
  sync_directory(bank_.has_parent_path() ? bank_.parent_path() : Path("."));
  is_finished_ = true;
}

}  // namespace ropd::io
