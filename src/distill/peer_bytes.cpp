#include "distill/peer_bytes.h"

namespace ropd::distill {
namespace {

// One list of the fields for both directions.
void each_field(auto& r, auto&& field) requires requires { r.response_ids; }
{
  field(r.query_id), field(r.sample), field(r.prompt_ids), field(r.response_ids), field(r.finish);
  field(r.policy_step), field(r.seed), field(r.text), field(r.answer), field(r.sampled_logprobs);
}
void each_field(auto& s, auto&& field) requires requires { s.candidates; }
{
  field(s.query_id), field(s.sample), field(s.top_k), field(s.candidates), field(s.student_logprobs);
  field(s.teacher_logprobs), field(s.sampled_logprobs), field(s.teacher_sampled_logprobs);
  field(s.student_entropy), field(s.is_aligned), field(s.overlap);
}
void each_candidate_field(auto& s, auto&& field) { field(s.top_k), field(s.candidates); }
void each_field_of_teacher(auto& s, auto&& field) {
  field(s.teacher_logprobs), field(s.teacher_sampled_logprobs), field(s.is_aligned), field(s.overlap);
}
void each_field(auto& s, auto&& field) requires requires { s.coefficients; }
{
  field(s.num_candidates), field(s.ids), field(s.old_logprobs), field(s.coefficients);
  field(s.teacher_logprobs), field(s.is_valid);
}
void each_field(auto& c, auto&& field) requires requires { c.objective; }
{
  auto& o = c.objective;
  field(o.kind), field(o.weights), field(o.eos), field(o.eos_ids), field(o.clip), field(o.dual_clip);
  field(o.max_log_ratio), field(o.beta), field(o.student_temperature), field(o.teacher_temperature);
  field(c.old_is_current);
}

void put_fields(ByteWriter& writer, const auto& record) {
  each_field(record, [&](const auto& value) { writer.put(value); });
}
void get_fields(ByteReader& reader, auto& record) {
  each_field(record, [&](auto& value) { reader.get(value); });
}

}  // namespace

void put(ByteWriter& writer, const Rollout& rollout) { put_fields(writer, rollout); }
void get(ByteReader& reader, Rollout& rollout) { get_fields(reader, rollout); }
void put(ByteWriter& writer, const Scores& scores) { put_fields(writer, scores); }
void get(ByteReader& reader, Scores& scores) { get_fields(reader, scores); }
void put_candidates(ByteWriter& writer, const Scores& scores) {
  each_candidate_field(scores, [&](const auto& value) { writer.put(value); });
}
void get_candidates(ByteReader& reader, Scores& scores) {
  each_candidate_field(scores, [&](auto& value) { reader.get(value); });
}
void put_teachers_side(ByteWriter& writer, const Scores& scores) {
  each_field_of_teacher(scores, [&](const auto& value) { writer.put(value); });
}
void get_teachers_side(ByteReader& reader, Scores& scores) {
  each_field_of_teacher(scores, [&](auto& value) { reader.get(value); });
}
void put(ByteWriter& writer, const Supervision& supervision) { put_fields(writer, supervision); }
void get(ByteReader& reader, Supervision& supervision) { get_fields(reader, supervision); }
void put(ByteWriter& writer, const GradientConfig& config) { put_fields(writer, config); }
void get(ByteReader& reader, GradientConfig& config) { get_fields(reader, config); }

void put_shards(ByteWriter& writer, std::span<const Shard> minibatch, size_t first, size_t stride) {
  writer.put(uint64_t{minibatch.size()});
  for (size_t s = 0; s < minibatch.size(); ++s) {
    const bool is_sent = s % stride == first;
    writer.put(is_sent ? uint64_t{minibatch[s].size()} : uint64_t{0});
    if (!is_sent) continue;
    for (const Microbatch& microbatch : minibatch[s]) {
      writer.put(uint64_t{microbatch.size()});
      for (const TrainingItem& item : microbatch) {
        put(writer, *item.rollout);
        put(writer, *item.supervision);
        writer.put(item.token_weight);
      }
    }
  }
}

ReceivedShards get_shards(ByteReader& reader) {
  ReceivedShards received;
  received.shards.resize(reader.get<uint64_t>());
  for (Shard& shard : received.shards) {
    for (auto microbatches = reader.get<uint64_t>(); microbatches > 0; --microbatches) {
      Microbatch& microbatch = shard.emplace_back();
      for (auto items = reader.get<uint64_t>(); items > 0; --items) {
        get(reader, received.rollouts.emplace_back());
        get(reader, received.supervision.emplace_back());
        microbatch.push_back({.token_weight = reader.get<float>()});
      }
    }
  }
  // The lists have grown to their places.
  size_t next = 0;
  for (Shard& shard : received.shards)
    for (Microbatch& microbatch : shard)
      for (TrainingItem& item : microbatch) {
        item.rollout = &received.rollouts[next];
        item.supervision = &received.supervision[next++];
      }
  return received;
}

}  // namespace ropd::distill
