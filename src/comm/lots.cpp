#include "comm/lots.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/stop.h"

namespace ropd::comm {
namespace {

enum class Word : uint8_t { wants_lot, result, end };  // what another rank says

std::vector<std::byte> joined(ByteWriter head, const ByteWriter& rest) {
  auto bytes = head.take();
  bytes.insert(bytes.end(), rest.bytes().begin(), rest.bytes().end());
  return bytes;
}

}  // namespace

uint64_t lot_share(uint64_t left, const LotRange& wanted, int num_ranks) {
  return std::clamp(left / (2 * static_cast<uint64_t>(num_ranks)), wanted.least,
                    std::max(wanted.least, wanted.most));
}

Dealer::Dealer(World& world, std::vector<uint64_t> costs, Hooks hooks, OnStop on_stop)
    : world_(world),
      costs_(std::move(costs)),
      hooks_(std::move(hooks)),
      on_stop_(on_stop),
      left_(std::accumulate(costs_.begin(), costs_.end(), uint64_t{0})),
      thread_([this] { serve(); }) {}

// Without finish(): the leader failed. Nobody gets another lot.
Dealer::~Dealer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::make_exception_ptr(Error("the leader broke off"));
  }
  thread_.join();
}

Lot Dealer::next_lot(const LotRange& wanted) {
  Lot lot{next_, next_};
  if (failure_ || (on_stop_ == OnStop::ends && stop_requested())) return lot;
  const uint64_t share = lot_share(left_, wanted, world_.size());
  for (uint64_t cost = 0; lot.end < costs_.size(); ++lot.end) {
    if (!lot.empty() && cost + costs_[lot.end] > share) break;
    cost += costs_[lot.end];
    left_ -= costs_[lot.end];
  }
  next_ = lot.end;
  return lot;
}

Lot Dealer::take(const LotRange& wanted) {
  const std::lock_guard lock(mutex_);
  return next_lot(wanted);
}

void Dealer::answer(int rank, const LotRange& wanted) {
  ByteWriter message;
  {
    const std::lock_guard lock(mutex_);
    const Lot lot = next_lot(wanted);
    message.put(uint64_t{lot.begin}).put(uint64_t{lot.end});
    if (hooks_.describe && !lot.empty()) hooks_.describe(message, lot);
  }
  world_.send(message.bytes(), rank, Tag::lot);
}

// A failure is kept and the others are served to their end: nobody may be left waiting.
void Dealer::serve() try {
  for (int left = world_.size() - 1; left > 0;) {
    const Message message = world_.receive(std::nullopt, Tag::result, Waiting::beside_work);
    ByteReader reader(message.bytes);
    const auto word = reader.get<Word>();
    if (word == Word::wants_lot) {
      const auto least = reader.get<uint64_t>(), most = reader.get<uint64_t>();
      answer(message.from, {least, most});
      continue;
    }
    left -= word == Word::end;
    const std::lock_guard lock(mutex_);
    if (failure_) continue;
    try {
      if (word == Word::result) hooks_.on_result(reader.get<uint64_t>(), reader);
      if (word == Word::end && hooks_.on_end) hooks_.on_end(reader);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
} catch (...) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::current_exception();
}

void Dealer::finish() {
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
}

std::optional<Lot> Taker::take(const LotRange& wanted, bool may_wait) {
  if (is_over_) return std::nullopt;
  if (!has_asked_)
    world_.send(ByteWriter().put(Word::wants_lot).put(wanted.least).put(wanted.most).bytes(), 0, Tag::result);
  has_asked_ = true;
  std::optional<Message> answer;
  if (may_wait)
    answer = world_.receive(0, Tag::lot);
  else
    answer = world_.try_receive(0, Tag::lot);
  if (!answer) return Lot();
  has_asked_ = false;
  ByteReader reader(answer->bytes);
  Lot lot;
  lot.begin = reader.get<uint64_t>();
  lot.end = reader.get<uint64_t>();
  is_over_ = lot.empty();
  if (is_over_) return std::nullopt;
  lot.about.assign(answer->bytes.begin() + 2 * sizeof(uint64_t), answer->bytes.end());
  return lot;
}

void Taker::send_result(size_t index, const ByteWriter& result) {
  world_.send(joined(ByteWriter().put(Word::result).put(uint64_t{index}), result), 0, Tag::result);
}

void Taker::finish(const ByteWriter& last_words) {
  if (has_asked_) (void)world_.receive(0, Tag::lot);
  world_.send(joined(ByteWriter().put(Word::end), last_words), 0, Tag::result);
}

}  // namespace ropd::comm
