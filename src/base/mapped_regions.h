// Which file lies behind an address. Reading a mapped file that was cut short, or whose sector cannot be
// read, is no error code but SIGBUS; the handler installed here ends the program with one line that names the
// file. The table belongs to the process, as its address space does, and is safe to read in a signal handler.
#pragma once
#include <cstddef>
#include <string>

namespace ropd {

// From mapping to unmapping. Beyond a few hundred mappings at a time the rest stays unnamed. Thread-safe.
void note_mapping(const void* begin, size_t bytes, const std::string& path);
void forget_mapping(const void* begin);

// SIGBUS inside a noted mapping: the line, exit code 1. Elsewhere it does what it always did.
void install_bus_error_handler();

}  // namespace ropd
