// The processes of a run, or the one there is: ranks 0 .. size - 1 that send each other bytes. A transport and
// nothing more: there are no reductions, because a sum's bits would depend on the number of ranks; slices go to
// their owner, who adds them in a fixed order (train/full_learner.h). Alone is a world of one.
//
// A rank that does not answer ends everybody's waiting: a wait fails with the rank, what was being done
// (begin_activity) and the operation. Waiting takes no core from those who compute: it looks for a while where
// nobody wants the core (base/threads.h), then sleeps between looks.
#pragma once
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ropd::comm {

// What a message is about; messages of one sender with one tag arrive in the order they were sent.
enum class Tag : int { call, lot, result, early_lot, early_result, slice, sums, state, probe };
std::string_view tag_name(Tag tag);

struct Outgoing {
  std::span<const std::byte> bytes;
  int to = 0;
  Tag tag = Tag::slice;
};
struct Incoming {
  std::span<std::byte> bytes;  // its size is known and must be the message's
  int from = 0;
  Tag tag = Tag::slice;
};
struct Message {
  std::vector<std::byte> bytes;
  int from = 0;
};

// Whether the rank has something else to do meanwhile, on other threads: then its waiting only sleeps.
enum class Waiting { alone, beside_work };

// Several threads of a rank may call at a time, for different tags.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host() const = 0;

  // Everything sent and received, begun together: no order of ranks can lock up. A rank sends itself nothing.
  virtual void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) = 0;
  // Of a size that the receiver does not know, up to 2^31 - 1 bytes. A copy is on its way when this returns; only
  // who sends much more than is received waits.
  virtual void send(std::span<const std::byte> bytes, int to, Tag tag) = 0;
  // The next message with this tag from `from`, or from anybody. Waits.
  virtual Message receive(std::optional<int> from, Tag tag, Waiting waiting = Waiting::alone) = 0;
  // The same, if one has come.
  virtual std::optional<Message> try_receive(std::optional<int> from, Tag tag) = 0;

  // Ends all ranks, with this exit code, because this one cannot go on; its reason is told already.
  [[noreturn]] virtual void abort(int exit_code) = 0;

  // What this rank does from now on ("step 12, gradient"): told when somebody waits in vain.
  void begin_activity(std::string activity);
  std::string activity() const;

 private:
  mutable std::mutex activity_mutex_;
  std::string activity_ = "start";
};

// One process that is nobody's peer.
class SoloWorld final : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string host() const override;
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override;
  void send(std::span<const std::byte> bytes, int to, Tag tag) override;
  Message receive(std::optional<int> from, Tag tag, Waiting waiting) override;
  std::optional<Message> try_receive(std::optional<int> from, Tag tag) override;
  [[noreturn]] void abort(int exit_code) override;
};

std::string host_name();

// --- made of the above, the same for every transport; all ranks call them together ---

// Rank 0's bytes to everybody.
void broadcast(World& world, std::vector<std::byte>& bytes, Tag tag);
// Everybody's bytes at rank 0, by rank; empty elsewhere.
std::vector<std::vector<std::byte>> gather(World& world, std::span<const std::byte> bytes, Tag tag);
// parts[r] of rank 0 at rank r; `parts` is empty elsewhere.
std::vector<std::byte> scatter(World& world, std::vector<std::vector<std::byte>> parts, Tag tag);
// Nobody returns before everybody has called.
void barrier(World& world);

}  // namespace ropd::comm
