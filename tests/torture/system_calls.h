// The system calls that change files, by number: which path or descriptor each is about.
#pragma once
#include <linux/filter.h>
#include <sys/user.h>

#include <optional>
#include <string>
#include <vector>

#include "torture/disk.h"

namespace ropd::torture {

// A seccomp program that reports these calls to the tracer and lets all others pass.
std::vector<sock_filter> filter_of_file_changes();

// A call at its entry. Absent when it is about nothing below the folder.
struct FileCall {
  std::string name;
  Change change;         // what it will have done if it succeeds; inode and bytes come afterwards
  int descriptor = -1;   // of write, resize, sync, close
  bool existed = false;  // open: the file was there before
  bool is_append_or_position = false;  // write: the offset is known only afterwards
  bool can_be_short = false;
};
std::optional<FileCall> file_call(int thread, const user_regs_struct& registers, const Path& folder);

// What it has done, with what only the end of the call tells. Nothing when it changed nothing.
std::optional<Change> done_change(int thread, const FileCall& call, long result);

}  // namespace ropd::torture
