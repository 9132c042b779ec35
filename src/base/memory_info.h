// How much memory there is: what the machine has really free, within the limits of the container, how much of
// it a stage may take, and what this process has taken.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace ropd {

struct MemoryInfo {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;
};

// The text of /proc/meminfo; nothing where a field is missing.
std::optional<MemoryInfo> parse_meminfo(std::string_view text);

// The machine's memory, or the control group's where that is tighter; of what is available, this process's
// share. Fails where the system does not tell.
MemoryInfo read_memory_info();

// So many processes of a run are on this machine, this one included (comm/placement.h); at first one.
void share_memory_with(size_t processes);

// available minus a reserve of 5% of all memory, at least 256 MiB; 0 when there is less.
uint64_t usable_bytes(const MemoryInfo& info);

// The most that this process has held at once so far.
uint64_t peak_memory_bytes();

// Gives what was freed back to the system, where the allocator would keep it for later.
void return_freed_memory();

}  // namespace ropd
