#include "train/open_iteration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "io/safetensors.h"
#include "support/test_data.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

constexpr int64_t kVocabulary = 151936;

OpenIteration example() {
  OpenIteration open;
  for (uint32_t i = 0; i < 2; ++i) {
    Rollout rollout;
    rollout.query_id = "same";  // a mixture may hold one response twice
    rollout.sample = 3;
    rollout.prompt_ids = {1, 2};
    rollout.response_ids = {5, 151935, 7};
    rollout.finish = Finish::eos;
    rollout.policy_step = 40;
    rollout.seed = 9;
    rollout.sampled_logprobs = {-0.1f, -std::nextafter(1.0f, 2.0f), -3e-30f};
    open.rollouts.push_back(rollout);
    open.source.push_back(i);
    distill::Supervision s;
    s.num_candidates = 2;
    s.ids = {151935, 0, 1, 2, 3, 4};
    s.old_logprobs = {-0.1f, -1e-7f, -2.5f, -3, -4, -5};
    s.coefficients = {0.3f, -1e-20f, 0, 1, 2, 3};
    s.teacher_logprobs = {-1, -INFINITY, -2, -3, -4, -5};
    s.is_valid = {1, 0, 1};
    open.supervision.push_back(s);
  }
  open.record.iteration = 7;
  open.record.source = "mix(current,initial)";
  open.record.policy_step = 24;
  open.record.distillation.kl_candidates = 0.1 + 0.2;
  open.record.drift_mean = 1.0 / 3;
  open.record.response_length_mean = 3;
  return open;
}

void expect_equal(const OpenIteration& a, const OpenIteration& b) {
  ASSERT_EQ(a.rollouts.size(), b.rollouts.size());
  EXPECT_EQ(a.source, b.source);
  for (size_t i = 0; i < a.rollouts.size(); ++i) {
    EXPECT_EQ(a.rollouts[i].response_ids, b.rollouts[i].response_ids);
    EXPECT_EQ(a.rollouts[i].prompt_ids, b.rollouts[i].prompt_ids);
    EXPECT_EQ(a.rollouts[i].sampled_logprobs, b.rollouts[i].sampled_logprobs);
    EXPECT_EQ(a.rollouts[i].policy_step, b.rollouts[i].policy_step);
    EXPECT_EQ(a.rollouts[i].finish, b.rollouts[i].finish);
  }
  ASSERT_EQ(a.supervision.size(), b.supervision.size());
  for (size_t i = 0; i < a.supervision.size(); ++i) {
    EXPECT_EQ(a.supervision[i].num_candidates, b.supervision[i].num_candidates);
    EXPECT_EQ(a.supervision[i].ids, b.supervision[i].ids);
    EXPECT_EQ(a.supervision[i].old_logprobs, b.supervision[i].old_logprobs);
    EXPECT_EQ(a.supervision[i].coefficients, b.supervision[i].coefficients);
    EXPECT_EQ(a.supervision[i].teacher_logprobs, b.supervision[i].teacher_logprobs);
    EXPECT_EQ(a.supervision[i].is_valid, b.supervision[i].is_valid);
  }
  EXPECT_EQ(a.record.iteration, b.record.iteration);
  EXPECT_EQ(a.record.source, b.record.source);
  EXPECT_EQ(a.record.distillation.kl_candidates, b.record.distillation.kl_candidates);
  EXPECT_EQ(a.record.drift_mean, b.record.drift_mean);
}

TEST(OpenIteration, ComesBackExactly) {
  const test::TemporaryDirectory folder;
  const OpenIteration open = example();
  save_open_iteration(folder.path(), open);
  expect_equal(load_open_iteration(folder.path(), kVocabulary), open);
}

TEST(OpenIteration, MayBeWithoutSupervision) {
  const test::TemporaryDirectory folder;
  OpenIteration open = example();
  open.supervision.clear();
  save_open_iteration(folder.path(), open);
  expect_equal(load_open_iteration(folder.path(), kVocabulary), open);
}

TEST(OpenIteration, FilesThatDoNotBelongTogetherAreRefused) {
  const test::TemporaryDirectory folder, other;
  OpenIteration open = example();
  save_open_iteration(folder.path(), open);
  for (Rollout& rollout : open.rollouts) {
    rollout.response_ids.push_back(1);
    rollout.sampled_logprobs.push_back(-1);
  }
  save_open_iteration(other.path(), open);
  std::filesystem::copy_file(other.path() / "open_rollouts.jsonl", folder.path() / "open_rollouts.jsonl",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_ANY_THROW((void)load_open_iteration(folder.path(), kVocabulary));
}

// Three halves are six bytes: one float and a half.
TEST(OpenIteration, ValuesOfAnotherTypeAreRefused) {
  const test::TemporaryDirectory folder;
  save_open_iteration(folder.path(), example());
  const Path path = folder.path() / "open_supervision.safetensors";
  const io::SafetensorsFile file(path);
  std::vector<io::StoredTensor> tensors = file.tensors();
  const std::array<uint16_t, 3> halves = {1, 2, 3};
  tensors[0].dtype = DType::f16;
  tensors[0].shape = {3};
  tensors[0].bytes = std::as_bytes(std::span(halves));
  io::write_safetensors(path, tensors);
  EXPECT_THROW((void)load_open_iteration(folder.path(), kVocabulary), Error);
}

// What a file says decides nothing about memory that is there already.
TEST(OpenIteration, EveryColumnIsCheckedAgainstTheRollouts) {
  const test::TemporaryDirectory folder;
  const OpenIteration open = example();
  save_open_iteration(folder.path(), open);
  const Path path = folder.path() / "open_supervision.safetensors";
  const io::SafetensorsFile file(path);
  const std::vector<io::StoredTensor> whole = file.tensors();
  for (size_t i = 0; i < whole.size(); ++i) {
    auto tensors = whole;
    tensors[i].bytes = tensors[i].bytes.first(tensors[i].bytes.size() - sizeof(float));
    --tensors[i].shape[0];
    io::write_safetensors(path, tensors);
    EXPECT_THAT(test::error_of([&] { (void)load_open_iteration(folder.path(), kVocabulary); }),
                testing::HasSubstr("(damaged?)"))
        << whole[i].name;
  }
  for (const char* name : {"num_candidates", "ids", "source"})
    for (const float value : {-1.0f, NAN, 1e9f}) {
      auto tensors = whole;
      for (io::StoredTensor& tensor : tensors)
        if (tensor.name == name) {
          std::vector<float> values(tensor.bytes.size() / sizeof(float), value);
          tensor.bytes = std::as_bytes(std::span(values));
          io::write_safetensors(path, tensors);
        }
      EXPECT_THAT(test::error_of([&] { (void)load_open_iteration(folder.path(), kVocabulary); }),
                  testing::HasSubstr("whole number"))
          << name << " " << value;
    }
  io::write_safetensors(path, whole);
  EXPECT_THAT(test::error_of([&] { (void)load_open_iteration(folder.path(), 1000); }),
              testing::HasSubstr("open_rollouts.jsonl:1"));
}

}  // namespace
}  // namespace ropd::train
