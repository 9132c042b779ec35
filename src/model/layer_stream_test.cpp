#include "model/layer_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "model/forward.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr uint64_t kPlenty = uint64_t{1} << 40;

std::shared_ptr<const io::ModelDirectory> open(const Path& path) {
  return std::make_shared<const io::ModelDirectory>(path);
}

PackedBatch some_tokens(std::vector<std::vector<Token>> sequences) {
  PackedBatch batch;
  for (const auto& sequence : sequences) batch.append(sequence);
  return batch;
}

std::vector<float> states_of(const Weights& weights, const PackedBatch& batch, Precision precision) {
  Workspace workspace;
  Buffer hidden(batch.tokens.size() * static_cast<size_t>(weights.config.hidden_size));
  forward(hidden, weights, batch, precision, workspace);
  return {hidden.span().begin(), hidden.span().end()};
}

// Bytes of files below `folder` that are in this process now.
uint64_t mapped_bytes(const Path& folder) {
  std::ifstream maps("/proc/self/smaps");
  uint64_t bytes = 0;
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_ours = line.find(folder.string()) != std::string::npos;
    if (is_ours && line.starts_with("Rss:")) bytes += std::stoull(line.substr(4)) * 1024;
  }
  return bytes;
}

class LayerStreamTest : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  const test::TemporaryDirectory folder_;
  const Path path_ = folder_ / "model";

  void write_model(const std::string& class_name = "Qwen3ForCausalLM", DType dtype = DType::f32,
                   const char* is_tied = "false") const {
    test::write_tiny_model(
        path_, test::tiny_config(class_name, {{"tie_word_embeddings", is_tied}, {"num_hidden_layers", "3"}}),
        dtype);
  }
};
INSTANTIATE_TEST_SUITE_P(Architectures, LayerStreamTest,
                         testing::Values(std::pair{"Qwen3ForCausalLM", "true"},
                                         std::pair{"Qwen2ForCausalLM", "true"},
                                         std::pair{"LlamaForCausalLM", "false"},
                                         std::pair{"Qwen3MoeForCausalLM", "false"}));

TEST_P(LayerStreamTest, StatesAreThoseOfTheResidentModelBitForBit) {
  const auto batches = std::vector{some_tokens({{3, 5, 8, 1, 30}, {9}}), some_tokens({{4, 4, 20, 11, 2}})};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::filesystem::remove_all(path_);
    write_model(GetParam().first, dtype, GetParam().second);
    const Weights resident = map_weights(open(path_));
    for (const Precision precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles})
      for (const uint64_t memory : {uint64_t{0}, uint64_t{20'000}, kPlenty}) {
        const Weights streamed = stream_weights(open(path_), memory);
        Workspace workspace;
        std::vector<Buffer> states(2);
        LayerStream::Pass pass(*streamed.stream, 6);
        forward_by_layers(states, streamed, batches, precision, workspace,
                          [&](size_t layer) { pass.enter(layer); });
        pass.finish();
        for (size_t i = 0; i < 2; ++i) {
          const auto want = states_of(resident, batches[i], precision);
          EXPECT_EQ(std::vector(states[i].span().begin(), states[i].span().end()), want);
          EXPECT_EQ(states_of(streamed, batches[i], precision), want);
        }
      }
  }
}

TEST_P(LayerStreamTest, PartsOfAConfigAreThoseOfItsFiles) {
  write_model(GetParam().first, DType::bf16, GetParam().second);
  const Weights streamed = stream_weights(open(path_), kPlenty);
  const auto parts = stream_parts(streamed.config, 2);
  ASSERT_EQ(parts.size(), 4u);
  LayerStream::Pass pass(*streamed.stream, 1);
  uint64_t sum = 0;
  for (size_t part = 0; part <= streamed.stream->head(); ++part) {
    pass.enter(part);
    sum += parts[part];
    EXPECT_EQ(streamed.stream->counts().bytes, sum);
  }
  pass.finish();
  const uint64_t all = open(path_)->num_bytes(), vector = 16 * 2, table = 32 * 16 * 2;
  EXPECT_EQ(sum, all - vector - (streamed.config.tie_word_embeddings ? 0 : table));
}

TEST_F(LayerStreamTest, CountsPassesAndEveryPartOnceAPass) {
  write_model();
  const Weights streamed = stream_weights(open(path_), 0);
  const auto parts = stream_parts(streamed.config, 4);
  const uint64_t layers = std::accumulate(parts.begin(), parts.end() - 1, uint64_t{0});
  for (uint64_t pass = 1; pass <= 3; ++pass) {
    states_of(streamed, some_tokens({{1, 2, 3}}), Precision::f32);
    EXPECT_EQ(streamed.stream->counts().passes, pass);
    EXPECT_EQ(streamed.stream->counts().bytes, pass * layers);  // nobody asked for the head
  }
  streamed.stream->hold_head();
  EXPECT_EQ(streamed.stream->counts().bytes, 3 * layers + parts.back());
}

TEST_F(LayerStreamTest, HoldsItsWindowAndGivesTheRestBack) {
  test::write_tiny_model(path_, test::tiny_config("Qwen3ForCausalLM", {{"hidden_size", "256"},
                                                                       {"intermediate_size", "1024"},
                                                                       {"num_hidden_layers", "4"},
                                                                       {"vocab_size", "512"}}));
  const auto directory = open(path_);
  const uint64_t layer = stream_parts(directory->config(), 4).front(),
                 slack = 64 * 4096;  // pages around a fault, and the header
  ASSERT_GT(layer, 8 * slack);
  for (const auto& [memory, window] :
       {std::pair{uint64_t{0}, uint64_t{1}}, std::pair{kPlenty, uint64_t{2}}}) {
    const Weights streamed = stream_weights(directory, memory);
    directory->release_pages();
    {
      LayerStream::Pass pass(*streamed.stream, 1);
      for (size_t part = 0; part <= streamed.stream->head(); ++part) {
        pass.enter(part);
        const uint64_t held = mapped_bytes(path_);
        EXPECT_LE(held, window * layer + slack) << "part " << part << " of window " << window;
        EXPECT_GE(held, part < streamed.stream->head() ? layer : 0);
      }
      pass.finish();
    }
    EXPECT_LE(mapped_bytes(path_), slack);
  }
}

TEST_F(LayerStreamTest, APassThatIsLeftEarlyEndsAndGivesBack) {
  write_model();
  const Weights streamed = stream_weights(open(path_), kPlenty);
  { const LayerStream::Pass pass(*streamed.stream, 1); }
  {
    LayerStream::Pass pass(*streamed.stream, 1);
    pass.enter(0);
  }
  EXPECT_EQ(states_of(streamed, some_tokens({{1, 2, 3}}), Precision::f32),
            states_of(map_weights(open(path_)), some_tokens({{1, 2, 3}}), Precision::f32));
}

TEST_F(LayerStreamTest, AFileThatWasWrittenToIsNamed) {
  write_model();
  const Weights streamed = stream_weights(open(path_), 0);
  const Path file = path_ / "model.safetensors";
  states_of(streamed, some_tokens({{1, 2, 3}}), Precision::f32);
  {
    const int descriptor = ::open(file.c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(descriptor, "\x01", 1, static_cast<off_t>(std::filesystem::file_size(file)) - 4), 1);
    // The clock of the file system need not have moved since the file was made.
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(::futimens(descriptor, times), 0);
    ::close(descriptor);
  }
  EXPECT_THAT(
      [&] {
        states_of(streamed, some_tokens({{1, 2, 3}}), Precision::f32);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr(file.string()), HasSubstr("was written to"))));
}

TEST_F(LayerStreamTest, NotFiniteWeightsAreRefusedByName) {
  const std::string config = test::tiny_config("Qwen3ForCausalLM");
  auto memory = test::tensors_for(config);
  std::filesystem::create_directories(path_);
  write_file_atomically(path_ / "config.json", config);
  for (size_t i = 0; i < memory.tensors.size(); ++i)
    if (memory.tensors[i].name == "model.layers.1.mlp.up_proj.weight") {
      const float bad = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(memory.data[i].data() + 40, &bad, 4);
    }
  io::write_safetensors(path_ / "model.safetensors", memory.tensors);
  const Weights streamed = stream_weights(open(path_), 0);
  EXPECT_THAT(
      [&] {
        states_of(streamed, some_tokens({{1, 2, 3}}), Precision::f32);
      },
      ThrowsMessage<Error>(HasSubstr("model.layers.1.mlp.up_proj.weight holds NaN")));
}

TEST_F(LayerStreamTest, FilesThatAreNotAlignedAreRefused) {
  write_model();
  const Path file = path_ / "model.safetensors";
  std::string content = read_file(file);
  uint64_t header = 0;
  std::memcpy(&header, content.data(), 8);
  content.insert(8 + header, " ");
  ++header;
  std::memcpy(content.data(), &header, 8);
  write_file_atomically(file, content);
  EXPECT_THAT([&] { stream_weights(open(path_), 0); },
              ThrowsMessage<Error>(AllOf(HasSubstr("does not begin at a multiple"), HasSubstr("streamed"))));
}

TEST(DivideMemory, TooLittleMeansOnePartAndOneBatch) {
  const ModelConfig config = io::parse_model_config(test::tiny_config("Qwen3ForCausalLM"), "config.json");
  const uint64_t parts[] = {100, 300, 200};
  const StreamBudget none = divide_memory(parts, config, 0, 64);
  EXPECT_EQ(none.window_bytes, 300u);
  EXPECT_FALSE(none.reads_ahead);
  EXPECT_EQ(none.positions, 64);
}

TEST(DivideMemory, MoreGoesFirstIntoReadingAheadThenIntoPositions) {
  const ModelConfig config = io::parse_model_config(test::tiny_config("Qwen3ForCausalLM"), "config.json");
  const uint64_t parts[] = {100'000, 300'000, 200'000};
  const uint64_t batch = 64 * (forward_bytes_per_token(config) + 16 * sizeof(float)),
                 waiting = waiting_bytes_per_token(config);
  const StreamBudget exact = divide_memory(parts, config, 500'000 + batch, 64),
                     less = divide_memory(parts, config, 500'000 + batch - 1, 64),
                     more = divide_memory(parts, config, 500'000 + batch + 7 * waiting, 64);
  EXPECT_TRUE(exact.reads_ahead);
  EXPECT_EQ(exact.window_bytes, 500'000u);
  EXPECT_EQ(exact.positions, 64);
  EXPECT_FALSE(less.reads_ahead);
  EXPECT_GT(less.positions, 64);
  EXPECT_EQ(more.positions, 71);
}

}  // namespace
}  // namespace ropd::model
