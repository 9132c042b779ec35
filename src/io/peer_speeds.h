// Speeds that other programs measured, to stand beside ours in `ropd bench --peers FILE`. Read are the
// outputs of llama.cpp's two benchmarks, as a JSON array or one object a line:
//   llama-bench -o json | -o jsonl          n_prompt, n_gen, avg_ts
//   llama-batched-bench --output-format jsonl   pl, speed_tg
// Other fields are ignored.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"

namespace ropd::io {

// Tokens a second by kind of work: "decode N" for N sequences at a time, "prefill N" for a prompt of N
// tokens. Of several measurements of the same the fastest counts.
using PeerSpeeds = std::map<std::string, double>;

// Fails when a line is no such measurement, or when there is none at all.
PeerSpeeds read_peer_speeds(const Path& path);
PeerSpeeds parse_peer_speeds(std::string_view text, const std::string& name);

}  // namespace ropd::io
