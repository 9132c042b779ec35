// The laboratory as a user runs it, with few responses: to the end, and interrupted on the way by kills while
// two processes work on it. It is a study, so this is the test of `ropd study` under the same conditions.
#include <gtest/gtest.h>
#include <ropd_source_directory.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/test_data.h"
#include "torture/traced_program.h"

namespace ropd {
namespace {

using test::TemporaryDirectory;

torture::ProgramEnd end_of(torture::StartedProgram& program) {
  return program.wait(std::chrono::minutes(10));
}

std::vector<std::string> lab_command(const Path& out) {
  return {ROPD_PROGRAM, "lab",       "--fast", "--responses", "32", "--models", ROPD_SOURCE_DIR "/lab/models",
          "--out",      out.string()};
}

// All that a study made, by its path inside the folder: hashes of weights, responses, banks and diagnoses.
std::map<std::string, std::string> made_in(const Path& folder) {
  std::map<std::string, std::string> hashes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string inside = std::filesystem::relative(entry.path(), folder).string();
    const bool is_result = name == "model.safetensors" || name == "optimizer.safetensors" ||
                           name == "responses.jsonl" || name == "summary.txt" || name == "states.json" ||
                           inside.starts_with("diagnoses/") || inside.starts_with("banks/");
    if (entry.is_regular_file() && is_result) hashes[inside] = sha256_file(entry.path());
  }
  return hashes;
}

TEST(Lab, InterruptedAndKilledEndsAsIfItHadRunThrough) {
  TemporaryDirectory directory;
  const Path folder = directory / "broken";
  std::filesystem::create_directory(folder);
  const auto start = [&](const std::string& log, const std::string& out) {
    return std::make_unique<torture::StartedProgram>(lab_command(directory / out), directory / log);
  };
  const auto undisturbed = end_of(*start("log", "through"));
  ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
  // Two processes. One is killed, or asked to stop, right before one of the calls with which it changes files;
  // then the other, wherever it is. In the end both are left alone.
  for (const uint64_t call : {30, 150, 300, 500}) {
    const auto other = start("log", "broken");
    const bool is_polite = call % 100 == 50;
    (void)torture::run_traced(
        {.command = lab_command(folder),
         .folder = folder,
         .fault = {.at = call,
                   .kind = is_polite ? torture::Fault::Kind::signal : torture::Fault::Kind::kill,
                   .signal = SIGINT},
         .before_call = {},
         .on_change = {},
         .limit = std::chrono::minutes(10)});
    other->signal(is_polite ? SIGINT : SIGKILL);
    (void)end_of(*other);
  }
  const auto first = start("log-1", "broken"), second = start("log-2", "broken");
  for (const auto& program : {first.get(), second.get()}) {
    const auto end = end_of(*program);
    ASSERT_EQ(end.exit_code, 0) << end.err;
  }
  const auto through = made_in(directory / "through");
  auto broken = made_in(directory / "broken");
  // A stop inside of an iteration leaves a checkpoint of its own.
  std::erase_if(broken, [&](const auto& made) {
    return !through.contains(made.first) && made.first.find("/checkpoints/") != std::string::npos;
  });
  EXPECT_GT(through.size(), 20u);
  EXPECT_EQ(through, broken);
  EXPECT_GT(std::filesystem::file_size(directory / "through/report.html"), 20000u);
}

}  // namespace
}  // namespace ropd
