// Independent pieces of work, dealt out in lots as ranks get done, so that a slow rank holds up nobody; results
// come back by index, so who did what shows nowhere. The leader works too: its own lots come from the same
// heap.
#pragma once
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "comm/world.h"

namespace ropd::comm {

// Neighbouring pieces [begin, end).
struct Lot {
  size_t begin = 0, end = 0;
  std::vector<std::byte> about = {};  // what a rank must know of them (Dealer::Hooks::describe)
  size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
};

// How much somebody wants: in pieces, or in what they cost where a dealer was told. One piece is never too much.
struct LotRange {
  uint64_t least = 1;  // as long as there is so much
  uint64_t most = 1;
};
// What of `left` a lot gets: half a fair share, so that lots get smaller towards the end and all end together.
uint64_t lot_share(uint64_t left, const LotRange& wanted, int num_ranks);

// The leader's side; a thread of its own serves the others while the leader works.
class Dealer {
 public:
  // Each called one at a time, on the dealer's thread, under `mutex`, which also the leader's own results should
  // hold.
  struct Hooks {
    std::function<void(size_t index, ByteReader& result)> on_result;
    std::function<void(ByteReader& last_words)> on_end = {};               // a rank is done; may be empty
    std::function<void(ByteWriter& about, const Lot& lot)> describe = {};  // for another rank; may be empty
  };
  enum class OnStop { ends, goes_on };  // whether a stop request (base/stop.h) ends the dealing
  // costs [pieces].
  Dealer(World& world, std::vector<uint64_t> costs, Hooks hooks, OnStop on_stop = OnStop::ends);
  // Pieces that cost the same: one each.
  Dealer(World& world, size_t count, Hooks hooks, OnStop on_stop = OnStop::ends)
      : Dealer(world, std::vector<uint64_t>(count, 1), std::move(hooks), on_stop) {}
  ~Dealer();
  Dealer(const Dealer&) = delete;
  Dealer& operator=(const Dealer&) = delete;

  // The leader's next lot; empty when nothing is left, or somebody has failed.
  Lot take(const LotRange& wanted);
  // Waits until everybody is done. What a hook threw is thrown here.
  void finish();
  std::mutex& mutex() { return mutex_; }

 private:
  World& world_;
  const std::vector<uint64_t> costs_;
  const Hooks hooks_;
  const OnStop on_stop_;
  std::mutex mutex_;  // of the next three and of calling hooks
  size_t next_ = 0;
  uint64_t left_;  // cost of what is left
  std::exception_ptr failure_;
  std::thread thread_;

  void serve();
  void answer(int rank, const LotRange& wanted);
  Lot next_lot(const LotRange& wanted);
};

// Another rank's side.
class Taker {
 public:
  explicit Taker(World& world) : world_(world) {}
  // The next lot. Empty: none has come yet (only without may_wait). Nothing: there is no more.
  std::optional<Lot> take(const LotRange& wanted, bool may_wait);
  // Several threads may.
  void send_result(size_t index, const ByteWriter& result);
  // Once, at the end.
  void finish(const ByteWriter& last_words = {});

 private:
  World& world_;
  bool has_asked_ = false, is_over_ = false;
};

}  // namespace ropd::comm
