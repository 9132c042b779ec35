// Speed of text/: loading a tokenizer, encoding, decoding, rendering a chat template. Needs ../shared/data
// (or ROPD_TEST_DATA).
//   tokenizer_bench --benchmark_filter=Encode
#include <benchmark/benchmark.h>

#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace {

using ropd::text::ChatTemplate;
using ropd::text::Tokenizer;

ropd::Path data_directory() {
  const char* path = std::getenv("ROPD_TEST_DATA");
  return path != nullptr ? ropd::Path(path) : ropd::Path("../shared/data");
}

// The golden texts (mathematics, code, many scripts) one behind the other, to about four megabytes.
const std::string& mixed_text() {
  static const std::string text = [] {
    std::string once, result;
    std::ifstream lines(data_directory() / "golden/tokenizer_qwen3.jsonl");
    for (std::string line; std::getline(lines, line);)
      once += ropd::parse_json(line, "golden").at("text").get<std::string>() + "\n";
    while (!once.empty() && result.size() < (size_t{4} << 20)) result += once;
    return result;
  }();
  return text;
}

const Tokenizer& qwen3() {
  static const Tokenizer tokenizer = Tokenizer::load(data_directory() / "tokenizers/qwen3");
  return tokenizer;
}

void Load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::load(data_directory() / "tokenizers/qwen3"));
}
BENCHMARK(Load)->Unit(benchmark::kMillisecond);

void Encode(benchmark::State& state) {
  const std::string& text = mixed_text();
  for (auto _ : state) benchmark::DoNotOptimize(qwen3().encode(text));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(Encode)->Unit(benchmark::kMillisecond);

void EncodeFirst32K(benchmark::State& state) {
  const std::string& text = mixed_text();
  for (auto _ : state) benchmark::DoNotOptimize(qwen3().encode_first(text, 32768));
}
BENCHMARK(EncodeFirst32K)->Unit(benchmark::kMillisecond);

void Decode(benchmark::State& state) {
  const auto ids = qwen3().encode(mixed_text());
  for (auto _ : state) benchmark::DoNotOptimize(qwen3().decode(ids));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * mixed_text().size()));
}
BENCHMARK(Decode)->Unit(benchmark::kMillisecond);

void RenderQwen3(benchmark::State& state) {
  const ChatTemplate chat = ChatTemplate::load(data_directory() / "tokenizers/qwen3");
  const std::vector<ropd::Message> messages = {{"user", "What is 1+1? Please reason step by step."}};
  for (auto _ : state) benchmark::DoNotOptimize(chat.render(messages, {.enable_thinking = false}));
}
BENCHMARK(RenderQwen3)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
