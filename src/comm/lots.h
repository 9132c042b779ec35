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

// How many of `left` pieces somebody with room for `room` gets: fewer towards the end, so that all end together.
size_t lot_size(size_t left, size_t room, int num_ranks);

// The leader's side; a thread of its own serves the others while the leader works.
class Dealer {
 public:
  // Each called for one result at a time, on the dealer's thread, under `mutex`, which also the leader's own
  // results should hold.
  struct Hooks {
    std::function<void(size_t index, ByteReader& result)> on_result;
    std::function<void(ByteReader& last_words)> on_end = {};  // a rank is done; may be empty
  };
  enum class OnStop { ends, goes_on };  // whether a stop request (base/stop.h) ends the dealing
  // Pieces [0, count); a lot is a row of neighbours.
  Dealer(World& world, size_t count, Hooks hooks, OnStop on_stop = OnStop::ends);
  ~Dealer();
  Dealer(const Dealer&) = delete;
  Dealer& operator=(const Dealer&) = delete;

  // The leader's next lot; empty when nothing is left, or somebody has failed.
  std::vector<size_t> take(size_t room);
  // Waits until everybody is done. What a hook threw is thrown here.
  void finish();
  std::mutex& mutex() { return mutex_; }

 private:
  World& world_;
  const size_t count_;
  const Hooks hooks_;
  const OnStop on_stop_;
  std::mutex mutex_;  // of the next two and of calling hooks
  size_t next_ = 0;
  std::exception_ptr failure_;
  std::thread thread_;

  void serve();
  void answer(int rank, size_t room);
  size_t next_lot(size_t room);
};

// Another rank's side.
class Taker {
 public:
  explicit Taker(World& world) : world_(world) {}
  // The next lot. Empty: none has come yet (only without may_wait). Nothing: there is no more.
  std::optional<std::vector<size_t>> take(size_t room, bool may_wait);
  // Several threads may.
  void send_result(size_t index, const ByteWriter& result);
  // Once, at the end.
  void finish(const ByteWriter& last_words = {});

 private:
  World& world_;
  bool has_asked_ = false, is_over_ = false;
};

}  // namespace ropd::comm
