// Files that are whole or not there: mapped reading, atomic writing.
// Every failure names the path and the system's reason (ENOSPC, EIO, ...); an old file stays intact until the
// new one is durable.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ropd {

using Path = std::filesystem::path;

// A read-only mapping of a whole file. Move-only; the bytes live as long as the object.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const Path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const Path& path() const { return path_; }

 private:
  Path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole file as text; fails when it is larger than max_bytes.
std::string read_file(const Path& path, uint64_t max_bytes = uint64_t{1} << 30);

// A new file written beside its place and moved there by commit(): temporary sibling, fsync, rename, fsync of
// the folder. Destruction without commit removes the temporary; the old file is untouched. Temporaries of the
// same file that killed processes left are removed first: who still writes one holds a lock on it.
class AtomicFile {
 public:
  explicit AtomicFile(Path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  Path path_, temporary_;
  int descriptor_ = -1;
  std::string buffer_;
  void flush();
};

void write_file_atomically(const Path& path, std::string_view content);
void copy_file_atomically(const Path& to, const Path& from);

// A file that only grows, line by line; append returns when the line is durable (fdatasync). For banks and
// metrics. Opening keeps what is there; a torn last line (no newline) is cut off. One writer at a time: a
// second one is refused as long as the first lives.
class AppendFile {
 public:
  explicit AppendFile(Path path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();
  void append(std::string_view line_without_newline);  // durable on return
  void append_unsynced(std::string_view line_without_newline);
  void sync();
  void cut(uint64_t size);  // back to that many bytes
  uint64_t size() const { return size_; }

 private:
  Path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// A file that one process at a time holds, from opening it to the end of this object; the system gives the lock
// back when its holder ends, however it ends. Made where it is missing. Fails where the file system has no locks.
class LockedFile {
 public:
  explicit LockedFile(Path path);
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile();
  bool is_held() const { return descriptor_ >= 0; }  // false: another process has it
  // In place: who reads meanwhile may see a part of it.
  void replace_content(std::string_view content);

 private:
  Path path_;
  int descriptor_ = -1;
};

void truncate_file(const Path& path, uint64_t size);
void sync_directory(const Path& directory);
void sync_file(const Path& path);
uint64_t free_disk_bytes(const Path& directory);

// Lower-case hexadecimal SHA-256.
std::string sha256(std::span<const std::byte> bytes);
std::string sha256(std::string_view text);
std::string sha256_file(const Path& path);

}  // namespace ropd
