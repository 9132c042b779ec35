#include "rollout/row_stream.h"

#include "base/progress.h"

namespace ropd::rollout {

RunSummary stream_rows(Generator& generator, std::span<const Request> requests,
                       const std::function<void(std::string_view row)>& write, const BankOptions& options) {
  generator.check(requests);
  std::vector<std::string> waiting(requests.size());  // for rows before them
  size_t num_written = 0;
  Progress progress(options.stage, requests.size(), "tok");
  RunHooks hooks;
  hooks.on_done = [&](size_t index, Rollout&& rollout) {
    if (options.check) options.check();
    if (options.decode) rollout.text = options.decode(rollout.response_ids);
    waiting[index] = io::rollout_line(rollout);
    for (; num_written < waiting.size() && !waiting[num_written].empty(); ++num_written) {
      write(waiting[num_written]);
      waiting[num_written] = std::string();
    }
  };
  hooks.on_step = [&](const RunSummary& so_far) {
    progress.update(so_far.num_done, so_far.num_tokens, so_far.note());
  };
  const RunSummary run = generator.run(requests, hooks);
  progress.update(run.num_done, run.num_tokens, run.note());
  return run;
}

}  // namespace ropd::rollout
