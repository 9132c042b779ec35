#include "comm/crew.h"

#include <algorithm>
#include <cassert>
#include <exception>

namespace ropd::comm {
namespace {

// In place of a duty; no message follows.
constexpr uint64_t kDismissed = UINT64_MAX, kGoOn = UINT64_MAX - 1;

}  // namespace

size_t Crew::enlist(Duty duty) {
  if (is_alone()) return 0;
  duties_.push_back(std::move(duty));
  return duties_.size() - 1;
}

Crew::Call::Call(Crew* crew) : crew_(crew), exceptions_(std::uncaught_exceptions()) {
  if (crew_) crew_->is_at_work_ = true;
}

Crew::Call::~Call() {
  if (crew_ && std::uncaught_exceptions() == exceptions_) crew_->is_at_work_ = false;
}

void Crew::send_call(uint64_t duty, const std::string& activity, std::span<const std::byte> message,
                     int rank) {
  ByteWriter head;
  head.put(duty).put(activity);
  world_.send(head.bytes(), rank, Tag::call);
  if (duty < kGoOn) world_.send(message, rank, Tag::call);
}

Crew::Call Crew::call(size_t duty, const std::string& activity, std::span<const std::byte> message) {
  return call_each(duty, activity,
                   [&](int) { return std::vector<std::byte>(message.begin(), message.end()); });
}

Crew::Call Crew::call_each(size_t duty, const std::string& activity,
                           const std::function<std::vector<std::byte>(int rank)>& message) {
  assert(leads());
  if (is_alone()) return Call(nullptr);
  world_.begin_activity(activity);
  for (int rank = 1; rank < world_.size(); ++rank) send_call(duty, activity, message(rank), rank);
  return Call(this);
}

std::optional<int> Crew::leader_first(const std::function<void()>& work) {
  if (leads()) {
    is_at_work_ = false;
    work();
    is_at_work_ = !is_alone();
    for (int rank = 1; rank < world_.size(); ++rank) send_call(kGoOn, "start", {}, rank);
    return std::nullopt;
  }
  const Message head = world_.receive(0, Tag::call);
  ByteReader reader(head.bytes);
  const auto word = reader.get<uint64_t>();
  assert(word >= kGoOn);
  if (word == kDismissed) return std::stoi(reader.get<std::string>());
  work();
  return std::nullopt;
}

int Crew::serve() {
  assert(!leads());
  while (true) {
    const Message head = world_.receive(0, Tag::call);
    ByteReader reader(head.bytes);
    const auto duty = reader.get<uint64_t>();
    const auto activity = reader.get<std::string>();
    if (duty == kDismissed) return std::stoi(activity);
    world_.begin_activity(activity);
    const Message message = world_.receive(0, Tag::call);
    ByteReader call(message.bytes);
    duties_.at(duty)(call);
    world_.begin_activity("idle");
  }
}

void Crew::dismiss(int exit_code) {
  assert(leads() && is_idle());
  for (int rank = 1; rank < world_.size(); ++rank) send_call(kDismissed, std::to_string(exit_code), {}, rank);
}

Crew& solo_crew() {
  static SoloWorld world;
  static Crew crew(world);
  return crew;
}

Slice slice_of(size_t size, size_t block, int rank, int num_ranks) {
  const size_t blocks = (size + block - 1) / block, r = static_cast<size_t>(rank),
               ranks = static_cast<size_t>(num_ranks);
  return {std::min(size, blocks * r / ranks * block), std::min(size, blocks * (r + 1) / ranks * block)};
}

}  // namespace ropd::comm
