// The commands that write, each on a tiny world: what it begins with, how a user goes on after a failure, and
// what its work amounts to.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/tiny_world.h"
#include "torture/tree.h"

namespace ropd::torture {

using Command = std::vector<std::string>;

struct Scenario {
  std::string name;
  Path folder;  // all that the command writes lies here
  Tree start;   // what lies there before
  Command command;
  // After a failure: the command that a user gives then; empty when there is nothing left to do.
  std::function<Command()> go_on;
  // Whether a file, by its path inside the folder, is a result. Only the newest checkpoint counts.
  std::function<bool(const std::string& inside)> is_result;
  // Also kept, but not read again when the work goes on: what earlier iterations sampled. May be empty.
  std::function<bool(const std::string& inside)> is_record;
  // Results that a command which goes on need not read again. May be empty.
  std::function<bool(const std::string& inside)> rests;
  std::vector<Path> inputs;  // files that it reads, outside of the folder
  Command verify;            // empty where there is nothing that `ropd verify` knows
  double middle = 0.6;       // share of its calls after which it is killed for damages to what it left
  bool is_long = false;      // takes seconds: only at random moments
};

// The results that lie in the folder, with or without the records.
[[nodiscard]] Tree results_of(const Scenario& scenario, bool with_records);
// The first difference: "run/model: missing". Empty when there is none.
[[nodiscard]] std::string difference(const Tree& found, const Tree& expected);

// Owns the files of all scenarios. The folder must outlive it.
class Scenarios {
 public:
  explicit Scenarios(std::string program);
  const std::vector<Scenario>& all() const { return all_; }

 private:
  const std::string program_;
  const test::TinyWorld world_;
  std::vector<Scenario> all_;

  Path new_folder(const std::string& name) const;
  Command with_program(std::vector<std::string> words) const;
  void run(const Command& command) const;
  std::vector<Path> model_inputs() const;
  void add_train();
  void add_resume();
  void add_branch();
  void add_sft();
  void add_generate();
  void add_score();
  void add_eval();
  void add_diagnose();
  void add_study();
  void add_lab();
};

}  // namespace ropd::torture
