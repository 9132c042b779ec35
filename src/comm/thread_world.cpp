#include "comm/thread_world.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>

#include "base/error.h"

namespace ropd::comm {
namespace {

struct Envelope {
  Message message;
  Tag tag;
};

// What the ranks share. Everything is guarded by `mutex`.
struct Post {
  explicit Post(int size) : boxes(static_cast<size_t>(size)), has_left(static_cast<size_t>(size), false) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<Envelope>> boxes;  // [to]
  std::vector<bool> has_left;               // [rank]
  bool has_failed = false;
  std::exception_ptr failure;

  void leave(int rank, std::exception_ptr why) {
    const std::lock_guard lock(mutex);
    has_left[static_cast<size_t>(rank)] = true;
    if (why && !failure) failure = why;
    has_failed = has_failed || why;
    changed.notify_all();
  }
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(Post& post, int rank) : post_(post), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(post_.boxes.size()); }
  std::string host() const override { return "thread " + std::to_string(rank_); }

  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override {
    for (const Outgoing& out : outgoing) send(out.bytes, out.to, out.tag);
    for (const Incoming& in : incoming) {
      const Message message = receive(in.from, in.tag, Waiting::alone);
      if (message.bytes.size() != in.bytes.size())
        fail("rank ", rank_, " expects ", in.bytes.size(), " bytes of ", tag_name(in.tag), " from rank ",
             in.from, ", ", message.bytes.size(), " came");
      if (!in.bytes.empty()) std::memcpy(in.bytes.data(), message.bytes.data(), in.bytes.size());
    }
  }

  void send(std::span<const std::byte> bytes, int to, Tag tag) override {
    assert(to != rank_ && to >= 0 && to < size());
    const std::lock_guard lock(post_.mutex);
    post_.boxes[static_cast<size_t>(to)].push_back({{{bytes.begin(), bytes.end()}, rank_}, tag});
    post_.changed.notify_all();
  }

  Message receive(std::optional<int> from, Tag tag, Waiting) override {
    std::unique_lock lock(post_.mutex);
    while (true) {
      if (auto message = find(from, tag)) return std::move(*message);
      if (post_.has_failed || nobody_sends(from))
        fail("rank ", rank_, " (", activity(), ") waits for ", tag_name(tag), " of ",
             from ? "rank " + std::to_string(*from) : std::string("any rank"), ", which has ended");
      post_.changed.wait(lock);
    }
  }

  std::optional<Message> try_receive(std::optional<int> from, Tag tag) override {
    const std::lock_guard lock(post_.mutex);
    return find(from, tag);
  }

  [[noreturn]] void abort(int exit_code) override {
    fail("rank ", rank_, " ends everybody with exit code ", exit_code);
  }

 private:
  Post& post_;
  const int rank_;

  std::optional<Message> find(std::optional<int> from, Tag tag) {
    auto& box = post_.boxes[static_cast<size_t>(rank_)];
    const auto found = std::find_if(box.begin(), box.end(), [&](const Envelope& envelope) {
      return envelope.tag == tag && (!from || envelope.message.from == *from);
    });
    if (found == box.end()) return std::nullopt;
    Message message = std::move(found->message);
    box.erase(found);
    return message;
  }

  bool nobody_sends(std::optional<int> from) const {
    if (from) return post_.has_left[static_cast<size_t>(*from)];
    for (int rank = 0; rank < size(); ++rank)
      if (rank != rank_ && !post_.has_left[static_cast<size_t>(rank)]) return false;
    return true;
  }
};

}  // namespace

void run_thread_world(int size, const std::function<void(World& world)>& work) {
  assert(size > 0);
  Post post(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ThreadWorld world(post, rank);
      std::exception_ptr failure;
      try {
        work(world);
      } catch (...) {
        failure = std::current_exception();
      }
      post.leave(rank, failure);
    });
  for (std::thread& thread : threads) thread.join();
  if (post.failure) std::rethrow_exception(post.failure);
}

}  // namespace ropd::comm
