// Where the rollouts of an iteration come from (method.md section 6). Plain data: the curriculum decides it,
// the trainer obeys it, the metrics record it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ropd {

enum class SourceKind { current, initial, recent, bank, mix };

struct Source {
  SourceKind kind = SourceKind::current;
  uint64_t step = 0;       // recent: the optimization step whose student was frozen
  std::string path;        // bank: the file
  std::vector<Source> of;  // mix: at least two sources, none of them a mix
  // mix: [of] responses from each, up to a factor, in lowest terms; empty = equal numbers
  std::vector<uint64_t> ratio = {};

  bool operator==(const Source&) const = default;
  // Does any rollout of this source have to be sampled from the student as it is now?
  bool needs_current() const {
    for (size_t i = 0; i < of.size(); ++i)
      if ((ratio.empty() || ratio[i] > 0) && of[i].needs_current()) return true;
    return kind == SourceKind::current;
  }
};

// current, initial, recent:40, bank:F.jsonl, mix(current,initial), mix(3 current,1 initial): the form used in
// metrics and messages.
inline std::string source_name(const Source& source) {
  switch (source.kind) {
    case SourceKind::current:
      return "current";
    case SourceKind::initial:
      return "initial";
    case SourceKind::recent:
      return "recent:" + std::to_string(source.step);
    case SourceKind::bank:
      return "bank:" + source.path;
    case SourceKind::mix:
      break;
  }
  std::string name = "mix(";
  for (size_t i = 0; i < source.of.size(); ++i)
    name += (i ? "," : "") + (source.ratio.empty() ? "" : std::to_string(source.ratio[i]) + " ") +
            source_name(source.of[i]);
  return name + ")";
}

}  // namespace ropd
