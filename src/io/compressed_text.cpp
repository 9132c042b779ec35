#include "io/compressed_text.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace ropd::io {
namespace {

constexpr std::string_view kGzip = "\x1F\x8B", kZstd = "\x28\xB5\x2F\xFD";

// Grows with what comes out, never by what a header claims.
class Output {
 public:
  Output(std::string_view where, uint64_t max_bytes) : where_(where), max_bytes_(max_bytes) {}
  // Makes room behind what is written; gives its bytes.
  size_t room() {
    if (text_.size() - used_ < kPiece) text_.resize(std::max<size_t>(2 * text_.size(), 4 * kPiece));
    return text_.size() - used_;
  }
  char* end() { return text_.data() + used_; }
  void add(size_t bytes) {
    used_ += bytes;
    if (used_ > max_bytes_)
      fail(where_, ": more than ", max_bytes_, " bytes when uncompressed (divide the file)");
  }
  std::string finish() {
    text_.resize(used_);
    return std::move(text_);
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 16;
  std::string_view where_;
  uint64_t max_bytes_;
  std::string text_;
  size_t used_ = 0;
};

std::string inflate_members(std::string_view bytes, std::string_view where, uint64_t max_bytes) {
  Output out(where, max_bytes);
  z_stream stream{};
  constexpr int kGzipOnly = 15 + 16;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) fail(where, ": cannot start zlib");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
  int status = Z_OK;
  while (status != Z_STREAM_END || !bytes.empty()) {
    if (status == Z_STREAM_END && inflateReset(&stream) != Z_OK) fail(where, ": cannot start zlib");
    const size_t given = std::min(bytes.size(), kMost), room = std::min(out.room(), kMost);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(out.end());
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_BUF_ERROR) fail(where, ": the gzip data end in the middle (incomplete download?)");
    if (status != Z_OK && status != Z_STREAM_END)
      fail(where, ": damaged gzip data (", stream.msg ? stream.msg : "no reason given", ")");
    bytes.remove_prefix(given - stream.avail_in);
    out.add(room - stream.avail_out);
  }
  return out.finish();
}

std::string decompress_frames(std::string_view bytes, std::string_view where, uint64_t max_bytes) {
  Output out(where, max_bytes);
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (size_t left = 1; left != 0 || in.pos < in.size;) {
    const size_t room = out.room();
    ZSTD_outBuffer piece{out.end(), room, 0};
    const size_t before = in.pos;
    left = ZSTD_decompressStream(context.get(), &piece, &in);
    if (ZSTD_isError(left)) fail(where, ": damaged zstd data (", ZSTD_getErrorName(left), ")");
    out.add(piece.pos);
    if (left != 0 && in.pos == before && piece.pos == 0)
      fail(where, ": the zstd data end in the middle (incomplete download?)");
  }
  return out.finish();
}

}  // namespace

std::optional<std::string> uncompressed_text(std::string_view bytes, std::string_view where,
                                             uint64_t max_bytes) {
  if (bytes.starts_with(kGzip)) return inflate_members(bytes, where, max_bytes);
  if (bytes.starts_with(kZstd)) return decompress_frames(bytes, where, max_bytes);
  return std::nullopt;
}

}  // namespace ropd::io
