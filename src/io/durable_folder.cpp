#include "io/durable_folder.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace ropd::io {

namespace fs = std::filesystem;

void make_durable_folder(const Path& path) {
  Path folder = path.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a/b/ is a/b
  if (folder.empty() || fs::is_directory(folder)) return;
  const Path above = folder.has_parent_path() ? folder.parent_path() : Path(".");
  make_durable_folder(above);
  std::error_code error;
  fs::create_directory(folder, error);  // no error when another process was faster
  if (error) fail(path.string(), ": cannot create the folder: ", error.message());
  sync_directory(above);
}

void copy_durable_folder(const Path& to, const Path& from) {
  make_durable_folder(to);
  std::error_code error;
  fs::directory_iterator entry(from, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const Path target = to / entry->path().filename();
    entry->is_directory() ? copy_durable_folder(target, entry->path())
                          : copy_file_atomically(target, entry->path());
  }
  if (error) fail(from.string(), ": cannot read the folder: ", error.message());
}

}  // namespace ropd::io
