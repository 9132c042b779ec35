#include "train/adapter_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/stop.h"
#include "base/threads.h"
#include "distill/local_scorer.h"
#include "rollout/local_generator.h"
#include "support/adapters.h"
#include "support/model_files.h"
#include "support/whole_run.h"
#include "train/sft.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::HasSubstr;

const AdapterConfig kSome = {.rank = 2, .alpha = 4, .targets = {}, .ranks = {{"down_proj", 3}}, .alphas = {}};

class AdapterLearnerTest : public testing::Test {
 protected:
  AdapterLearnerTest() { set_log_level(LogLevel::quiet); }
  ~AdapterLearnerTest() override {
    clear_stop_request();
    set_num_threads(1);
    set_log_level(LogLevel::info);
  }
  const test::TinyWorld world_;
  const std::vector<Rollout> rollouts_ = test::random_rollouts(6, 37, 3);

  std::shared_ptr<const io::ModelDirectory> base() const {
    return std::make_shared<const io::ModelDirectory>(world_.path("student"));
  }
  model::Adapter adapter(uint64_t seed = 5) const {
    return test::random_adapter(base()->config(), kSome, seed);
  }
  AdapterLearner make(uint64_t seed = 5) const {
    return {AdapterBase(base()), adapter(seed), {.has_statistics = true}};
  }

  struct Minibatch {
    std::vector<distill::Supervision> supervision;
    std::vector<distill::Shard> shards;
  };
  // Two shards of a microbatch of three responses.
  Minibatch minibatch(AdapterLearner& learner, const model::Weights& teacher) const {
    distill::LocalScorer scorer{
        [&learner] { return learner.weights(); }, [&teacher] { return teacher; }, std::nullopt, {}};
    const auto scoring = scorer.score(rollouts_, {});
    Minibatch result;
    for (size_t i = 0; i < rollouts_.size(); ++i)
      result.supervision.push_back(distill::supervise(scoring.scores[i], rollouts_[i], {}));
    for (size_t m = 0; m < 2; ++m) {
      result.shards.push_back({{}});
      for (size_t i = 3 * m; i < 3 * m + 3; ++i)
        result.shards.back().front().push_back({&rollouts_[i], &result.supervision[i], 0.01f});
    }
    return result;
  }
  MinibatchGradient gradient(AdapterLearner& learner, const model::Weights& teacher) const {
    distill::LocalScorer scorer{
        [&learner] { return learner.weights(); }, [&teacher] { return teacher; }, std::nullopt, {}};
    return learner.gradient(minibatch(learner, teacher).shards, {}, scorer);
  }
  model::Weights teacher() const {
    return model::map_weights(std::make_shared<const io::ModelDirectory>(world_.path("teacher")));
  }
  static std::vector<float> values(FlatLearner& learner) {
    return {learner.values().begin(), learner.values().end()};
  }

  TrainConfig run_config(const std::string& output, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"adapter={rank: 2, alpha: 4}", "train.learning_rate=0.003"});
    return world_.config(output, more);
  }
  static Path newest_model(const TrainConfig& config) {
    return io::list_checkpoints(Path(config.output) / "checkpoints").back().path / "model";
  }
  static std::string final_adapter(const TrainConfig& config) {
    return sha256_file(newest_model(config) / "adapter_model.safetensors");
  }
};

TEST_F(AdapterLearnerTest, AStepIsTheGradientAtTheAdapterThroughAdamW) {
  AdapterLearner learner = make();
  const auto result = gradient(learner, teacher());
  ASSERT_TRUE(result.is_finite());
  EXPECT_GT(result.norm, 0);
  // The same by hand.
  const model::Adapter start = adapter();
  std::vector<float> expected(start.values().begin(), start.values().end());
  model::Gradients sum(start.slots(), base()->config().num_layers);
  distill::GradientMemory memory;
  const Minibatch batch = minibatch(learner, teacher());
  const auto weights = start.on(model::map_weights(base()));
  const double loss = distill::minibatch_gradient(sum, memory, weights, batch.shards, {}).weighted_loss;
  EXPECT_EQ(result.sums.weighted_loss, loss);
  EXPECT_EQ(result.norm, optim::global_norm(sum.values()));
  std::vector<float> m(expected.size()), v(expected.size());
  optim::AdamW adamw({.learning_rate = 0.01}, m, v);
  adamw.update(expected, sum.values(), 0.5);
  learner.update(0.01, 0.5);
  EXPECT_EQ(values(learner), expected);
}

TEST_F(AdapterLearnerTest, AStudentThatIsItsTeacherHasNoLossAndNoGradient) {
  AdapterLearner learner = make();
  const auto result = gradient(learner, learner.weights());
  EXPECT_EQ(result.sums.weighted_loss, 0);
  EXPECT_EQ(result.norm, 0);
}

TEST_F(AdapterLearnerTest, SampledLogProbabilitiesEqualScoredOnesBitForBit) {
  AdapterLearner learner = make();
  (void)gradient(learner, teacher());
  learner.update(0.05, 1);
  for (const auto precision :
       {kernels::Precision::f32, kernels::Precision::bf16, kernels::Precision::bf16_tiles}) {
    rollout::EngineConfig config;
    config.max_response_tokens = 12;
    config.with_logprobs = true;
    rollout::LocalGenerator generator(learner.weights(), precision, config);
    std::vector<rollout::Request> requests;
    for (uint32_t i = 0; i < 8; ++i)
      requests.push_back({"q" + std::to_string(i), 0,
                          std::make_shared<const std::vector<Token>>(rollouts_[i % 6].prompt_ids),
                          RandomStream(1, "test"), ""});
    std::vector<Rollout> sampled(requests.size());
    (void)generator.run(requests, {.on_done = [&](size_t i, Rollout&& r) { sampled[i] = std::move(r); }});
    model::Workspace workspace;
    const auto scores =
        distill::score_student(learner.weights(), sampled, {.top_k = 4, .precision = precision}, workspace);
    for (size_t i = 0; i < sampled.size(); ++i)
      EXPECT_EQ(scores[i].sampled_logprobs, sampled[i].sampled_logprobs);
  }
}

TEST_F(AdapterLearnerTest, GoesOnFromACheckpointBitForBitAndSavesEqualBytes) {
  AdapterLearner whole = make(), later = make(/*seed=*/6);
  const auto step = [&](AdapterLearner& learner) {
    (void)gradient(learner, teacher());
    learner.observe(1);
    learner.update(0.01, 1);
  };
  step(whole);
  step(whole);
  (void)whole.compare();
  step(whole);
  const Path folder = world_.path("checkpoint"), again = world_.path("again");
  for (const Path& path : {folder, again}) std::filesystem::create_directories(path);
  const LearnerState state = whole.save(folder, "step 3");
  later.restore(folder, state);
  EXPECT_EQ(later.save(again, "step 3"), state);
  for (const char* name : {"model/adapter_config.json", "model/adapter_model.safetensors", "model/README.md",
                           "optimizer.safetensors", "trigger.safetensors"})
    EXPECT_EQ(read_file(folder / name), read_file(again / name)) << name;
  step(whole);
  step(later);
  EXPECT_EQ(values(whole), values(later));
  EXPECT_EQ(whole.compare().distance, later.compare().distance);
}

TEST_F(AdapterLearnerTest, ACheckpointOfAnotherBaseOrAdapterIsRefused) {
  AdapterLearner learner = make();
  const Path folder = world_.path("checkpoint");
  std::filesystem::create_directories(folder);
  const LearnerState state = learner.save(folder, "");
  const auto other = std::make_shared<const io::ModelDirectory>(world_.path("teacher"));
  AdapterLearner on_another(AdapterBase(other), adapter(), {});
  EXPECT_THAT(error_of([&] { on_another.restore(folder, state); }), HasSubstr("trained on another base"));
  AdapterLearner narrower(
      AdapterBase(base()),
      model::Adapter(base()->config(), {.rank = 1, .targets = {}, .ranks = {}, .alphas = {}}), {});
  EXPECT_THAT(error_of([&] { narrower.restore(folder, state); }), HasSubstr("another adapter"));
}

TEST_F(AdapterLearnerTest, ABaseWithAFlippedBitIsRefusedBeforeAnythingIsMade) {
  ModelConfig shape = base()->config();
  shape.intermediate_size = 200;  // so that matrices have more values than a fingerprint reads
  const Path wide = world_.path("wide");
  test::write_tiny_directory(wide, test::random_parameters(shape, 3));
  const TrainConfig first = run_config("first", {"student=" + wide.string(), "train.iterations=3"});
  ASSERT_EQ(start_run(first, "test"), RunOutcome::done);
  const Path model = newest_model(first);
  test::flip_last_bit(wide / "model.safetensors", "model.layers.0.mlp.up_proj.weight");
  const auto error = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"student=" + wide.string()};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return error_of([&] { start_run(world_.config("run", overrides), "test"); });
  };
  const auto is_named = HasSubstr("the weights of its base " + wide.string());
  EXPECT_THAT(error({"adapter.path=" + model.string()}), is_named);
  EXPECT_THAT(error({"adapter={rank: 2, alpha: 4}", "continue_from=" + model.parent_path().string()}), is_named);
  EXPECT_THAT(error({"student=" + model.string()}), is_named);
  EXPECT_THAT(error({"student=" + world_.path("student").string(), "teacher=" + model.string()}), is_named);
  EXPECT_FALSE(std::filesystem::exists(world_.path("run")));
  AdapterLearner learner(AdapterBase(std::make_shared<const io::ModelDirectory>(wide)),
                         model::Adapter::load(*io::ModelDirectory(model).adapter()), {});
  EXPECT_THAT(error_of([&] { (void)learner.load_model(model); }), is_named);
}

TEST_F(AdapterLearnerTest, ARunIsTheSameForEveryNumberOfThreadsAndInPieces) {
  for (const std::string shards : {"1", "3"}) {
    std::string expected;
    for (const int threads : {1, 2, 3}) {
      const TrainConfig config =
          run_config("run" + shards + std::to_string(threads), {"train.shards=" + shards});
      set_num_threads(threads);
      ASSERT_EQ(start_run(config, "test"), RunOutcome::done);
      if (expected.empty()) expected = final_adapter(config);
      EXPECT_EQ(final_adapter(config), expected) << threads << " threads, " << shards << " shards";
    }
    const TrainConfig pieces = run_config("pieces" + shards, {"train.shards=" + shards});
    for (RunOutcome outcome = RunOutcome::stopped; outcome == RunOutcome::stopped;) {
      clear_stop_request();
      outcome = start_or_resume_run(pieces, "test", {.on_step = [](const StepRecord&) { request_stop(); }});
    }
    clear_stop_request();
    EXPECT_EQ(final_adapter(pieces), expected) << shards << " shards";
  }
}

TEST_F(AdapterLearnerTest, ARunTrainsTheAdapterAndItsModelIsAnAdapterOfTheStudent) {
  const TrainConfig config = run_config("run");
  const auto metrics = test::run_to_the_end(config);
  size_t compared = 0;
  for (const IterationRecord& record : metrics.iterations) {
    compared += record.drift_max.has_value();
    EXPECT_EQ(record.drift_max.value_or(0), 0);
  }
  EXPECT_GT(compared, 0u);
  const io::ModelDirectory saved(newest_model(config));
  ASSERT_NE(saved.adapter(), nullptr);
  EXPECT_EQ(saved.base_path(), std::filesystem::absolute(world_.path("student")));
  const auto trained = model::Adapter::load(*saved.adapter());
  float largest = 0;
  for (size_t i = 1; i < trained.slots().size(); i += 2)  // B, which began at zero
    for (int64_t at = 0; at < trained.slots()[i].size; ++at)
      largest =
          std::max(largest, std::abs(trained.values()[static_cast<size_t>(trained.slots()[i].offset + at)]));
  EXPECT_GT(largest, 0);
  // The bank came from the student as it was: the adapter began by changing nothing.
  const TrainConfig full = world_.config("full");
  (void)test::run_to_the_end(full);
  EXPECT_EQ(read_file(Path(config.output) / "banks/initial.jsonl"),
            read_file(Path(full.output) / "banks/initial.jsonl"));
}

TEST_F(AdapterLearnerTest, ARunMayStartFromAnAdapterOrContinueOne) {
  const TrainConfig first = run_config("first", {"train.iterations=3"});
  ASSERT_EQ(start_run(first, "test"), RunOutcome::done);
  const Path checkpoint = newest_model(first).parent_path();
  const TrainConfig from_path =
      world_.config("from_path", {"adapter.path=" + checkpoint.string(), "train.iterations=3"});
  ASSERT_EQ(start_run(from_path, "test"), RunOutcome::done);
  EXPECT_EQ(io::ModelDirectory(newest_model(from_path)).adapter()->matrices(),
            io::ModelDirectory(newest_model(first)).adapter()->matrices());
  const TrainConfig continued =
      run_config("continued", {"continue_from=" + checkpoint.string(), "train.iterations=3"});
  EXPECT_EQ(start_run(continued, "test"), RunOutcome::done);
  EXPECT_THAT(
      error_of([&] { start_run(world_.config("full", {"continue_from=" + checkpoint.string()}), "test"); }),
      HasSubstr("holds an adapter, but this run trains every parameter"));
}

TEST_F(AdapterLearnerTest, ImpossibleAdaptersAreRefusedBeforeAnythingIsMade) {
  const auto error = [&](const std::vector<std::string>& overrides) {
    return error_of([&] { start_run(world_.config("run", overrides), "test"); });
  };
  EXPECT_THAT(error({"adapter={rank: 13}"}), HasSubstr("rank 13 of model.layers.0.self_attn.k_proj"));
  EXPECT_THAT(error({"adapter={path: " + world_.path("teacher").string() + "}"}),
              HasSubstr("no adapter_config.json"));
  AdapterLearner learner = make();
  learner.save_model(world_.path("adapter"), "");
  EXPECT_THAT(error({"adapter={rank: 2}", "student=" + world_.path("adapter").string()}),
              HasSubstr("name its base here and the adapter in adapter.path"));
  EXPECT_THAT(error({"adapter={path: " + world_.path("adapter").string() + "}",
                     "student=" + world_.path("teacher").string()}),
              HasSubstr("trained on another base"));
  EXPECT_FALSE(std::filesystem::exists(world_.path("run")));
}

TEST_F(AdapterLearnerTest, AdapterDirectoriesServeAsStudentAndTeacher) {
  AdapterLearner learner = make();
  learner.save_model(world_.path("adapter"), "");
  const std::string path = world_.path("adapter").string();
  const auto as_teacher = test::run_to_the_end(world_.config("one", {"teacher=" + path}));
  EXPECT_EQ(as_teacher.iterations.size(), 4u);
  const TrainConfig as_student = world_.config("two", {"student=" + path, "train.iterations=3"});
  (void)test::run_to_the_end(as_student);
  EXPECT_EQ(io::ModelDirectory(newest_model(as_student)).adapter(), nullptr);  // every parameter was trained
}

TEST_F(AdapterLearnerTest, FineTuningTrainsAnAdapterAndGoesOnBitForBit) {
  const auto examples = [](uint64_t index, double) {
    return SftExample{{static_cast<Token>(index % 30), 2}, {3, static_cast<Token>(index % 7), 5}, {1, 1, 1}};
  };
  SftConfig config;
  config.model = world_.path("student").string();
  config.output = world_.path("sft").string();
  config.batch_tokens = 20;
  config.microbatch_tokens = 10;
  config.learning_rate = 0.01;
  config.adapter.emplace();
  config.adapter->rank = 2;
  const auto unused = []() -> model::Parameters { fail("the weights are the directory's"); };
  ASSERT_EQ(run_sft(config, examples, 6, unused), RunOutcome::done);
  config.output = world_.path("pieces").string();
  const auto stopping = [&](uint64_t index, double progress) {
    if (index % 10 == 9) request_stop();
    return examples(index, progress);
  };
  for (RunOutcome outcome = RunOutcome::stopped; outcome == RunOutcome::stopped;) {
    clear_stop_request();
    outcome = run_sft(config, stopping, 6, unused);
  }
  EXPECT_EQ(read_file(world_.path("sft") / "model/adapter_model.safetensors"),
            read_file(world_.path("pieces") / "model/adapter_model.safetensors"));
}

}  // namespace
}  // namespace ropd::train
