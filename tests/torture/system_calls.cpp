#include "torture/system_calls.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace ropd::torture {

namespace fs = std::filesystem;

namespace {

// How the arguments of a call name a file.
enum class Place { descriptor, third_descriptor, path, at_path, path_second, at_path_second };

struct KnownCall {
  long number;
  const char* name;
  Change::Kind kind;
  Place place;
  bool has_second = false;  // rename, link
};

constexpr KnownCall kCalls[] = {
    {SYS_write, "write", Change::Kind::write, Place::descriptor},
    {SYS_pwrite64, "pwrite", Change::Kind::write, Place::descriptor},
    {SYS_writev, "writev", Change::Kind::write, Place::descriptor},
    {SYS_sendfile, "sendfile", Change::Kind::write, Place::descriptor},
    {SYS_copy_file_range, "copy_file_range", Change::Kind::write, Place::third_descriptor},
    {SYS_ftruncate, "ftruncate", Change::Kind::resize, Place::descriptor},
    {SYS_fallocate, "fallocate", Change::Kind::resize, Place::descriptor},
    {SYS_truncate, "truncate", Change::Kind::resize, Place::path},
    {SYS_fsync, "fsync", Change::Kind::sync, Place::descriptor},
    {SYS_fdatasync, "fdatasync", Change::Kind::sync, Place::descriptor},
    {SYS_close, "close", Change::Kind::other, Place::descriptor},
    {SYS_fchmod, "fchmod", Change::Kind::other, Place::descriptor},
    {SYS_open, "open", Change::Kind::create, Place::path},
    {SYS_creat, "creat", Change::Kind::create, Place::path},
    {SYS_openat, "openat", Change::Kind::create, Place::at_path},
    {SYS_rename, "rename", Change::Kind::rename, Place::path, true},
    {SYS_renameat, "renameat", Change::Kind::rename, Place::at_path, true},
    {SYS_renameat2, "renameat2", Change::Kind::rename, Place::at_path, true},
    {SYS_unlink, "unlink", Change::Kind::remove, Place::path},
    {SYS_unlinkat, "unlinkat", Change::Kind::remove, Place::at_path},
    {SYS_rmdir, "rmdir", Change::Kind::remove, Place::path},
    {SYS_mkdir, "mkdir", Change::Kind::make_folder, Place::path},
    {SYS_mkdirat, "mkdirat", Change::Kind::make_folder, Place::at_path},
    {SYS_symlink, "symlink", Change::Kind::make_link, Place::path_second},
    {SYS_symlinkat, "symlinkat", Change::Kind::make_link, Place::at_path_second},
};

const KnownCall* find_call(long number) {
  for (const KnownCall& call : kCalls)
    if (call.number == number) return &call;
  return nullptr;
}

std::string text_at(int thread, uint64_t address) {
  char buffer[4096];
  // Up to the end of a page: the next may not be there.
  const size_t bytes = std::min<size_t>(sizeof buffer, 4096 - address % 4096);
  iovec here{buffer, bytes}, there{reinterpret_cast<void*>(address), bytes};
  const ssize_t got = ::process_vm_readv(thread, &here, 1, &there, 1, 0);
  if (got <= 0) return "";
  const size_t length = strnlen(buffer, static_cast<size_t>(got));
  std::string text(buffer, length);
  if (length == static_cast<size_t>(got)) text += text_at(thread, address + length);
  return text;
}

Path descriptor_link(int thread, int descriptor) {
  return "/proc/" + std::to_string(thread) + "/fd/" + std::to_string(descriptor);
}

// Where a descriptor's file lies; empty when it has no name in the file system.
Path path_of(int thread, int descriptor) {
  std::error_code error;
  std::string path = fs::read_symlink(descriptor_link(thread, descriptor), error).string();
  if (error || path.empty() || path[0] != '/') return "";
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

// Absolute, its folder without links; the last part as it is.
Path resolved(int thread, int folder, const std::string& text) {
  Path path = text;
  if (path.is_relative()) {
    std::error_code error;
    const Path base = folder == AT_FDCWD ? fs::read_symlink("/proc/" + std::to_string(thread) + "/cwd", error)
                                         : path_of(thread, folder);
    path = base / path;
  }
  path = path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code error;
  const Path parent = fs::weakly_canonical(path.parent_path(), error);
  return error ? path : parent / path.filename();
}

bool is_below(const Path& path, const Path& folder) {
  const Path inside = path.lexically_relative(folder);
  return !inside.empty() && *inside.begin() != "..";
}

struct stat status_of(const Path& path, bool follows) {
  struct stat status {};
  if ((follows ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status)) != 0) status.st_ino = 0;
  return status;
}

uint64_t position_of(int thread, int descriptor) {
  std::ifstream info("/proc/" + std::to_string(thread) + "/fdinfo/" + std::to_string(descriptor));
  std::string key;
  uint64_t position = 0;
  info >> key >> position;
  return position;
}

std::string bytes_of(const Path& file, uint64_t offset, size_t count) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  std::string bytes(count, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  if (static_cast<size_t>(stream.gcount()) != count)
    fail(file.string(), ": cannot read back what was written");
  return bytes;
}

// What an open with these flags does to files.
void refine_open(FileCall& call, long flags) {
  const auto status = status_of(call.change.path, true);
  call.existed = status.st_ino != 0;
  if (!call.existed) return;
  const bool cuts = (flags & O_TRUNC) && S_ISREG(status.st_mode);
  call.change.kind = cuts ? Change::Kind::resize : Change::Kind::other;
  call.change.inode = status.st_ino;
}

}  // namespace

std::vector<sock_filter> filter_of_file_changes() {
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  const sock_filter traces = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  const sock_filter allows = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  for (const KnownCall& call : kCalls) {
    const bool is_open = call.number == SYS_open || call.number == SYS_openat;
    const auto number = static_cast<uint32_t>(call.number);
    if (!is_open) {
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
      filter.push_back(traces);
      continue;
    }
    // Opening to read is no change: most opens are that.
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4));
    const size_t flags = call.number == SYS_open ? 1 : 2;
    filter.push_back(
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * flags)));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1));
    filter.push_back(traces);
    filter.push_back(allows);
  }
  filter.push_back(allows);
  return filter;
}

std::optional<FileCall> file_call(int thread, const user_regs_struct& registers, const Path& folder) {
  const KnownCall* known = find_call(static_cast<long>(registers.orig_rax));
  if (!known) return std::nullopt;
  const uint64_t arguments[] = {registers.rdi, registers.rsi, registers.rdx,
                                registers.r10, registers.r8,  registers.r9};
  FileCall call;
  call.name = known->name;
  call.change.kind = known->kind;
  size_t next = 0;  // the argument behind the first place
  switch (known->place) {
    case Place::descriptor:
      call.descriptor = static_cast<int>(arguments[0]);
      call.change.path = path_of(thread, call.descriptor);
      next = 1;
      break;
    case Place::third_descriptor:
      call.descriptor = static_cast<int>(arguments[2]);
      call.change.path = path_of(thread, call.descriptor);
      break;
    case Place::path:
      call.change.path = resolved(thread, AT_FDCWD, text_at(thread, arguments[0]));
      next = 1;
      break;
    case Place::at_path:
      call.change.path = resolved(thread, static_cast<int>(arguments[0]), text_at(thread, arguments[1]));
      next = 2;
      break;
    case Place::path_second:
      call.change.bytes = text_at(thread, arguments[0]);
      call.change.path = resolved(thread, AT_FDCWD, text_at(thread, arguments[1]));
      break;
    case Place::at_path_second:
      call.change.bytes = text_at(thread, arguments[0]);
      call.change.path = resolved(thread, static_cast<int>(arguments[1]), text_at(thread, arguments[2]));
      break;
  }
  if (known->has_second) {
    const bool is_at = known->place == Place::at_path;
    call.change.to = resolved(thread, is_at ? static_cast<int>(arguments[next]) : AT_FDCWD,
                              text_at(thread, arguments[next + is_at]));
    if (known->number == SYS_renameat2 && (arguments[4] & RENAME_EXCHANGE))
      call.change.kind = Change::Kind::exchange;
  }
  if (!is_below(call.change.path, folder) && !is_below(call.change.to, folder)) return std::nullopt;
  if (known->kind == Change::Kind::create)
    refine_open(call, known->number == SYS_creat ? O_TRUNC : static_cast<long>(arguments[next]));
  if (known->number == SYS_ftruncate || known->number == SYS_truncate) call.change.size = arguments[1];
  call.is_append_or_position = known->kind == Change::Kind::write && known->number != SYS_pwrite64;
  if (known->number == SYS_pwrite64) call.change.offset = arguments[3];
  call.can_be_short = (known->number == SYS_write || known->number == SYS_pwrite64) && arguments[2] > 1;
  return call;
}

std::optional<Change> done_change(int thread, const FileCall& call, long result) {
  if (result < 0) return std::nullopt;
  Change change = call.change;
  const Path file = call.descriptor >= 0 ? descriptor_link(thread, call.descriptor) : change.path;
  switch (change.kind) {
    case Change::Kind::create:
    case Change::Kind::make_folder:
    case Change::Kind::make_link:
      change.inode = status_of(change.path, false).st_ino;
      break;
    case Change::Kind::write:
      change.inode = status_of(file, true).st_ino;
      if (call.is_append_or_position)
        change.offset = position_of(thread, call.descriptor) - static_cast<uint64_t>(result);
      change.bytes = bytes_of(file, change.offset, static_cast<size_t>(result));
      break;
    case Change::Kind::resize: {
      const auto status = status_of(file, true);
      change.inode = status.st_ino;
      change.size = static_cast<uint64_t>(status.st_size);
      break;
    }
    case Change::Kind::sync:
      change.inode = status_of(file, true).st_ino;
      break;
    default:
      break;
  }
  return change;
}

}  // namespace ropd::torture
