#include "io/peer_speeds.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "io/jsonl.h"

namespace ropd::io {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

double number(const Json& object, const char* name, const std::string& where) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number())
    fail(where, ": no number \"", name, "\" (expected output of llama-bench -o json or llama-batched-bench)");
  return found->get<double>();
}

void add(PeerSpeeds& speeds, const Json& object, const std::string& where) {
  if (!object.is_object()) fail(where, ": expected an object, got ", object.type_name());
  const auto keep = [&](const char* kind, double count, double tokens_per_second) {
    if (!(tokens_per_second > 0) || !std::isfinite(tokens_per_second) || !(count >= 1) || count > 1e9)
      fail(where, ": ", tokens_per_second, " tokens a second of ", kind, " ", count,
           ", expected both to be positive");
    double& best = speeds[std::string(kind) + " " + std::to_string(static_cast<int64_t>(count))];
    best = std::max(best, tokens_per_second);
  };
  if (object.contains("speed_tg"))
    return keep("decode", number(object, "pl", where), number(object, "speed_tg", where));
  const double prompt = number(object, "n_prompt", where), generated = number(object, "n_gen", where),
               speed = number(object, "avg_ts", where);
  if (prompt > 0 && generated > 0) return;  // both together: nothing of ours is that
  keep(prompt > 0 ? "prefill" : "decode", prompt > 0 ? prompt : 1, speed);
}

}  // namespace

PeerSpeeds parse_peer_speeds(std::string_view text, const std::string& name) {
  PeerSpeeds speeds;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '[') {
    const Json list = parse_json(text, name);
    for (size_t i = 0; i < list.size(); ++i) add(speeds, list[i], name + ": entry " + std::to_string(i));
  } else {
    JsonlReader reader(text, name);
    for_each_json_row(reader, [&](Json&& row, const std::string& where) { add(speeds, row, where); });
  }
  if (speeds.empty()) fail(name, ": no measurement of decoding or of a prompt in it");
  return speeds;
}

PeerSpeeds read_peer_speeds(const Path& path) {
  return parse_peer_speeds(read_file(path, kMaxBytes), path.string());
}

}  // namespace ropd::io
