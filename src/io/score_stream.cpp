#include "io/score_stream.h"

#include <filesystem>

#include "base/error.h"
#include "base/line_stream.h"
#include "base/log.h"
#include "io/checked_lines.h"

namespace ropd::io {
namespace {

// A row knows its number, so that one that was removed or repeated is noticed.
std::string numbered(uint64_t number, std::string_view row) {
  return with_checksum(std::to_string(number) + " " + std::string(row));
}

// The row of such a line; nothing when it is not whole or not that one.
std::optional<std::string_view> numbered_row(uint64_t number, std::string_view line) {
  const auto row = checked_row(line);
  const std::string beginning = std::to_string(number) + " ";
  if (!row || !row->starts_with(beginning)) return std::nullopt;
  return row->substr(beginning.size());
}

}  // namespace

Path partial_scores(const Path& out) {
  Path path = out;
  return path.replace_extension(".partial.jsonl");
}

ScoreStream::ScoreStream(Path out, const std::string& origin)
    : out_(std::move(out)), partial_(partial_scores(out_)) {
  if (is_stream(out_)) {
    direct_.emplace(out_);
    return;
  }
  file_.emplace(partial_);
  take_in(origin);
}

void ScoreStream::take_in(const std::string& origin) {
  uint64_t begin = 0;
  bool has_origin = false;
  {
    const MappedFile file(partial_);
    const std::string_view content = file.text();
    for (size_t end; (end = content.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
      const auto row = numbered_row(has_origin ? num_done_ + 1 : 0, content.substr(begin, end - begin));
      if (!row) break;
      if (has_origin) {
        ++num_done_;
      } else if (*row != origin) {
        fail(partial_.string(),
             ": begun with other rollouts, models or settings; --overwrite begins anew, or choose another "
             "--out");
      }
      has_origin = true;
    }
  }
  if (begin < file_->size()) {
    log_warning(partial_.string(), ": cut from ", file_->size(), " to ", begin,
                " bytes, the rest is not whole");
    file_->cut(begin);
  }
  if (!has_origin) file_->append(numbered(0, origin));
}

void ScoreStream::add(std::string_view row) {
  ++num_done_;
  if (direct_) {
    direct_->write(row);
    direct_->write(std::string_view("\n"));
  } else {
    file_->append_unsynced(numbered(num_done_, row));
  }
}

void ScoreStream::sync() {
  if (file_) file_->sync();
}

void ScoreStream::finish() {
  if (direct_) return direct_->commit();
  file_->sync();
  {
    const MappedFile partial(partial_);
    const std::string_view content = partial.text();
    AtomicFile whole(out_);
    uint64_t begin = content.find('\n') + 1, number = 0;  // behind the origin
    for (size_t end; (end = content.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
      const auto row = numbered_row(++number, content.substr(begin, end - begin));
      if (!row) fail(partial_.string(), ": changed while it was written; remove it and begin again");
      whole.write(*row);
      whole.write(std::string_view("\n"));
    }
    whole.commit();
  }
  file_.reset();
  std::filesystem::remove(partial_);
  sync_directory(out_.has_parent_path() ? out_.parent_path() : Path("."));
}

}  // namespace ropd::io
