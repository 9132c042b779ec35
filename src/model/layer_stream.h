// A model whose weights are larger than the memory that they may take: brought into memory layer by layer
// from its mapped files, ahead of use by a thread of its own, and given back behind it. Who computes sees
// ordinary Weights and finds every layer in its place; whether it came from the disk shows in no bit.
//
// A pass goes once through the parts of the model: its layers (a mixture's experts belong to theirs) and then
// the head. What a memory budget leaves beside the weights decides how many positions a pass takes.
#pragma once
#include <sys/stat.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "io/model_directory.h"
#include "model/weights.h"

namespace ropd::model {

// So far. Bytes are those of the parts that passes went through, from the disk or from the system's cache; the
// rows of the embedding that tokens look up come on top.
struct StreamCounts {
  uint64_t passes = 0;
  uint64_t bytes = 0;
};

// What a memory budget means for a model.
struct StreamBudget {
  uint64_t window_bytes = 0;  // of weights at once
  bool reads_ahead = false;   // the next part is read while one is in use: the window holds both
  int64_t positions = 0;      // whose states a pass keeps
};

// Bytes of the parts of a model as its tensors are stored. `element_bytes`: of a parameter.
std::vector<uint64_t> stream_parts(const ModelConfig& config, uint64_t element_bytes);

// batch_tokens: positions that are in a layer at a time. A budget too small for one part and one batch means
// these; what is left beyond them goes first into reading ahead, then into more positions.
StreamBudget divide_memory(std::span<const uint64_t> parts, const ModelConfig& config, uint64_t memory_bytes,
                           int64_t batch_tokens);

// One pass at a time, by one thread.
class LayerStream {
 public:
  // Refuses files whose matrices are not aligned: those would have to be copied.
  LayerStream(std::shared_ptr<const io::ModelDirectory> directory, uint64_t memory_bytes);
  LayerStream(const LayerStream&) = delete;
  LayerStream& operator=(const LayerStream&) = delete;
  ~LayerStream();

  void set_memory(uint64_t memory_bytes) { memory_bytes_ = memory_bytes; }  // from the next pass on
  StreamBudget budget(int64_t batch_tokens) const;
  size_t head() const { return parts_.size() - 1; }  // the part behind the layers
  StreamCounts counts() const { return counts_; }
  // Brings the head into memory for work behind a pass; it stays until the next pass.
  void hold_head();

  class Pass {
   public:
    // batch_tokens: of the largest batch that goes through.
    Pass(LayerStream& stream, int64_t batch_tokens);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass();
    // Returns when `part` is in memory; the parts before it are given back. In order, none left out. The first
    // pass refuses NaN and infinity, naming the tensor.
    void enter(size_t part);
    // Gives the last part back. Fails naming a file that was written to since it was opened: what was computed
    // may be of two models.
    void finish();

   private:
    LayerStream& stream_;
    const size_t window_;  // parts at once
    const bool drops_cache_;
    size_t inside_ = 0;  // the part that is in use, + 1
    // guarded by mutex_
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t ready_ = 0, left_ = 0;  // parts that are in memory, and that were given back, from the first on
    bool is_over_ = false;
    std::thread reader_;

    void read_ahead();
    void leave(size_t part);
  };

 private:
  struct Range {  // bytes of one file
    size_t file = 0;
    size_t begin = 0, end = 0;
  };
  struct Part {
    std::vector<const io::StoredTensor*> tensors;
    std::vector<Range> ranges;
    uint64_t bytes = 0;
    bool is_checked = false;  // no NaN, no infinity
  };
  struct File {
    int descriptor = -1;
    struct stat opened {};
  };

  const std::shared_ptr<const io::ModelDirectory> directory_;
  std::vector<File> files_;
  std::vector<Part> parts_;  // layers, head
  Part embedding_;           // rows of it are looked up; empty where it is the head
  uint64_t memory_bytes_;
  StreamCounts counts_;

  void add(Part& part, const io::StoredTensor& tensor) const;
  std::span<const std::byte> bytes_of(const Range& range) const;
  void give_back(const Part& part, bool drops_cache) const;
  void check(Part& part) const;
  void check_files() const;
};

// As map_weights(), to be used layer by layer within about memory_bytes, activations included.
Weights stream_weights(std::shared_ptr<const io::ModelDirectory> directory, uint64_t memory_bytes);

}  // namespace ropd::model
