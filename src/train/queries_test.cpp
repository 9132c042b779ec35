#include "train/queries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/log.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

QuerySet load(const test::TinyWorld& world, std::vector<std::string> overrides = {}) {
  set_log_level(LogLevel::quiet);
  const TrainConfig config = world.config("run", std::move(overrides));
  return load_queries(config, text::PromptRenderer::load(config.student, {config.data.prompt_prefix,
                                                                          config.data.prompt_suffix, false}));
}

std::vector<std::string> ids_of(const QuerySet& set) {
  std::vector<std::string> ids;
  for (const TrainingQuery& entry : set.queries) ids.push_back(entry.query.id);
  return ids;
}

TEST(Queries, AreRenderedAsTheModelReadsThem) {
  const test::TinyWorld world;
  const QuerySet set = load(world, {"data.prompt_prefix=z", "data.prompt_suffix=y"});
  EXPECT_THAT(ids_of(set), ElementsAre("q0", "q1", "q2", "q3", "q4", "q5"));
  EXPECT_THAT(*set.queries[2].prompt, ElementsAre(25, 0, 1, 28, 24));  // z a b 2 y
  EXPECT_EQ(set.num_in_file, 6u);
}

TEST(Queries, AreChosenAndOrderedBySeed) {
  const test::TinyWorld world;
  EXPECT_THAT(ids_of(load(world, {"data.select={first: 2}"})), ElementsAre("q0", "q1"));
  EXPECT_THAT(ids_of(load(world, {"data.select={ids: [q4, q1]}"})), ElementsAre("q4", "q1"));
  const auto permuted = load(world, {"data.order_seed=3"});
  EXPECT_THAT(ids_of(permuted), testing::UnorderedElementsAre("q0", "q1", "q2", "q3", "q4", "q5"));
  EXPECT_NE(ids_of(permuted), ids_of(load(world)));
  EXPECT_NE(permuted.fingerprint, load(world).fingerprint);
  EXPECT_EQ(permuted.fingerprint, load(world, {"data.order_seed=3"}).fingerprint);
}

TEST(Queries, WithLongPromptsAreDroppedAndCounted) {
  const test::TinyWorld world;
  write_file_atomically(
      world.path("queries.jsonl"),
      "{\"id\": \"short\", \"problem\": \"ab\"}\n{\"id\": \"long\", \"problem\": \"abcdefgh\"}\n");
  const QuerySet set = load(world, {"data.max_prompt_tokens=4"});
  EXPECT_THAT(ids_of(set), ElementsAre("short"));
  EXPECT_EQ(set.num_too_long, 1u);
  using Settings = std::vector<std::string>;
  for (const Settings& settings :
       {Settings{"data.max_prompt_tokens=1"},
        Settings{"data.max_prompt_tokens=1", "data.select.all=false", "data.select.count=1"}})
    EXPECT_THAT(error_of([&] { load(world, settings); }),
                HasSubstr("no query is left of 2, all prompts exceed 1 tokens"));
}

TEST(Queries, AnEmptyFileIsRefused) {
  const test::TinyWorld world;
  write_file_atomically(world.path("queries.jsonl"), "");
  EXPECT_THAT(error_of([&] { load(world); }), HasSubstr("queries.jsonl"));
}

TEST(Queries, TakeTurnsAndEveryStretchHoldsEachEquallyOften) {
  const test::TinyWorld world;
  const QuerySet set = load(world);
  std::map<std::string, int> count;
  for (const auto& request : take_requests(set, 30, 12, {7, "test"}, false)) ++count[request.query_id];
  for (const auto& [id, times] : count) EXPECT_EQ(times, 2) << id;
  const auto requests = take_requests(set, 4, 4, {7, "test"}, false);
  const auto name = [&](size_t i) { return requests[i].query_id + "/" + std::to_string(requests[i].sample); };
  EXPECT_EQ(name(0), "q4/0");
  EXPECT_EQ(name(1), "q5/0");
  EXPECT_EQ(name(2), "q0/1");
  EXPECT_EQ(requests[0].stream, RandomStream(7, "test"));
  EXPECT_EQ(requests[0].answer, "4");
}

TEST(Queries, GroupedKeepsTheSameRequestsTogether) {
  const test::TinyWorld world;
  const QuerySet set = load(world);
  std::vector<std::string> names;
  for (const auto& request : take_requests(set, 0, 12, {7, "test"}, true))
    names.push_back(request.query_id + "/" + std::to_string(request.sample));
  EXPECT_EQ(names[0], "q0/0");
  EXPECT_EQ(names[1], "q0/1");
  EXPECT_EQ(names[2], "q1/0");
  EXPECT_EQ(names.back(), "q5/1");
}

}  // namespace
}  // namespace ropd::train
