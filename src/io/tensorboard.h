// TensorBoard event files: TFRecord frames around hand-encoded protobuf messages.
//   frame   = length (8, little endian) | masked crc32c of the length (4)
//             | message | masked crc32c of the message (4)
//   Event   = {1: double wall_time, 2: int64 step, 3: string file_version | 5: Summary | 7: SessionLog}
//   Summary = repeated 1: Value {1: string tag, 2: float simple_value}
// Each process writes its own file. A resumed run begins with a SessionLog START at its first step, which
// makes TensorBoard drop later points of earlier files.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "records/metrics.h"

namespace ropd::io {

uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

class TensorBoardWriter {
 public:
  // Creates directory/events.out.tfevents.<seconds>.<host>.<process>; first_step > 0 marks a resumed run.
  TensorBoardWriter(const Path& directory, double unix_time, uint64_t first_step = 0);
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;
  ~TensorBoardWriter();

  void write(std::span<const std::pair<std::string, double>> scalars, uint64_t step, double unix_time);
  // Tags are the JSON names; an iteration's number that also exists per step is under iteration/.
  void write(const StepRecord& record);
  void write(const IterationRecord& record);
  const Path& path() const { return path_; }

 private:
  Path path_;
  int descriptor_ = -1;
  std::vector<std::string> step_tags_;
  void write_frame(std::string_view message);
};

}  // namespace ropd::io
