// metrics.jsonl without what measures time or memory: equal for equal runs.
#pragma once
#include <sstream>
#include <string>

#include "base/file.h"
#include "base/json.h"

namespace ropd::test {

inline std::string timeless_metrics(const Path& path) {
  std::string lines;
  std::istringstream metrics(read_file(path));
  for (std::string line; std::getline(metrics, line);) {
    const Json all = Json::parse(line);
    Json kept = Json::object();
    for (const auto& [key, value] : all.items())
      if (key != "unix_time" && !key.starts_with("timing_s/") && !key.starts_with("perf/")) kept[key] = value;
    lines += kept.dump() + "\n";
  }
  return lines;
}

}  // namespace ropd::test
