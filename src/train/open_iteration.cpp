#include "train/open_iteration.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/error.h"
#include "io/jsonl.h"
#include "io/metrics_file.h"
#include "io/rollout_file.h"
#include "io/safetensors.h"

namespace ropd::train {
namespace {

constexpr const char* kRollouts = "open_rollouts.jsonl";
constexpr const char* kSupervision = "open_supervision.safetensors";
constexpr const char* kRecord = "open_record.jsonl";

// Ids and flags are below 2^24, so f32 holds them exactly.
struct Columns {
  std::vector<float> source, num_candidates, ids, old_logprobs, coefficients, teacher_logprobs, is_valid;
  auto named() {
    return std::array{std::pair{"source", &source},
                      std::pair{"num_candidates", &num_candidates},
                      std::pair{"ids", &ids},
                      std::pair{"old_logprobs", &old_logprobs},
                      std::pair{"coefficients", &coefficients},
                      std::pair{"teacher_logprobs", &teacher_logprobs},
                      std::pair{"is_valid", &is_valid}};
  }
};

template <class From>
void append(std::vector<float>& to, const From& from) {
  for (const auto value : from) to.push_back(static_cast<float>(value));
}

constexpr uint32_t kMaxSources = 1 << 16;

Columns read_columns(const Path& path) {
  const io::SafetensorsFile file(path);
  Columns columns;
  for (const auto& [name, values] : columns.named()) {
    const io::StoredTensor& tensor = file.tensor(name);
    if (tensor.dtype != DType::f32)
      fail(path.string(), ": ", name, " is ", dtype_name(tensor.dtype), ", expected F32 (damaged?)");
    values->resize(tensor.bytes.size() / sizeof(float));
    std::ranges::copy(tensor.bytes, std::as_writable_bytes(std::span(*values)).begin());
  }
  return columns;
}

[[noreturn]] void damaged(const Path& folder, const char* name, size_t found, size_t expected) {
  fail((folder / kSupervision).string(), ": ", name, " holds ", found, " values, its rollouts need ",
       expected, " (damaged?)");
}

// A float that must be one of 0 .. end - 1.
uint32_t whole_number(const Path& folder, float value, int64_t end) {
  if (!(value >= 0 && value < static_cast<float>(end)))
    fail((folder / kSupervision).string(), ": holds ", value, " where a whole number below ", end,
         " is expected (damaged?)");
  return static_cast<uint32_t>(value);
}

std::vector<distill::Supervision> read_supervision(const Path& folder, const Columns& columns,
                                                   const OpenIteration& open, int64_t vocab_size) {
  if (columns.num_candidates.size() != open.rollouts.size())
    damaged(folder, "num_candidates", columns.num_candidates.size(), open.rollouts.size());
  size_t values = 0, positions = 0;
  for (size_t i = 0; i < open.rollouts.size(); ++i) {
    const size_t length = open.rollouts[i].response_ids.size();
    values += length * whole_number(folder, columns.num_candidates[i], vocab_size + 1);
    positions += length;
  }
  for (const auto& [name, column] : {std::pair{"ids", &columns.ids},
                                     {"old_logprobs", &columns.old_logprobs},
                                     {"coefficients", &columns.coefficients},
                                     {"teacher_logprobs", &columns.teacher_logprobs}})
    if (column->size() != values) damaged(folder, name, column->size(), values);
  if (columns.is_valid.size() != positions) damaged(folder, "is_valid", columns.is_valid.size(), positions);

  std::vector<distill::Supervision> supervision;
  size_t at = 0, position = 0;
  for (size_t i = 0; i < open.rollouts.size(); ++i) {
    const size_t length = open.rollouts[i].response_ids.size();
    distill::Supervision s;
    s.num_candidates = static_cast<uint32_t>(columns.num_candidates[i]);
    for (const size_t end = at + length * s.num_candidates; at < end; ++at) {
      s.ids.push_back(static_cast<Token>(whole_number(folder, columns.ids[at], vocab_size)));
      s.old_logprobs.push_back(columns.old_logprobs[at]);
      s.coefficients.push_back(columns.coefficients[at]);
      s.teacher_logprobs.push_back(columns.teacher_logprobs[at]);
    }
    for (const size_t end = position + length; position < end; ++position)
      s.is_valid.push_back(static_cast<uint8_t>(columns.is_valid[position] != 0));
    supervision.push_back(std::move(s));
  }
  return supervision;
}

}  // namespace

std::vector<ScoredRollout> OpenIteration::minibatch(const MinibatchRange& range) const {
  assert(range.begin >= first_supervised && range.end - first_supervised <= supervision.size());
  std::vector<ScoredRollout> items;
  for (size_t i = range.begin; i < range.end; ++i)
    items.push_back({&rollouts[i], &supervision[i - first_supervised], source[i]});
  return items;
}

void save_open_iteration(const Path& folder, const OpenIteration& open) {
  io::write_rollouts(folder / kRollouts, open.rollouts);
  Columns columns;
  append(columns.source, open.source);
  for (const distill::Supervision& s : open.supervision) {
    columns.num_candidates.push_back(static_cast<float>(s.num_candidates));
    append(columns.ids, s.ids);
    append(columns.old_logprobs, s.old_logprobs);
    append(columns.coefficients, s.coefficients);
    append(columns.teacher_logprobs, s.teacher_logprobs);
    append(columns.is_valid, s.is_valid);
  }
  std::vector<io::StoredTensor> tensors;
  for (const auto& [name, values] : columns.named())
    tensors.push_back(
        {name, DType::f32, {static_cast<int64_t>(values->size())}, std::as_bytes(std::span(*values))});
  io::write_safetensors(folder / kSupervision, tensors);
  write_file_atomically(folder / kRecord, io::metrics_line(open.record) + "\n");
}

OpenIteration load_open_iteration(const Path& folder, int64_t vocab_size) {
  OpenIteration open;
  // Line by line: a mixture may hold the same (query, sample) from both its sources, which a bank may not.
  io::JsonlReader reader(folder / kRollouts);
  while (const auto line = reader.next())
    open.rollouts.push_back(
        io::parse_rollout(line->text, reader.where(line->number), {.vocab_size = vocab_size, .eos_ids = {}})
            .rollout);
  Columns columns = read_columns(folder / kSupervision);
  if (columns.source.size() != open.rollouts.size())
    damaged(folder, "source", columns.source.size(), open.rollouts.size());
  for (const float source : columns.source) open.source.push_back(whole_number(folder, source, kMaxSources));
  // No supervision at all: every minibatch is scored on its own.
  if (!columns.num_candidates.empty()) open.supervision = read_supervision(folder, columns, open, vocab_size);
  const auto metrics = io::read_metrics(folder / kRecord);
  if (metrics.iterations.size() != 1) fail((folder / kRecord).string(), ": expected one iteration");
  open.record = metrics.iterations.front();
  return open;
}

}  // namespace ropd::train
