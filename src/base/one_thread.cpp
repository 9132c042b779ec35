#include "base/one_thread.h"

#include <utility>

namespace ropd {
namespace {

thread_local bool is_on_one_thread = false;

}  // namespace

OneThread::OneThread() : before_(std::exchange(is_on_one_thread, true)) {}
OneThread::~OneThread() { is_on_one_thread = before_; }
bool OneThread::is_here() { return is_on_one_thread; }

}  // namespace ropd
