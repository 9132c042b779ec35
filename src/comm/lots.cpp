#include "comm/lots.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/stop.h"

namespace ropd::comm {
namespace {

enum class Word : uint8_t { wants_lot, result, end };  // what another rank says

std::vector<std::byte> with_head(Word word, uint64_t number, std::span<const std::byte> rest = {}) {
  ByteWriter writer;
  writer.put(word).put(number);
  auto bytes = writer.take();
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

}  // namespace

size_t lot_size(size_t left, size_t room, int num_ranks) {
  const size_t fair = left / (2 * static_cast<size_t>(num_ranks));
  return std::min({left, room, std::max<size_t>(fair, 1)});
}

Dealer::Dealer(World& world, size_t count, Hooks hooks, OnStop on_stop)
    : world_(world), count_(count), hooks_(std::move(hooks)), on_stop_(on_stop), thread_([this] {
        serve();
      }) {}

// Without finish(): the leader failed. Nobody gets another lot.
Dealer::~Dealer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::make_exception_ptr(Error("the leader broke off"));
  }
  thread_.join();
}

size_t Dealer::next_lot(size_t room) {
  const bool is_stopped = on_stop_ == OnStop::ends && stop_requested();
  return failure_ || is_stopped ? 0 : lot_size(count_ - next_, room, world_.size());
}

std::vector<size_t> Dealer::take(size_t room) {
  const std::lock_guard lock(mutex_);
  std::vector<size_t> lot(next_lot(room));
  std::iota(lot.begin(), lot.end(), next_);
  next_ += lot.size();
  return lot;
}

void Dealer::answer(int rank, size_t room) {
  uint64_t begin = 0, size = 0;
  {
    const std::lock_guard lock(mutex_);
    begin = next_;
    size = next_lot(room);
    next_ += size;
  }
  ByteWriter lot;
  lot.put(begin).put(size);
  world_.send(lot.bytes(), rank, Tag::lot);
}

// A failure is kept and the others are served to their end: nobody may be left waiting.
void Dealer::serve() try {
  for (int left = world_.size() - 1; left > 0;) {
    const Message message = world_.receive(std::nullopt, Tag::result);
    ByteReader reader(message.bytes);
    const auto word = reader.get<Word>();
    const auto number = reader.get<uint64_t>();
    if (word == Word::wants_lot) {
      answer(message.from, number);
      continue;
    }
    left -= word == Word::end;
    const std::lock_guard lock(mutex_);
    if (failure_) continue;
    try {
      if (word == Word::result) hooks_.on_result(number, reader);
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

std::optional<std::vector<size_t>> Taker::take(size_t room, bool may_wait) {
  if (is_over_) return std::nullopt;
  if (!has_asked_) world_.send(with_head(Word::wants_lot, room), 0, Tag::result);
  has_asked_ = true;
  std::optional<Message> answer;
  if (may_wait)
    answer = world_.receive(0, Tag::lot);
  else
    answer = world_.try_receive(0, Tag::lot);
  if (!answer) return std::vector<size_t>();
  has_asked_ = false;
  ByteReader reader(answer->bytes);
  const auto begin = reader.get<uint64_t>(), size = reader.get<uint64_t>();
  is_over_ = size == 0;
  if (is_over_) return std::nullopt;
  std::vector<size_t> lot(size);
  std::iota(lot.begin(), lot.end(), begin);
  return lot;
}

void Taker::send_result(size_t index, const ByteWriter& result) {
  world_.send(with_head(Word::result, index, result.bytes()), 0, Tag::result);
}

void Taker::finish(const ByteWriter& last_words) {
  if (has_asked_) (void)world_.receive(0, Tag::lot);
  world_.send(with_head(Word::end, 0, last_words.bytes()), 0, Tag::result);
}

}  // namespace ropd::comm
