#include "io/model_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "io/checkpoint.h"
#include "io/input_ledger.h"
#include "support/error_of.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

namespace fs = std::filesystem;

void fill(const Path& folder) {
  fs::create_directories(folder / "model");
  write_file_atomically(folder / "model/config.json", "{}");
}

TEST(FindModel, TakesAModelACheckpointOrARun) {
  const test::TemporaryDirectory directory;
  CheckpointStore store(directory / "run/checkpoints");
  write_file_atomically(directory / "run/config.yaml", "");
  EXPECT_THROW((void)find_model(directory / "run"), Error) << "nothing to take yet";
  store.save(4, {.keep = 0}, fill);
  const Path newest = store.save(8, {.keep = 0}, fill);
  EXPECT_EQ(find_model(newest / "model"), newest / "model");
  EXPECT_EQ(find_model(newest), newest / "model");
  EXPECT_EQ(find_model(directory / "run"), newest / "model");
  fill(directory / "run");  // as supervised fine-tuning ends
  EXPECT_EQ(find_model(directory / "run"), directory / "run/model");
  EXPECT_EQ(find_model(directory / "none"), directory / "none");
}

TEST(FindModel, ComparesWithTheManifestAbove) {
  const test::TemporaryDirectory directory;
  const Path checkpoint = CheckpointStore(directory.path()).save(4, {.keep = 0}, fill);
  write_file_atomically(checkpoint / "model/config.json", "[]");
  EXPECT_THROW((void)find_model(checkpoint), Error);
  EXPECT_THROW((void)find_model(checkpoint / "model"), Error);
  EXPECT_THROW((void)find_model(checkpoint / "model/"), Error);
}

TEST(FindModel, ComparesTheResultOfFineTuningWithWhatTheRunKeepsOfIt) {
  const test::TemporaryDirectory directory;
  const Path run = directory / "run";
  fill(run);
  write_file_atomically(run / "config.yaml", "");
  EXPECT_EQ(find_model(run), run / "model") << "nothing is kept yet";
  InputLedger ledger(run / "inputs.json");
  ledger.hold(kResultRole, own_model_files(run / "model"));
  ledger.save();
  EXPECT_EQ(find_model(run), run / "model");
  EXPECT_EQ(find_model(run / "model/"), run / "model/");
  const auto refusal = [](const Path& path) { return test::error_of([&] { (void)find_model(path); }); };
  const auto is_named = testing::HasSubstr((run / "model/config.json").string());
  write_file_atomically(run / "model/config.json", "[]");
  EXPECT_THAT(refusal(run), is_named);
  EXPECT_THAT(refusal(run / "model"), is_named);
  write_file_atomically(run / "model/config.json", "{}");
  EXPECT_EQ(find_model(run), run / "model") << "the same content again";
  write_file_atomically(run / "model/tokenizer.json", "{}");
  EXPECT_THAT(refusal(run), testing::HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace ropd::io
