#include "base/memory_info.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"

namespace ropd {
namespace {

std::atomic<size_t> num_sharing = 1;  // how a launcher placed this process: it belongs to it

std::optional<uint64_t> number_after(std::string_view text, std::string_view label) {
  for (size_t at = text.find(label); at != std::string_view::npos; at = text.find(label, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const size_t begin = text.find_first_not_of(" \t", at + label.size());
    uint64_t value = 0;
    if (begin == std::string_view::npos) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
    if (error == std::errc()) return value;
    return std::nullopt;
  }
  return std::nullopt;
}

// Files of /proc and /sys have no size to map.
std::string read_system_file(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::optional<MemoryInfo> parse_meminfo(std::string_view text) {
  const auto total = number_after(text, "MemTotal:"), available = number_after(text, "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return MemoryInfo{*total * 1024, *available * 1024};
}

MemoryInfo read_memory_info() {
  const auto machine = parse_meminfo(read_system_file("/proc/meminfo"));
  if (!machine) fail("/proc/meminfo: no MemTotal and MemAvailable (state the memory budget instead of auto)");
  MemoryInfo info = *machine;
  // A container's own limit (control groups, version 2); file pages that nobody maps can be dropped.
  const auto limit = number_after(read_system_file("/sys/fs/cgroup/memory.max"), "");
  const auto used = number_after(read_system_file("/sys/fs/cgroup/memory.current"), "");
  if (limit && used) {
    const uint64_t droppable =
        number_after(read_system_file("/sys/fs/cgroup/memory.stat"), "inactive_file ").value_or(0);
    const uint64_t held = *used - std::min(*used, droppable);
    info.total_bytes = std::min(info.total_bytes, *limit);
    info.available_bytes = std::min(info.available_bytes, *limit - std::min(*limit, held));
  }
  info.available_bytes /= num_sharing.load(std::memory_order_relaxed);
  return info;
}

void share_memory_with(size_t processes) { num_sharing = std::max<size_t>(processes, 1); }

uint64_t usable_bytes(const MemoryInfo& info) {
  const uint64_t reserve = std::max<uint64_t>(info.total_bytes / 20, uint64_t{256} << 20);
  return info.available_bytes - std::min(info.available_bytes, reserve);
}

uint64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void return_freed_memory() { malloc_trim(0); }

}  // namespace ropd
