#include "comm/mpi_world.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <list>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/threads.h"

#ifdef ROPD_WITH_MPI
#include <mpi.h>
#endif

namespace ropd::comm {

namespace {

bool is_open_mpi() { return std::getenv("OMPI_COMM_WORLD_SIZE"); }

}  // namespace

bool is_started_by_launcher() {
  // Open MPI; MPICH and Slurm's PMI; PMIx.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name)) return true;
  return false;
}

std::string launcher_warning() {
  // mpirun hands its parameters to the ranks in this form.
  if (!is_open_mpi() || std::getenv("OMPI_MCA_odls_base_sigkill_timeout")) return "";
  return "Ctrl-C or SIGTERM to this mpirun leaves ranks two seconds to save: stop the run with kill -USR1, "
         "or pass "
         "--mca odls_base_sigkill_timeout 30 for a minute";
}

void take_launchers_end_as_request() {
  // Unless it passes on what a shell does with its jobs.
  if (!is_open_mpi() || std::getenv("OMPI_MCA_orte_forward_job_control")) return;
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    if (info->si_pid == ::getppid()) request_stop();
  };
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGCONT, &action, nullptr);
}

#ifdef ROPD_WITH_MPI
namespace {

using Clock = std::chrono::steady_clock;

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(call, ": ", std::string(text, static_cast<size_t>(length)), " (a rank is gone, or the network?)");
}

int count_of(size_t bytes) {
  if (bytes > static_cast<size_t>(std::numeric_limits<int>::max()))
    fail("a message of ", bytes, " bytes is larger than MPI sends at once");
  return static_cast<int>(bytes);
}

// Sleep between two looks at a message that has not come: a small part of the wait so far, which is then all that a
// sleeper can come too late.
class Nap {
 public:
  void take() const {
    constexpr Clock::duration kShortest = std::chrono::microseconds(50),
                              kLongest = std::chrono::microseconds(500);
    std::this_thread::sleep_for(std::clamp((Clock::now() - begin_) / 16, kShortest, kLongest));
  }

 private:
  const Clock::time_point begin_ = Clock::now();
};

class MpiWorld final : public World {
 public:
  explicit MpiWorld(const MpiSettings& settings) : silence_(settings.silence_seconds) {
    int provided = 0;
    // Serialized: any thread calls, one at a time; mutex_ sees to it.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_SERIALIZED) fail("this MPI allows no calls from several threads");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &messages_), "MPI_Comm_dup");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &pulses_), "MPI_Comm_dup");
    for (const MPI_Comm comm : {messages_, pulses_})
      check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(messages_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(messages_, &size_), "MPI_Comm_size");
    exchange_hosts();
    pulse_thread_ = std::thread([this] { keep_pulse(); });
  }

  ~MpiWorld() override { assert(has_left_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return hosts_[static_cast<size_t>(rank_)]; }

  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) override {
    std::vector<MPI_Request> requests;
    {
      const std::lock_guard lock(mutex_);
      for (const Incoming& in : incoming)
        check(MPI_Irecv(in.bytes.data(), count_of(in.bytes.size()), MPI_BYTE, in.from,
                        static_cast<int>(in.tag), messages_, &requests.emplace_back()),
              "MPI_Irecv");
      for (const Outgoing& out : outgoing)
        check(MPI_Isend(out.bytes.data(), count_of(out.bytes.size()), MPI_BYTE, out.to,
                        static_cast<int>(out.tag), messages_, &requests.emplace_back()),
              "MPI_Isend");
    }
    if (requests.empty()) return;
    const auto text = [&] {
      std::string ranks;
      for (const Incoming& in : incoming) ranks += (ranks.empty() ? "" : ", ") + std::to_string(in.from);
      return "exchanging " + std::string(tag_name(incoming.empty() ? outgoing[0].tag : incoming[0].tag)) +
             (ranks.empty() ? "" : " with ranks " + ranks);
    };
    wait(text, [&] {
      int is_done = 0;
      check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &is_done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
      return is_done != 0;
    });
  }

  void send(std::span<const std::byte> bytes, int to, Tag tag) override {
    {
      const std::lock_guard lock(mutex_);
      Letter& letter = outbox_.emplace_back();
      letter.bytes.assign(bytes.begin(), bytes.end());
      outbox_bytes_ += bytes.size();
      check(MPI_Isend(letter.bytes.data(), count_of(bytes.size()), MPI_BYTE, to, static_cast<int>(tag),
                      messages_, &letter.request),
            "MPI_Isend");
    }
    empty_outbox(kOutboxBytes);
  }

  Message receive(std::optional<int> from, Tag tag, Waiting waiting) override {
    const auto text = [&] {
      return "waiting for " + std::string(tag_name(tag)) + " of " +
             (from ? "rank " + std::to_string(*from) : std::string("any rank"));
    };
    MPI_Message found = MPI_MESSAGE_NULL;
    Message result;
    wait(
        text, [&] { return probe(from, tag, found, result); }, waiting);
    take(found, result);
    return result;
  }

  std::optional<Message> try_receive(std::optional<int> from, Tag tag) override {
    MPI_Message found = MPI_MESSAGE_NULL;
    Message result;
    {
      const std::lock_guard lock(mutex_);
      if (!probe(from, tag, found, result)) return std::nullopt;
    }
    take(found, result);
    return result;
  }

  [[noreturn]] void abort(int exit_code) override {
    ::alarm(kSecondsToAbort);  // MPI_Abort asks others; a process whose network is gone ends by itself
    const std::unique_lock lock(mutex_, std::chrono::seconds(2));
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

  void leave() {
    barrier(*this);
    empty_outbox(0);
    is_leaving_ = true;
    pulse_thread_.join();
    for (MPI_Request& request : pulses_to_come_)
      if (request != MPI_REQUEST_NULL) {
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
    for (MPI_Request& request : pulses_on_the_way_)
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    has_left_ = true;
    MPI_Finalize();
  }

 private:
  static constexpr unsigned kSecondsToAbort = 10;
  static constexpr std::chrono::milliseconds kPulse{200};
  static constexpr size_t kOutboxBytes = size_t{64} << 20;

  struct Letter {  // that was sent and may still be read from here
    std::vector<std::byte> bytes = {};
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // constant after construction
  const std::chrono::duration<double> silence_;
  MPI_Comm messages_ = MPI_COMM_NULL, pulses_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<std::string> hosts_;  // [rank]
  // guarded by mutex_, as every call of MPI
  std::timed_mutex mutex_;
  std::string waits_for_;  // what a rank waits for, told when it is in vain
  std::list<Letter> outbox_;
  size_t outbox_bytes_ = 0;
  // the pulse thread's
  std::vector<MPI_Request> pulses_to_come_, pulses_on_the_way_;  // [peers]
  std::vector<uint8_t> pulses_received_, pulses_sent_;           // [peers] 1: a stop was requested
  std::vector<Clock::time_point> heard_;                         // [peers] when last
  std::thread pulse_thread_;
  std::atomic<bool> is_leaving_ = false;
  bool has_left_ = false;

  template <class Text, class IsDone>
  void wait(const Text& text, const IsDone& is_done, Waiting waiting = Waiting::alone) {
    {
      const std::lock_guard lock(mutex_);
      if (is_done()) return;
      waits_for_ = text();
    }
    const auto look = [&] {
      const std::lock_guard lock(mutex_);
      if (!is_done()) return false;
      waits_for_.clear();
      return true;
    };
    if (waiting == Waiting::alone && patience().look(look)) return;
    for (const Nap nap; !look();) nap.take();
  }

  void sweep_outbox() {
    for (auto letter = outbox_.begin(); letter != outbox_.end();) {
      int is_done = 0;
      check(MPI_Test(&letter->request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
      if (is_done) outbox_bytes_ -= letter->bytes.size();
      letter = is_done ? outbox_.erase(letter) : std::next(letter);
    }
  }

  // Waits until fewer bytes are on their way, or none.
  void empty_outbox(size_t bytes) {
    wait([] { return std::string("sending"); },
         [&] {
           sweep_outbox();
           return outbox_.empty() || outbox_bytes_ < bytes;
         });
  }

  bool probe(std::optional<int> from, Tag tag, MPI_Message& found, Message& result) {
    int is_there = 0;
    MPI_Status status;
    check(MPI_Improbe(from.value_or(MPI_ANY_SOURCE), static_cast<int>(tag), messages_, &is_there, &found,
                      &status),
          "MPI_Improbe");
    if (!is_there) return false;
    int size = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    result.bytes.resize(static_cast<size_t>(size));
    result.from = status.MPI_SOURCE;
    return true;
  }

  void take(MPI_Message& found, Message& result) {
    MPI_Request request = MPI_REQUEST_NULL;
    {
      const std::lock_guard lock(mutex_);
      check(MPI_Imrecv(result.bytes.data(), count_of(result.bytes.size()), MPI_BYTE, &found, &request),
            "MPI_Imrecv");
    }
    const auto text = [&] { return "receiving from rank " + std::to_string(result.from); };
    wait(text, [&] {
      int is_done = 0;
      check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
      return is_done != 0;
    });
  }

  void exchange_hosts() {
    const std::string own = host_name();
    const auto own_bytes = std::as_bytes(std::span(own));
    hosts_ = {own};
    if (rank_ > 0) hosts_.assign(static_cast<size_t>(rank_) + 1, own);
    const auto parts = gather(*this, own_bytes, Tag::state);
    for (size_t rank = 1; rank < parts.size(); ++rank)
      hosts_.emplace_back(reinterpret_cast<const char*>(parts[rank].data()), parts[rank].size());
    std::vector<std::byte> of_zero(own_bytes.begin(), own_bytes.end());
    broadcast(*this, of_zero, Tag::state);
    if (rank_ > 0) hosts_[0].assign(reinterpret_cast<const char*>(of_zero.data()), of_zero.size());
  }

  // Rank 0 hears all, the others hear rank 0.
  std::vector<int> peers() const {
    if (rank_ > 0) return {0};
    std::vector<int> others;
    for (int rank = 1; rank < size_; ++rank) others.push_back(rank);
    return others;
  }

  void keep_pulse() {
    const std::vector<int> others = peers();
    const size_t count = others.size();
    pulses_to_come_.assign(count, MPI_REQUEST_NULL);
    pulses_on_the_way_.assign(count, MPI_REQUEST_NULL);
    pulses_received_.assign(count, 0);
    pulses_sent_.assign(count, 0);
    heard_.assign(count, Clock::now());
    for (auto last = Clock::now(); !is_leaving_;) {
      for (size_t i = 0; i < count; ++i) beat(i, others[i]);
      const auto now = Clock::now();
      // While this process itself was stopped nobody could be heard.
      if (now - last > 5 * kPulse)
        for (auto& heard : heard_) heard += now - last;
      last = now;
      for (size_t i = 0; i < count; ++i)
        if (now - heard_[i] > silence_) end_for_silence(others[i], now - heard_[i]);
      std::this_thread::sleep_for(kPulse);
    }
  }

  // One pulse each way. At most one is on the way to a peer: who does not listen is not flooded.
  void beat(size_t i, int peer) {
    const std::lock_guard lock(mutex_);
    int is_done = 1;
    MPI_Request &out = pulses_on_the_way_[i], &in = pulses_to_come_[i];
    if (out != MPI_REQUEST_NULL) MPI_Test(&out, &is_done, MPI_STATUS_IGNORE);
    if (is_done) {
      pulses_sent_[i] = stop_requested();
      MPI_Isend(&pulses_sent_[i], 1, MPI_BYTE, peer, 0, pulses_, &out);
    }
    if (in == MPI_REQUEST_NULL) MPI_Irecv(&pulses_received_[i], 1, MPI_BYTE, peer, 0, pulses_, &in);
    for (is_done = 1; is_done;) {
      MPI_Test(&in, &is_done, MPI_STATUS_IGNORE);
      if (!is_done) break;
      heard_[i] = Clock::now();
      if (pulses_received_[i]) request_stop();
      MPI_Irecv(&pulses_received_[i], 1, MPI_BYTE, peer, 0, pulses_, &in);
    }
  }

  void end_for_silence(int peer, Clock::duration silent) {
    std::string waits_for;
    if (const std::unique_lock lock(mutex_, std::chrono::seconds(2)); lock) waits_for = waits_for_;
    write_failure("ropd",
                  "rank " + std::to_string(peer) + " on " + hosts_[static_cast<size_t>(peer)] +
                      " was not heard of for " +
                      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silent).count()) +
                      " s (dead, stopped or cut off); rank " + std::to_string(rank_) +
                      " was in: " + activity() + (waits_for.empty() ? "" : ", " + waits_for) +
                      "; the run ends, the same command goes on from its newest checkpoint");
    abort(1);
  }
};

}  // namespace

std::unique_ptr<World> join_world(const MpiSettings& settings) {
  if (!is_started_by_launcher()) return std::make_unique<SoloWorld>();
  return std::make_unique<MpiWorld>(settings);
}

void leave_world(std::unique_ptr<World> world) {
  if (auto* mpi = dynamic_cast<MpiWorld*>(world.get())) mpi->leave();
}

#else

std::unique_ptr<World> join_world(const MpiSettings&) {
  if (is_started_by_launcher())
    fail(
        "started by mpirun or srun as one of several processes, but this program was built without MPI "
        "(install libopenmpi-dev and build again)");
  return std::make_unique<SoloWorld>();
}

void leave_world(std::unique_ptr<World>) {}

#endif

}  // namespace ropd::comm
