// ropd bench: how fast each kind of work is on this machine, next to the limit measured in the same run and
// to what the machine sustained right beside the work.
#include <fmt/format.h>
#include <malloc.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>

#include "app/arguments.h"
#include "app/bench_iteration.h"
#include "app/commands.h"
#include "app/output.h"
#include "app/pattern_weights.h"
#include "app/trial_work.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/shared_time.h"
#include "base/stop.h"
#include "distill/scoring.h"
#include "io/peer_speeds.h"
#include "kernels/limits.h"
#include "model/decode.h"
#include "train/stage_time.h"

namespace ropd::app {
namespace {

using kernels::Precision;
using train::block_parameters, train::head_parameters;

ModelConfig qwen3(int64_t width, int64_t inner, int64_t layers, int64_t heads, int64_t kv_heads) {
  ModelConfig c;
  c.hidden_size = width;
  c.intermediate_size = inner;
  c.num_layers = layers;
  c.num_heads = heads;
  c.num_kv_heads = kv_heads;
  c.head_dim = 128;
  c.vocab_size = 151936;
  c.max_position_embeddings = 40960;
  c.rope_theta = 1e6;
  c.tie_word_embeddings = true;
  c.has_qk_norm = true;
  return c;
}

ModelConfig shape_named(const std::string& name) {
  if (name == "qwen3-0.6b") return qwen3(1024, 3072, 28, 16, 8);
  if (name == "qwen3-1.7b") return qwen3(2048, 6144, 28, 16, 8);
  if (name == "qwen3-4b") return qwen3(2560, 9728, 36, 32, 8);
  ModelConfig c = qwen3(96, 256, 3, 4, 2);  // the laboratory's student
  c.head_dim = 24;
  c.vocab_size = 26;
  c.max_position_embeddings = 4096;
  c.rope_theta = 500;
  return c;
}

// Operations of a token in the forward pass over a sequence: two for every parameter, and causal attention,
// which sees half of the sequence on average. Gradients take twice as many. Neither what is computed a
// second time to save memory nor keys that are masked count.
double forward_flops(const ModelConfig& c, double tokens, bool with_head) {
  const double attention =
      4 * static_cast<double>(c.num_layers * c.num_heads * c.head_dim) * (tokens + 1) / 2;
  return 2 * (block_parameters(c) + (with_head ? head_parameters(c) : 0)) + attention;
}

enum class Bound { compute, memory };

struct Row {
  std::string work;
  double tokens_per_second = 0;
  double limit = 0;  // tokens a second
  std::string bound;
  double of_sustained = 0;  // share of the operations (or bytes) that a large product (or reading) got done
  double one_thread = 0;    // share of the work that only one thread had, as in Amdahl's law
  uint64_t peak_memory = 0;
  std::string kind;  // as io::PeerSpeeds names it; empty where no other program measures such work
};

class Bench {
 public:
  // works, precisions: what to measure, empty = all that there is.
  Bench(std::string shape, bool is_long, size_t train_tokens, std::vector<std::string> works,
        std::vector<std::string> precisions)
      : name_(std::move(shape)),
        config_(shape_named(name_)),
        is_long_(is_long),
        train_tokens_(train_tokens),
        works_(std::move(works)),
        chosen_(std::move(precisions)) {}

  std::vector<Row> run() {
    log_info("kernels: ", kernels::describe_kernels(), "; ", num_threads(), " threads");
    limits_ = kernels::measure_limits(0.5);
    log_info(
        fmt::format("limits: {:.0f} GFLOP/s f32, {:.0f} bf16 and {:.0f} bf16_tiles in registers, {:.0f} in a "
                    "large f32 product, {:.1f} GB/s reading memory",
                    limits_.f32_flops / 1e9, limits_.bf16_flops / 1e9, limits_.tiles_flops / 1e9,
                    limits_.product_flops / 1e9, limits_.read_bytes / 1e9));
    if (measures("decode") || measures("score")) {
      const auto weights = pattern_weights(config_, DType::bf16, 0.02f);
      if (measures("decode"))
        for (const Precision precision : sampling_precisions()) decode(weights, precision);
      if (measures("score"))
        for (const Precision precision : precisions()) score(weights, precision);
    }
    if (measures("train")) {
      malloc_trim(0);  // what the work before has left is not training's
      for (const Precision precision : precisions()) train(precision, train_tokens_);
      if (is_long_ && !is_tiny()) train(precisions().front(), 16384);
    }
    if (is_tiny() && measures("iteration")) iteration();
    return rows_;
  }

  const kernels::MachineLimits& limits() const { return limits_; }

 private:
  const std::string name_;
  const ModelConfig config_;
  const bool is_long_;
  const size_t train_tokens_;
  const std::vector<std::string> works_, chosen_;
  kernels::MachineLimits limits_;
  std::vector<Row> rows_;

  bool measures(const char* work) const {
    return works_.empty() || std::find(works_.begin(), works_.end(), work) != works_.end();
  }
  bool is_tiny() const { return config_.vocab_size < 1000; }
  double flops(Precision precision) const {
    return precision == Precision::bf16_tiles ? limits_.tiles_flops
           : precision == Precision::bf16     ? limits_.bf16_flops
                                              : limits_.f32_flops;
  }
  // Those asked for; else those that somebody would choose here: without matrix units bf16_tiles is only slower.
  std::vector<Precision> precisions() const {
    if (!chosen_.empty()) {
      std::vector<Precision> result;
      for (const std::string& name : chosen_) result.push_back(kernels::precision_named(name));
      return result;
    }
    if (is_tiny() || !kernels::has_matrix_units()) return {Precision::f32, Precision::bf16};
    return {Precision::f32, Precision::bf16, Precision::bf16_tiles};
  }
  // Large models are not sampled from in f32 unless somebody asks for it, small ones are.
  std::vector<Precision> sampling_precisions() const {
    auto result = precisions();
    if (chosen_.empty()) std::erase(result, is_tiny() ? Precision::bf16 : Precision::f32);
    return result;
  }

  int several() const { return is_tiny() ? 10 : 3; }

  // What the machine does just now of what bounds the work.
  double sustained(Bound bound, Precision precision) const {
    const double seconds = is_tiny() ? 0.3 : 1;
    return (bound == Bound::memory ? kernels::measure_reading(seconds)
                                   : kernels::measure_product(seconds, precision))
        .sustained;
  }

  struct Work {
    std::string name;
    double tokens = 0, limit = 0;  // of a call; tokens a second
    std::function<void()> run;
    std::string kind;  // as in Row
  };

  // Works that are compared with each other are called in turn. The speed is the best of several calls, as the
  // limit was measured. Each call is also compared with what the machine sustains right before and after it; of
  // these shares the median counts.
  void measure(const std::vector<Work>& works, Bound bound, Precision precision, int times) {
    const double top = bound == Bound::memory ? limits_.read_bytes : flops(precision);
    double before = sustained(bound, precision);
    std::vector<std::vector<double>> shares(works.size()), one_thread(works.size());
    std::vector<double> best(works.size(), INFINITY);
    for (int i = 0; i < times; ++i)
      for (size_t w = 0; w < works.size(); ++w) {
        const auto begin = std::chrono::steady_clock::now();
        OneThreadWatch watch;
        works[w].run();
        const double alone = watch.take_seconds(),
                     seconds =
                         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        one_thread[w].push_back(alone / (alone + static_cast<double>(num_threads()) * (seconds - alone)));
        const double after = sustained(bound, precision);
        best[w] = std::min(best[w], seconds);
        shares[w].push_back(works[w].tokens / seconds / works[w].limit * top / ((before + after) / 2));
        before = after;
      }
    const auto median = [](std::vector<double>& values) {
      std::sort(values.begin(), values.end());
      return values[values.size() / 2];
    };
    for (size_t w = 0; w < works.size(); ++w) {
      rows_.push_back({works[w].name, works[w].tokens / best[w], works[w].limit,
                       bound == Bound::memory ? "memory" : "compute", median(shares[w]),
                       median(one_thread[w]), peak_memory_bytes(), works[w].kind});
      const Row& row = rows_.back();
      log_info(fmt::format("{}: {} tok/s, {:.0f}% of the limit, {:.0f}% of sustained", row.work,
                           format_count(row.tokens_per_second), 100 * row.tokens_per_second / row.limit,
                           100 * row.of_sustained));
    }
  }

  void decode(const model::Weights& weights, Precision precision) {
    const model::Decoder decoder(model::pack_weights(weights, precision), precision);
    const double weight_bytes =
        (block_parameters(config_) + head_parameters(config_)) * (is_bf16(precision) ? 2 : 4);
    const double token_flops = 2 * (block_parameters(config_) + head_parameters(config_));
    const std::vector<int64_t> counts =
        is_tiny() ? std::vector<int64_t>{1, 64, 480} : std::vector<int64_t>{1, 8, 32, 64};
    for (const int64_t count : counts) decode_at(decoder, precision, count, 32, weight_bytes, token_flops);
    if (is_long_ && !is_tiny())
      for (const int64_t context : {1024, 4096, 16384})
        decode_at(decoder, precision, 8, context, weight_bytes, token_flops);
    if (!is_tiny()) prefill(decoder, precision);
  }

  void decode_at(const model::Decoder& decoder, Precision precision, int64_t count, int64_t context,
                 double weight_bytes, double token_flops) {
    constexpr int64_t kPage = 32;
    const uint64_t page_bytes = model::KvCache::page_bytes(config_, precision, kPage),
                   bytes = static_cast<uint64_t>(count * (context / kPage + 1)) * page_bytes;
    if (bytes > read_memory_info().available_bytes) {
      log_info("decode ", count, ", context ", context, ": skipped, needs ",
               format_bytes(static_cast<double>(bytes)), " of memory");
      return;
    }
    DecodeTrial trial(decoder, config_, count, context);
    trial.run(1);
    // Long enough that other programs on the same cores show.
    const int steps = is_tiny() ? static_cast<int>(std::max<int64_t>(50, 16384 / count)) : 12;
    const double cache_bytes = static_cast<double>(page_bytes) / kPage * static_cast<double>(context);
    const double memory = limits_.read_bytes / (weight_bytes / static_cast<double>(count) + cache_bytes);
    const double compute = flops(precision) / token_flops;
    const bool is_memory_bound = !is_tiny() && memory < compute;
    measure({{fmt::format("decode {}, context {}, {}", count, context, name_of(precision)),
              static_cast<double>(count * steps), is_memory_bound ? memory : compute,
              [&] { trial.run(steps); }, context <= 32 ? fmt::format("decode {}", count) : ""}},
            is_memory_bound ? Bound::memory : Bound::compute, precision, several());
  }

  void prefill(const model::Decoder& decoder, Precision precision) {
    constexpr int64_t kTokens = 512, kPage = 32;
    model::KvCache cache(config_, precision, kTokens / kPage, kPage);
    std::vector<int32_t> pages;
    for (int64_t i = 0; i < kTokens / kPage; ++i) pages.push_back(cache.allocate());
    const std::vector<Token> tokens(kTokens, 7);
    const std::vector<model::DecodeRows> rows = {{tokens, 0, pages.data(), true}};
    model::DecodeMemory memory;
    measure({{fmt::format("prefill {}, {}", kTokens, name_of(precision)), kTokens,
              flops(precision) / forward_flops(config_, kTokens, false),
              [&] { decoder.step(memory, cache, rows, [](size_t, std::span<float>) {}); },
              fmt::format("prefill {}", kTokens)}},
            Bound::compute, precision, several());
  }

  std::vector<Rollout> rollouts(size_t count, size_t length) const {
    return made_rollouts(config_.vocab_size, count, length);
  }

  void score(const model::Weights& weights, Precision precision) {
    const auto batch = is_tiny() ? rollouts(480, 100) : rollouts(1, 512);
    const double tokens = is_tiny() ? 48000 : 512;
    model::Workspace workspace;
    measure({{fmt::format("score, top 16, {}", name_of(precision)), tokens,
              flops(precision) / forward_flops(config_, is_tiny() ? 100 : 512, true),
              [&] {
                (void)distill::score_student(weights, batch, {.top_k = 16, .precision = precision},
                                             workspace);
              },
              ""}},
            Bound::compute, precision, several());
  }

  // One response of `length` tokens, prompt included; many short ones on the tiny shape. All parameters, and in
  // turn with them an adapter of rank 16 on a base stored in bf16, whose gradient leaves out a third of the
  // operations: those of the weights.
  void train(Precision precision, size_t length) {
    constexpr size_t kTraceBytes = size_t{2500} << 20, kShards = 8;
    // Weights and gradients, traces, what every token needs beyond them (its layer at work, and its inputs to
    // the layers computed again), blocks of logits and the rest.
    const uint64_t token_bytes = model::trace_bytes_per_token(config_) +
                                 model::scratch_bytes_per_token(config_, /*with_gradient=*/true) +
                                 static_cast<uint64_t>((config_.num_layers + 8) * config_.hidden_size) * 4;
    const uint64_t bytes = static_cast<uint64_t>(model::parameter_count(config_)) * 10 + kTraceBytes +
                           length * token_bytes + (uint64_t{1} << 29);
    if (bytes > read_memory_info().available_bytes) {
      log_info("train: skipped, needs ", format_bytes(static_cast<double>(bytes)), " of memory");
      return;
    }
    const distill::GradientConfig config{.precision = precision, .trace_budget_bytes = kTraceBytes};
    const auto batch = is_tiny() ? rollouts(128, 100) : rollouts(1, length - 1);
    // A single shard leaves only passes behind, which serve both.
    distill::GradientMemory memory, of_adapter;
    GradientTrial all(config_, batch, kShards, config, /*is_adapter=*/false, memory),
        adapter(config_, batch, kShards, config, /*is_adapter=*/true, batch.size() > 1 ? of_adapter : memory);
    const std::string kind = fmt::format("train, {}", name_of(precision));
    const std::string size = is_tiny() ? "" : fmt::format(", {} tokens", length);
    const double tokens = static_cast<double>(is_tiny() ? 12800 : length - 1),
                 passes = flops(precision) /
                          forward_flops(config_, is_tiny() ? 100 : static_cast<double>(length), true);
    measure({{kind + size, tokens, passes / 3, [&] { all.run(); }, ""},
             {kind + ", adapter" + size, tokens, passes / 2, [&] { adapter.run(); }, ""}},
            Bound::compute, precision, length > 1024 ? 1 : several());
    const double full = rows_[rows_.size() - 2].tokens_per_second;
    log_info(fmt::format("an adapter trains at {:.2f} times the speed of all parameters",
                         rows_.back().tokens_per_second / full));
  }

  // A run of the trainer with models of its own.
  void iteration() {
    install_stop_handlers();  // the run ends in order, and its folder goes
    const BenchIteration work;
    const auto flops_of = [&](const ModelConfig& c) {
      return forward_flops(c, work.sequence_tokens(), true);
    };
    // Sampling, the teacher's pass, and the updates with their gradients.
    const double token_flops =
        flops_of(work.student()) + flops_of(work.teacher()) + 3 * flops_of(work.student());
    measure({{"iteration, 480 x 200 tokens", work.num_tokens(), limits_.f32_flops / token_flops,
              [&] { work.run(); }, ""}},
            Bound::compute, Precision::f32, 5);
    log_info(fmt::format("one iteration: {:.2f} s", work.num_tokens() / rows_.back().tokens_per_second));
  }
};

// What another program did of the same, if it was given.
double peer_speed(const Row& row, const io::PeerSpeeds& peers) {
  const auto found = peers.find(row.kind);
  return found == peers.end() ? 0 : found->second;
}

void print(const Bench& bench, const std::string& shape, const std::vector<Row>& rows,
           const io::PeerSpeeds& peers, bool as_json) {
  if (as_json) {
    Json list = Json::array();
    for (const Row& row : rows) {
      list.push_back({{"work", row.work},
                      {"tokens_per_second", row.tokens_per_second},
                      {"limit", row.limit},
                      {"bound", row.bound},
                      {"ratio", row.tokens_per_second / row.limit},
                      {"ratio_of_sustained", row.of_sustained},
                      {"one_thread_share", row.one_thread},
                      {"peak_memory_bytes", row.peak_memory}});
      if (const double peer = peer_speed(row, peers)) list.back()["peer_tokens_per_second"] = peer;
    }
    print_json({{"shape", shape},
                {"kernels", kernels::describe_kernels()},
                {"threads", num_threads()},
                {"f32_flops", bench.limits().f32_flops},
                {"bf16_flops", bench.limits().bf16_flops},
                {"tiles_flops", bench.limits().tiles_flops},
                {"product_flops", bench.limits().product_flops},
                {"read_bytes_per_second", bench.limits().read_bytes},
                {"rows", list}});
    return;
  }
  std::printf("%s, %zu threads\nkernels: %s\n", shape.c_str(), num_threads(),
              kernels::describe_kernels().c_str());
  std::printf(
      "The best of this run: f32 %.0f GFLOP/s, bf16 %.0f, bf16_tiles %.0f, large f32\n"
      "product %.0f, memory %.1f GB/s. Limit: share of what computing (c) or reading\n"
      "memory (m) allows. Sustained: share of what a large product, or reading memory,\n"
      "did on average right before and after the work. One thread: share of the work\n"
      "that only one thread had (Amdahl).\n\n",
      bench.limits().f32_flops / 1e9, bench.limits().bf16_flops / 1e9, bench.limits().tiles_flops / 1e9,
      bench.limits().product_flops / 1e9, bench.limits().read_bytes / 1e9);
  const bool has_peers = !peers.empty();  // they take the place of what is less asked for beside them
  std::printf("%-40s %9s %6s %5s %s\n", "", "", "of", "sus-",
              has_peers ? "" : fmt::format("{:>6} {:>8}", "one", "peak").c_str());
  std::printf("%-40s %9s %6s %5s %s\n", "work", "tok/s", "limit", "tain.",
              (has_peers ? fmt::format("{:>9} {:>6}", "peer", "ours")
                         : fmt::format("{:>6} {:>8}", "thread", "memory"))
                  .c_str());
  for (const Row& row : rows) {
    std::string more;
    if (!has_peers)
      more = fmt::format("{:>5.2f}% {:>8}", 100 * row.one_thread,
                         format_bytes(static_cast<double>(row.peak_memory)));
    else if (const double peer = peer_speed(row, peers))
      more = fmt::format("{:>9.1f} {:>5.2f}x", peer, row.tokens_per_second / peer);
    std::printf("%-40s %9.1f %3.0f%% %c %4.0f%% %s\n", row.work.c_str(), row.tokens_per_second,
                100 * row.tokens_per_second / row.limit, row.bound[0], 100 * row.of_sustained, more.c_str());
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  struct Options {
    std::string shape = "qwen3-0.6b";
    bool is_long = false;
    size_t tokens = 1024;
    std::vector<std::string> works, precisions;
    std::string peers;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("bench", "speed of every kind of work against this machine's measured limits");
  command->add_option("--shape", options->shape, "model shape; weights are made on the fly")
      ->check(CLI::IsMember({"tiny", "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b"}))
      ->capture_default_str();
  command->add_flag("--long", options->is_long,
                    "also decoding at contexts of 1K, 4K and 16K, and training on 16,384 tokens");
  command->add_option("--tokens", options->tokens, "of the response to train on; not for tiny")
      ->check(CLI::Range(2, 32768))
      ->capture_default_str();
  command
      ->add_option("--work", options->works,
                   "only these kinds of work: decode, score, train, iteration (of the "
                   "trainer, with --shape tiny)")
      ->check(CLI::IsMember({"decode", "score", "train", "iteration"}))
      ->delimiter(',');
  command->add_option("--precision", options->precisions, "only these (default: those that are fast here)")
      ->check(is_precision())
      ->delimiter(',');
  command->add_option("--peers", options->peers,
                      "speeds of another program, to stand beside ours: output of llama-bench -o json "
                      "or of llama-batched-bench --output-format jsonl");
  command->footer(
      "Example:\n  ropd bench --shape tiny\n  ropd bench --shape qwen3-0.6b --long --json\n"
      "  ropd bench --work decode --peers llama.json");
  command->callback([options, command] {
    if (options->shape != "tiny" && std::ranges::count(options->works, "iteration") > 0)
      throw CLI::ValidationError(
          "--work", "iteration has models of its own: it goes with --shape tiny, not " + options->shape);
    const auto peers = options->peers.empty() ? io::PeerSpeeds() : io::read_peer_speeds(options->peers);
    Bench bench(options->shape, options->is_long, options->tokens, options->works, options->precisions);
    const auto rows = bench.run();
    print(bench, options->shape, rows, peers, wants_json(*command));
  });
}

}  // namespace ropd::app
