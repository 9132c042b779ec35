// Rollouts, scores and supervised minibatches as bytes for other ranks (base/bytes.h).
#pragma once
#include <span>
#include <vector>

#include "base/bytes.h"
#include "distill/gradient.h"
#include "records/scores.h"

namespace ropd::distill {

// What scoring reads: ids, tokens, text.
void put(ByteWriter& writer, const Rollout& rollout);
void get(ByteReader& reader, Rollout& rollout);

void put(ByteWriter& writer, const Scores& scores);
void get(ByteReader& reader, Scores& scores);

// What the teacher's side of scores is made from, and that side, where the leader has the student's.
void put_candidates(ByteWriter& writer, const Scores& scores);
void get_candidates(ByteReader& reader, Scores& scores);
void put_teachers_side(ByteWriter& writer, const Scores& scores);
void get_teachers_side(ByteReader& reader, Scores& scores);

void put(ByteWriter& writer, const Supervision& supervision);
void get(ByteReader& reader, Supervision& supervision);

// All that a rank does not know of itself: precision and memory are its own.
void put(ByteWriter& writer, const GradientConfig& config);
void get(ByteReader& reader, GradientConfig& config);

// Shards of a minibatch, and what their items point to.
struct ReceivedShards {
  std::vector<Rollout> rollouts;
  std::vector<Supervision> supervision;
  std::vector<Shard> shards;  // [shards of the minibatch]; those that were not sent are empty
};
// Shards first, first + stride, ...
void put_shards(ByteWriter& writer, std::span<const Shard> minibatch, size_t first, size_t stride);
ReceivedShards get_shards(ByteReader& reader);

}  // namespace ropd::distill
