#include "study/verify_study.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "io/damages.h"
#include "io/graph_file.h"
#include "study/results.h"
#include "study/seen_inputs.h"
#include "study/store.h"

namespace ropd::study {
namespace {

namespace fs = std::filesystem;
using train::Verification;

// In the order of their names; none where there is no such folder.
std::vector<Path> entries_of(const Path& folder) {
  std::vector<Path> entries;
  if (!fs::is_directory(folder)) return entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

void verify_runs(Verification& result, const Path& folder) {
  // Most runs of a study read the same models.
  std::map<Path, std::string> hashes;
  const train::VerifyOptions options{.hash =
                                         [&](const Path& path) {
                                           auto& hash = hashes[path];
                                           if (hash.empty()) hash = io::content_hash(path);
                                           return hash;
                                         },
                                     .follows_links = false};  // evaluations have their own turn
  for (const Path& run : entries_of(folder)) {
    if (!fs::exists(run / "config.yaml")) continue;  // about to be made
    const size_t before = result.damages.size();
    io::finds_whole(result.damages, [&] {
      const Verification of_run = train::verify_run(run, options);
      result.damages.insert(result.damages.end(), of_run.damages.begin(), of_run.damages.end());
      result.blemishes.insert(result.blemishes.end(), of_run.blemishes.begin(), of_run.blemishes.end());
    });
    io::finds_whole(result.damages, [&] { (void)read_states(run); });
    if (result.damages.size() == before) result.found.push_back("run " + run.filename().string());
  }
}

void verify_diagnoses(Verification& result, const Path& folder) {
  size_t whole = 0;
  for (const Path& path : entries_of(folder))
    if (path.extension() == ".json")
      whole += io::finds_whole(result.damages, [&] { (void)read_diagnosis(path); });
  if (whole > 0) result.found.push_back("diagnoses/ (" + std::to_string(whole) + " files)");
}

}  // namespace

bool is_study_folder(const Path& folder) {
  return std::ranges::any_of(entries_of(folder), [](const Path& path) {
    return path.filename() == "claims" || path.string().ends_with(io::kGraphEnding);
  });
}

Verification verify_study(const Path& folder) {
  Verification result;
  if (io::finds_whole(result.damages, [&] { (void)read_seen_inputs(folder); }))
    result.found.push_back("inputs.json");
  verify_runs(result, folder / "runs");
  train::verify_rollouts(result, folder / "banks");
  train::verify_rollouts(result, folder / "prefixes");
  train::verify_evaluations(result, folder / "evaluations");
  verify_diagnoses(result, folder / "diagnoses");
  const Store store(folder);
  for (const Path& path : entries_of(folder / "times"))
    if (path.extension() == ".json")
      io::finds_whole(result.blemishes, [&] { (void)store.time_of(path.stem().string()); });
  return result;
}

}  // namespace ropd::study
