// ./run torture: kills, power cuts, failing calls, damages, signals and several processes at once, over all
// commands that write; prints what was done and whatever went wrong. Exit code 1 when something did.
// --short is a fixed, small part of it, the same on every machine: one of the tests.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/stop.h"
#include "torture/trials.h"

namespace ropd::torture {
namespace {

struct Options {
  TrialOptions trials;
  double minutes = 10;
  bool is_short = false;
  std::vector<std::string> only, kinds;
  int64_t trial = -1;
  uint64_t from = 0;
};

// How many trials of each kind a short run makes on a scenario.
uint64_t short_count(Kind kind) {
  switch (kind) {
    case Kind::kills:
      return 3;
    case Kind::cuts:
      return 5;
    case Kind::errors:
      return 5;
    case Kind::stops:
      return 2;
    case Kind::damages:
      return 5;
    case Kind::signals:
      return 0;  // moments of time: not the same on every machine
    case Kind::crowds:
      return 1;
  }
  return 0;
}

bool is_wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

void print(const Scenario& scenario, const Trials& trials) {
  std::printf("%-9s %4llu calls", scenario.name.c_str(), static_cast<unsigned long long>(trials.num_calls()));
  for (const auto& [kind, counts] : trials.counts()) {
    std::printf("  %s %llu", name_of(kind), static_cast<unsigned long long>(counts.done));
    if (counts.possible) std::printf("/%llu", static_cast<unsigned long long>(counts.possible));
    if (counts.refused) std::printf(" (%llu refused)", static_cast<unsigned long long>(counts.refused));
    if (counts.killed) std::printf(" (%llu kills)", static_cast<unsigned long long>(counts.killed));
    if (counts.violations) std::printf(" [%llu WRONG]", static_cast<unsigned long long>(counts.violations));
  }
  std::printf("\n");
  std::fflush(stdout);
}

// A round is one trial of each kind on each scenario, so that whatever the time, all have their share. Returns
// the number of the first round that was not made completely.
uint64_t run_all(const Options& options, std::vector<std::unique_ptr<Trials>>& trials,
                 const std::vector<const Scenario*>& scenarios) {
  const auto is_over = [&] {
    return stop_requested() || std::chrono::steady_clock::now() >= options.trials.end;
  };
  bool goes_on = true;
  uint64_t index = options.from;
  for (; goes_on; ++index) {
    goes_on = false;
    for (size_t i = 0; i < trials.size(); ++i) {
      for (const Kind kind : kKinds) {
        if (is_over()) return index;
        if (!is_wanted(options.kinds, name_of(kind))) continue;
        if (options.is_short && index >= short_count(kind)) continue;
        // A laboratory takes as long as fifty of the others.
        if (scenarios[i]->is_long && (options.is_short || index % 50 != 0)) continue;
        goes_on |= trials[i]->run(kind, index) || scenarios[i]->is_long;
      }
    }
  }
  return index;
}

int run(const Options& options) {
  const Scenarios world(options.trials.program);
  std::vector<std::unique_ptr<Trials>> trials;
  std::vector<const Scenario*> scenarios;
  for (const Scenario& scenario : world.all()) {
    if (!is_wanted(options.only, scenario.name) || (options.is_short && scenario.is_long)) continue;
    trials.push_back(std::make_unique<Trials>(scenario, options.trials));
    scenarios.push_back(&scenario);
  }
  if (trials.empty()) fail("no scenario of that name; there are train, resume, branch, sft, generate, ...");
  if (options.trial >= 0) {
    for (auto& of_one : trials)
      for (const Kind kind : kKinds)
        if (is_wanted(options.kinds, name_of(kind))) of_one->run(kind, static_cast<uint64_t>(options.trial));
  } else {
    const uint64_t next = run_all(options, trials, scenarios);
    if (!options.is_short)
      std::printf("rounds %llu to %llu; --from %llu goes on\n", static_cast<unsigned long long>(options.from),
                  static_cast<unsigned long long>(next), static_cast<unsigned long long>(next));
  }
  uint64_t done = 0, violations = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    print(*scenarios[i], *trials[i]);
    for (const auto& [kind, counts] : trials[i]->counts())
      done += counts.done, violations += counts.violations;
  }
  std::printf("torture: %llu trials, %llu violations\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(violations));
  return violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ropd::torture

int main(int argument_count, char** arguments) {
  using namespace ropd::torture;
  Options options;
  options.trials.program = ROPD_PROGRAM;
  CLI::App app("kills, power cuts, failing calls, damages, signals and crowds over all commands that write");
  app.add_option("minutes", options.minutes, "how long")->capture_default_str();
  app.add_flag("--short", options.is_short, "a fixed, small part");
  app.add_option("--only", options.only, "these scenarios: train, resume, branch, sft, generate, ...");
  app.add_option("--kind", options.kinds,
                 "these kinds: kills, cuts, errors, stops, damages, signals, crowds");
  app.add_option("--trial", options.trial, "only this trial of each, as a violation names it");
  app.add_option("--from", options.from, "begin with this trial of each: where another call ended")
      ->capture_default_str();
  app.add_option("--seed", options.trials.seed, "of all that is random")->capture_default_str();
  app.add_option("--program", options.trials.program, "another build of it, say with sanitizers")
      ->check(CLI::ExistingFile);
  app.add_option("--keep", options.trials.keep, "folder for the files that violations began with");
  CLI11_PARSE(app, argument_count, arguments);
  options.trials.end = options.is_short || options.trial >= 0
                           ? std::chrono::steady_clock::time_point::max()
                           : std::chrono::steady_clock::now() +
                                 std::chrono::milliseconds(static_cast<int64_t>(options.minutes * 60'000));
  ropd::install_stop_handlers();  // SIGTERM ends it after the trial, with its counts
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torture: %s\n", error.what());
    return 1;
  }
}
