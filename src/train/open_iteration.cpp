#include "train/open_iteration.h"

#include <algorithm>
#include <array>

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

}  // namespace

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

OpenIteration load_open_iteration(const Path& folder) {
  OpenIteration open;
  // Line by line: a mixture may hold the same (query, sample) from both its sources, which a bank may not.
  io::JsonlReader reader(folder / kRollouts);
  while (const auto line = reader.next())
    open.rollouts.push_back(io::parse_rollout(line->text, reader.where(line->number), {}).rollout);
  const io::SafetensorsFile file(folder / kSupervision);
  Columns columns;
  for (const auto& [name, values] : columns.named()) {
    const io::StoredTensor& tensor = file.tensor(name);
    if (tensor.dtype != DType::f32)
      fail((folder / kSupervision).string(), ": ", name, " is ", dtype_name(tensor.dtype),
           ", expected F32 (damaged?)");
    values->resize(tensor.bytes.size() / sizeof(float));
    std::ranges::copy(tensor.bytes, std::as_writable_bytes(std::span(*values)).begin());
  }
  for (const float source : columns.source) open.source.push_back(static_cast<uint32_t>(source));
  size_t at = 0, position = 0;
  for (size_t i = 0; i < columns.num_candidates.size(); ++i) {
    const size_t length = open.rollouts.at(i).response_ids.size(),
                 k = static_cast<size_t>(columns.num_candidates[i]);
    if (at + length * k > columns.ids.size() || position + length > columns.is_valid.size())
      fail((folder / kSupervision).string(), ": fewer values than the ", open.rollouts.size(),
           " rollouts need (damaged?)");
    distill::Supervision s;
    s.num_candidates = static_cast<uint32_t>(k);
    for (size_t j = at; j < at + length * k; ++j) {
      s.ids.push_back(static_cast<Token>(columns.ids[j]));
      s.old_logprobs.push_back(columns.old_logprobs[j]);
      s.coefficients.push_back(columns.coefficients[j]);
      s.teacher_logprobs.push_back(columns.teacher_logprobs[j]);
    }
    for (size_t t = position; t < position + length; ++t)
      s.is_valid.push_back(static_cast<uint8_t>(columns.is_valid[t]));
    at += length * k;
    position += length;
    open.supervision.push_back(std::move(s));
  }
  const auto metrics = io::read_metrics(folder / kRecord);
  if (metrics.iterations.size() != 1) fail((folder / kRecord).string(), ": expected one iteration");
  open.record = metrics.iterations.front();
  return open;
}

}  // namespace ropd::train
