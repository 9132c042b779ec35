// What the live page can ask for, without sockets: the page's own files, the list of runs and studies and its
// changes, a study's graph, charts (the report's figure code), responses, settings. Answers are JSON or the page's files; a path that
// is not listed does not exist, and a run is named by its id in the list, never by a path.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watch/run_list.h"

namespace ropd::watch {

// /api/charts?run=a&run=b
struct Target {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order

  std::string value(std::string_view name) const;  // "" when absent
  std::vector<std::string> values(std::string_view name) const;
};
// Nothing for what is no path with a query: other forms, broken escapes, too many parameters.
std::optional<Target> parse_target(std::string_view text);

struct Answer {
  int status = 200;
  std::string content_type = "application/json";
  std::shared_ptr<const std::string> body;  // shared by all who are being sent it
};

// Not thread-safe.
class Site {
 public:
  explicit Site(Path folder) : runs_(std::move(folder)) {}
  // Looks at the files again; grows when something changed.
  uint64_t refresh(double now) { return runs_.refresh(now); }
  uint64_t version() const { return runs_.version(); }
  // What a page that knows `version` must hear, as JSON: {"version", "folder", "ids" and "study_ids" (when any
  // came or went), "runs" and "studies": those that changed}. From 0: everything.
  std::string changes_since(uint64_t version) const;
  Answer answer(const Target& target);

 private:
  struct Kept {
    std::string key;
    Answer answer;
  };
  RunList runs_;
  std::list<Kept> kept_;  // newest first; answers that several pages ask for
  uint64_t kept_bytes_ = 0;

  template <class Make>
  Answer keep(const std::string& key, const Make& make);
  Answer answer_study(const std::string& id);
  Answer answer_charts(const std::vector<const RunSummary*>& runs);
  Answer answer_responses(const RunSummary& run, const Target& target);
};

}  // namespace ropd::watch
