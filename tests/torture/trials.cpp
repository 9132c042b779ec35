#include "torture/trials.h"

#include <signal.h>
#include <time.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "base/error.h"
#include "torture/damage.h"

namespace ropd::torture {

namespace fs = std::filesystem;

namespace {

constexpr Loss kPowerCuts[] = {Loss::bytes, Loss::everything, Loss::reordered, Loss::torn};

struct InjectedFault {
  const char* name;
  Fault::Kind kind;
  int error_number;
  bool is_harmless;  // the command must succeed in spite of it
};
constexpr InjectedFault kFaults[] = {{"ENOSPC", Fault::Kind::error, ENOSPC, false},
                                     {"EIO", Fault::Kind::error, EIO, false},
                                     {"EDQUOT", Fault::Kind::error, EDQUOT, false},
                                     {"EINTR", Fault::Kind::error, EINTR, true},
                                     {"short", Fault::Kind::short_write, 0, true}};

// Only these are ever interrupted.
bool can_be_interrupted(const std::string& call) {
  for (const char* name : {"write", "pwrite", "open", "openat", "fsync", "fdatasync", "ftruncate", "close"})
    if (call.starts_with(std::string(name) + " ")) return true;
  return false;
}

void pause(double seconds) {
  timespec time{static_cast<time_t>(seconds), static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  ::nanosleep(&time, nullptr);
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (size_t at; (at = text.find('\n')) != std::string::npos;) text.replace(at, 1, " | ");
  return text;
}

}  // namespace

bool ends_with_one_clear_line(const std::string& err) {
  constexpr std::string_view kBegin = "ropd: ";
  size_t num_failures = 0, last_begin = 0;
  for (size_t begin = 0; begin < err.size(); begin = err.find('\n', begin) + 1) {
    last_begin = begin;
    num_failures += err.compare(begin, kBegin.size(), kBegin) == 0;
    if (err.find('\n', begin) == std::string::npos) return false;  // cut off in the middle
  }
  return num_failures == 1 && err.compare(last_begin, kBegin.size(), kBegin) == 0 &&
         err.find("internal error") == std::string::npos;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kills:
      return "kills";
    case Kind::cuts:
      return "cuts";
    case Kind::errors:
      return "errors";
    case Kind::stops:
      return "stops";
    case Kind::damages:
      return "damages";
    case Kind::signals:
      return "signals";
    case Kind::crowds:
      return "crowds";
  }
  return "";
}

Trials::Trials(const Scenario& scenario, const TrialOptions& options)
    : scenario_(scenario), options_(options), start_disk_((reset(scenario.start), Disk(scenario.folder))) {
  const auto begin = std::chrono::steady_clock::now();
  ProgramEnd end;
  if (scenario.is_long) {
    end = run_command(scenario.command);
  } else {
    uint64_t call = 0;
    end = run_traced({.command = scenario.command,
                      .folder = scenario.folder,
                      .fault = {},
                      .before_call = [&](uint64_t index) { call = index; },
                      .on_change = [&](const Change& change) { changes_.emplace_back(call, change); }});
  }
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (end.exit_code != 0) fail(scenario.name, ": failed without any fault: ", end.err);
  num_calls_ = end.num_calls;
  expected_ = results_of(scenario, false);
  expected_with_records_ = results_of(scenario, true);
  if (scenario.is_long) return;
  reset(scenario.start);
  (void)run_traced({.command = scenario.command,
                    .folder = scenario.folder,
                    .fault = {.at = static_cast<uint64_t>(static_cast<double>(num_calls_) * scenario.middle)},
                    .before_call = {},
                    .on_change = {}});
  middle_ = read_tree(scenario.folder);
}

void Trials::reset(const Tree& tree) const { write_tree(scenario_.folder, tree); }

// A step that shares no divisor with the count visits every index once, far from the one before.
uint64_t Trials::spread(uint64_t index, uint64_t count) const {
  uint64_t step = static_cast<uint64_t>(static_cast<double>(count) * 0.618) | 1;
  while (std::gcd(step, count) != 1) ++step;
  return (index * step) % count;
}

ProgramEnd Trials::run_command(const Command& command) const {
  return StartedProgram(command, scenario_.folder.string() + ".log").wait();
}

void Trials::violate(const std::string& text, const Tree& began_with) {
  for (auto& [kind, counts] : counts_)
    if (trial_.find(std::string("--kind ") + name_of(kind) + " ") == 0) ++counts.violations;
  std::printf("VIOLATION %s\n  again: ./run torture --only %s %s --seed %llu\n",
              one_line(scenario_.name + ", " + trial_ + ": " + text).c_str(), scenario_.name.c_str(),
              trial_.c_str(), static_cast<unsigned long long>(options_.seed));
  std::fflush(stdout);
  if (options_.keep.empty()) return;
  std::string name = scenario_.name + " " + trial_;
  std::replace(name.begin(), name.end(), ' ', '-');
  write_tree(Path(options_.keep) / name, began_with);
}

// What is wrong with how a program ended that was not asked to stop; empty when nothing is.
std::string Trials::complaint(const ProgramEnd& end) const {
  if (end.took_too_long) return "did not end";
  if (end.exit_code == 0) return "";
  if (end.exit_code > 3) return "ended with " + std::to_string(end.exit_code) + ": " + end.err;
  if (end.exit_code != 1)
    return "exit code " + std::to_string(end.exit_code) + ", expected 0 or 1: " + end.err;
  return ends_with_one_clear_line(end.err) ? "" : "exit code 1 without one clear line: " + end.err;
}

std::string Trials::wrong_result(bool with_records) const {
  return difference(results_of(scenario_, with_records), with_records ? expected_with_records_ : expected_);
}

// What is wrong in the results apart from those that were damaged before, that nothing had to read and that lie
// there as they were left: such damage is found by `ropd verify`, not by a command that goes on elsewhere.
std::string Trials::wrong_result_but_for(const Tree& damaged) const {
  const Tree now = read_tree(scenario_.folder);
  Tree found = results_of(scenario_, /*with_records=*/false), expected = expected_;
  for (const auto& [inside, before] : middle_) {
    if (!scenario_.rests || !scenario_.rests(inside)) continue;
    const auto left = damaged.find(inside), still = now.find(inside);
    const bool is_damaged = left == damaged.end() || !(left->second == before);
    const bool is_as_left =
        left == damaged.end() ? still == now.end() : still != now.end() && still->second == left->second;
    if (!is_damaged || !is_as_left) continue;
    found.erase(inside);
    expected.erase(inside);
  }
  return difference(found, expected);
}

// What keeps the user from the results of an undisturbed run; empty when nothing does.
std::string Trials::failure_to_go_on() const {
  const Command command = scenario_.go_on();
  if (!command.empty()) {
    const ProgramEnd end = run_command(command);
    if (end.took_too_long) return "going on did not end";
    if (end.exit_code != 0)
      return "going on ends with exit code " + std::to_string(end.exit_code) + ": " + end.err;
  }
  if (const std::string text = wrong_result(); !text.empty()) return "going on gives other results: " + text;
  if (scenario_.verify.empty()) return "";
  const ProgramEnd end = run_command(scenario_.verify);
  return end.exit_code == 0 ? "" : "afterwards verify finds: " + end.err;
}

void Trials::kill_before_call(uint64_t call) {
  reset(scenario_.start);
  Disk disk(scenario_.folder);
  const ProgramEnd end = run_traced({.command = scenario_.command,
                                     .folder = scenario_.folder,
                                     .fault = {.at = call},
                                     .before_call = {},
                                     .on_change = [&](const Change& change) { disk.apply(change); }});
  const Tree left = read_tree(scenario_.folder);
  if (left != disk.after_crash(Loss::nothing, 0))
    fail(scenario_.name, ": the simulated disk differs from the real one, killed before call ", call);
  if (!end.was_killed)
    if (const std::string text = complaint(end); !text.empty()) return violate(text, left);
  if (const std::string text = failure_to_go_on(); !text.empty()) violate(end.call + ": " + text, left);
}

// At every call and, number num_calls_ + 1, after the end: the command has said that it is done.
bool Trials::cut_power(uint64_t index) {
  const uint64_t possible = (num_calls_ + 1) * std::size(kPowerCuts);
  counts_[Kind::cuts].possible = possible;
  if (index >= possible) return false;
  const uint64_t place = spread(index, possible);
  const uint64_t call = place / std::size(kPowerCuts) + 1;
  const Loss loss = kPowerCuts[place % std::size(kPowerCuts)];
  Disk disk = start_disk_;
  for (const auto& [number, change] : changes_)
    if (number < call) disk.apply(change);
  const Tree left = disk.after_crash(loss, options_.seed * 1'000'003 + place);
  const auto [known, is_new] = seen_cuts_.emplace(hash_of(left), "");
  if (!is_new) return true;
  reset(left);
  if (const std::string text = wrong_result(); call > num_calls_ && !text.empty())
    violate("the results were not durable when the command was done: " + text, left);
  if (const std::string text = failure_to_go_on(); !text.empty())
    violate("before call " + std::to_string(call) + ", lost: " + name_of(loss) + ": " + text, left);
  return true;
}

bool Trials::fail_call(uint64_t index) {
  const uint64_t possible = num_calls_ * std::size(kFaults);
  counts_[Kind::errors].possible = possible;
  if (index >= possible) return false;
  const uint64_t place = spread(index, possible);
  const InjectedFault& fault = kFaults[place % std::size(kFaults)];
  reset(scenario_.start);
  const ProgramEnd end = run_traced({.command = scenario_.command,
                                     .folder = scenario_.folder,
                                     .fault = {.at = place / std::size(kFaults) + 1,
                                               .kind = fault.kind,
                                               .error_number = fault.error_number},
                                     .before_call = {},
                                     .on_change = {}});
  const Tree left = read_tree(scenario_.folder);
  const std::string what = std::string(fault.name) + " at " + end.call + ": ";
  if (fault.error_number == EINTR && !can_be_interrupted(end.call)) return true;
  if (const std::string text = complaint(end); !text.empty()) {
    violate(what + text, left);
    return true;
  }
  if (fault.is_harmless && end.exit_code != 0) violate(what + "failed: " + end.err, left);
  if (end.exit_code == 0 && !wrong_result().empty()) violate(what + "wrong results in silence", left);
  if (end.exit_code == 1) ++counts_[Kind::errors].refused;
  if (const std::string text = failure_to_go_on(); !text.empty()) violate(what + text, left);
  return true;
}

// A request to stop, right before a call: exit code 3, or 0 where nothing was left to do.
void Trials::stop_at_call(uint64_t call) {
  reset(scenario_.start);
  const int signals[] = {SIGTERM, SIGINT, SIGHUP};
  const int number = signals[call % std::size(signals)];
  const ProgramEnd end = run_traced({.command = scenario_.command,
                                     .folder = scenario_.folder,
                                     .fault = {.at = call, .kind = Fault::Kind::signal, .signal = number},
                                     .before_call = {},
                                     .on_change = {}});
  const Tree left = read_tree(scenario_.folder);
  // A command without handlers, or whose handlers do not stand yet, ends by the signal itself.
  const bool is_right = end.exit_code == 0 || end.exit_code == 3 || end.exit_code == 128 + number;
  if (end.took_too_long || !is_right)
    return violate("signal " + std::to_string(number) + " at " + end.call + ": exit code " +
                       std::to_string(end.exit_code) + ": " + end.err,
                   left);
  if (end.exit_code == 0 && !wrong_result().empty())
    return violate("signal at " + end.call + ": exit code 0, but not done", left);
  if (const std::string text = failure_to_go_on(); !text.empty()) violate(end.call + ": " + text, left);
}

void Trials::damage_one(uint64_t index) {
  std::mt19937_64 random(options_.seed * 7'919 + index);
  Tree tree = middle_;
  std::string what;
  std::string before;  // of an input
  Path input;
  if (!scenario_.inputs.empty() && (random() % 4 == 0 || tree.empty())) {
    input = scenario_.inputs[random() % scenario_.inputs.size()];
    before = read_file(input);
    std::string content = before;
    what = input.filename().string() + ": " + damage_content(content, random);
    std::ofstream(input, std::ios::binary) << content;
  } else {
    what = damage(tree, random);
  }
  reset(tree);
  const Command command = scenario_.go_on();
  const ProgramEnd end = command.empty() ? ProgramEnd{.exit_code = 0} : run_command(command);
  const bool is_right = wrong_result_but_for(tree).empty();
  if (!input.empty()) std::ofstream(input, std::ios::binary) << before;
  if (const std::string text = complaint(end); !text.empty()) return violate(what + ": " + text, tree);
  if (end.exit_code == 1) ++counts_[Kind::damages].refused;
  if (end.exit_code == 0 && !is_right) violate(what + ": wrong results in silence", tree);
}

// Up to three in a row, then the command is left alone.
void Trials::signal_at_random(uint64_t index) {
  std::mt19937_64 random(options_.seed * 104'729 + index);
  constexpr int kSignals[] = {SIGKILL, SIGKILL, SIGTERM, SIGINT, SIGHUP};
  reset(scenario_.start);
  const size_t rounds = 1 + random() % 3;
  for (size_t round = 0; round < rounds; ++round) {
    const Command command = round == 0 ? scenario_.command : scenario_.go_on();
    if (command.empty()) break;
    StartedProgram program(command, scenario_.folder.string() + ".log");
    pause(seconds_ * 0.7 * static_cast<double>(random() % 1000) / 1000);
    const int number = kSignals[random() % std::size(kSignals)];
    program.signal(number);
    const ProgramEnd end = program.wait();
    ++counts_[Kind::signals].done;
    const bool was_killed = number == SIGKILL && end.exit_code == 128 + SIGKILL;
    counts_[Kind::signals].killed += was_killed;
    // Before its handlers stand a program ends by any signal.
    const bool was_early = end.exit_code == 128 + number;
    if (end.took_too_long) return violate("did not end after signal " + std::to_string(number), {});
    if (!was_killed && !was_early && end.exit_code != 0 && end.exit_code != 3)
      return violate("signal " + std::to_string(number) + ": exit code " + std::to_string(end.exit_code) +
                         ": " + end.err,
                     read_tree(scenario_.folder));
  }
  const Tree left = read_tree(scenario_.folder);
  if (const std::string text = failure_to_go_on(); !text.empty()) violate(text, left);
}

// Three at once, one of which is killed.
void Trials::crowd(uint64_t index) {
  std::mt19937_64 random(options_.seed * 1'299'709 + index);
  reset(random() % 2 == 0 ? scenario_.start : middle_);
  const Command command = scenario_.go_on();
  if (command.empty()) return;
  std::vector<std::unique_ptr<StartedProgram>> programs;
  for (int i = 0; i < 3; ++i)
    programs.push_back(std::make_unique<StartedProgram>(
        command, scenario_.folder.string() + "-" + std::to_string(i) + ".log"));
  pause(seconds_ * 2 * static_cast<double>(random() % 1000) / 1000);
  const size_t victim = random() % programs.size();
  programs[victim]->signal(SIGKILL);
  std::string texts;
  for (size_t i = 0; i < programs.size(); ++i) {
    const ProgramEnd end = programs[i]->wait();
    if (i == victim && end.exit_code == 128 + SIGKILL) continue;
    if (const std::string text = complaint(end); !text.empty()) texts += text;
  }
  const Tree left = read_tree(scenario_.folder);
  if (!texts.empty()) return violate("one of three: " + texts, left);
  if (const std::string text = failure_to_go_on(); !text.empty()) violate(text, left);
}

bool Trials::run(Kind kind, uint64_t index) {
  if (scenario_.is_long && kind != Kind::signals && kind != Kind::crowds) return false;
  trial_ = std::string("--kind ") + name_of(kind) + " --trial " + std::to_string(index);
  Counts& counts = counts_[kind];
  switch (kind) {
    case Kind::kills:
      counts.possible = num_calls_;
      if (index >= num_calls_) return false;
      kill_before_call(spread(index, num_calls_) + 1);
      break;
    case Kind::cuts:
      if (!cut_power(index)) return false;
      break;
    case Kind::errors:
      if (!fail_call(index)) return false;
      break;
    case Kind::stops:
      counts.possible = num_calls_;
      if (index >= num_calls_) return false;
      stop_at_call(spread(index, num_calls_) + 1);
      break;
    case Kind::damages:
      damage_one(index);
      break;
    case Kind::signals:
      signal_at_random(index);
      return true;
    case Kind::crowds:
      crowd(index);
      break;
  }
  ++counts.done;
  return true;
}

}  // namespace ropd::torture
