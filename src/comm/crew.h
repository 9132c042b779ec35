// Rank 0 leads, the others serve: what the leader calls for, every rank does. The leader runs the program as
// one process would; parts that are spread over ranks (a generator, a scorer, a learner) enlist a duty under
// which the other ranks do their share. Decisions, files and messages to people are the leader's alone, so
// ranks cannot disagree about what comes next.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "comm/world.h"

namespace ropd::comm {

// Not thread-safe; the parts that hold it follow each other.
class Crew {
 public:
  using Duty = std::function<void(ByteReader& call)>;

  explicit Crew(World& world) : world_(world), is_at_work_(world.size() > 1) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  World& world() { return world_; }
  bool leads() const { return world_.rank() == 0; }
  bool is_alone() const { return world_.size() == 1; }

  // What the others do when the leader calls; its number. On every rank the same, in the same order.
  size_t enlist(Duty duty);

  // While it lives, the leader and the others are at work together. Broken off by an exception it leaves them in
  // the middle, and nothing can be called any more.
  class Call {
   public:
    explicit Call(Crew* crew);  // nullptr: nobody else is at work
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Crew* const crew_;
    const int exceptions_;
  };
  // The leader: begins this duty on every other rank. `activity` is what is told when somebody waits in vain.
  [[nodiscard]] Call call(size_t duty, const std::string& activity, std::span<const std::byte> message = {});
  // The same with a message for each rank; the leader's own is not sent.
  [[nodiscard]] Call call_each(size_t duty, const std::string& activity,
                               const std::function<std::vector<std::byte>(int rank)>& message);

  // Work that every rank begins with and that may fail everywhere alike (arguments, files): the leader does it
  // first; where it fails the others do nothing and get the exit code of their dismissal.
  [[nodiscard]] std::optional<int> leader_first(const std::function<void()>& work);

  // The others: do what is called for until the leader dismisses them; the exit code it gave.
  int serve();
  // The leader: sends everybody home.
  void dismiss(int exit_code);
  // The leader: from here on the others go to serve() and nowhere else, so a failure may send them home.
  void expect_service() { is_at_work_ = false; }
  // The leader: nobody is in the middle of anything.
  bool is_idle() const { return !is_at_work_; }

 private:
  World& world_;
  std::deque<Duty> duties_;  // a duty may enlist others while it is done
  bool is_at_work_;

  void send_call(uint64_t duty, const std::string& activity, std::span<const std::byte> message, int rank);
};

// A crew of one, for whoever works alone.
Crew& solo_crew();

// The rank's share of [0, size): whole blocks of `block`, so that sums over blocks keep their order.
struct Slice {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};
Slice slice_of(size_t size, size_t block, int rank, int num_ranks);

}  // namespace ropd::comm
