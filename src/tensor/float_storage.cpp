#include "tensor/float_storage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/temporary_file.h"

namespace ropd {
namespace {

float* checked(void* address, int error_number, size_t size, const std::string& where) {
  if (address == MAP_FAILED)
    fail(where, ": cannot map ", size * sizeof(float),
         " bytes: ", std::generic_category().message(error_number));
  return static_cast<float*>(address);
}

}  // namespace

FloatStorage::FloatStorage(size_t size) : size_(size) {
  if (size == 0) return;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* address = ::mmap(nullptr, size * sizeof(float), PROT_READ | PROT_WRITE, flags, -1, 0);
  data_ = checked(address, errno, size, "memory");
  // Huge pages where there are some (base/large_allocations.cpp), filled in now: what does not fit into
  // memory must show before the first step, not behind it. Advice both: an older kernel fills them in later.
  ::madvise(address, size * sizeof(float), MADV_HUGEPAGE);
  ::madvise(address, size * sizeof(float), MADV_POPULATE_WRITE);
}

FloatStorage::FloatStorage(size_t size, const Path& directory) : size_(size) {
  if (size == 0) return;
  const Path scratch = directory / "scratch";
  remove_stale_temporaries(scratch);  // of processes that were killed before the next line but one
  Path name;
  const int descriptor = create_temporary(scratch, name);
  ::unlink(name.c_str());
  // Reserved now: a full disk must be an error here, not a bus error at the first touch of a page.
  int error_number = EINTR;
  while (error_number == EINTR)
    error_number = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size * sizeof(float)));
  if (error_number != 0) {
    ::close(descriptor);
    fail(directory.string(), ": cannot reserve ", size * sizeof(float),
         " bytes for scratch: ", std::generic_category().message(error_number));
  }
  void* address = ::mmap(nullptr, size * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  const int map_error = errno;
  ::close(descriptor);  // the mapping keeps the file
  data_ = checked(address, map_error, size, directory.string());
}

FloatStorage::FloatStorage(FloatStorage&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FloatStorage& FloatStorage::operator=(FloatStorage&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

FloatStorage::~FloatStorage() {
  if (data_) ::munmap(data_, size_ * sizeof(float));
}

}  // namespace ropd
