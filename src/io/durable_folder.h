// Folders that are still there after a power cut: what is written into a folder is safe only when the folder's
// own name is.
#pragma once
#include "base/file.h"

namespace ropd::io {

// Makes the folder and those above it that are missing, each durable. Fails naming the folder and the reason;
// what exists already is left alone.
void make_durable_folder(const Path& path);

// Copies the files and folders in `from` into `to`, which is made; all of it is durable on return. Fails on what
// is neither file nor folder.
void copy_durable_folder(const Path& to, const Path& from);

}  // namespace ropd::io
