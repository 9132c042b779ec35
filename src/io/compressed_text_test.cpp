#include "io/compressed_text.h"

#include <gmock/gmock.h>
#include <zlib.h>
#include <zstd.h>

#include <memory>

#include "base/error.h"

namespace ropd::io {
namespace {

using ::testing::HasSubstr;

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// With a checksum, as the zstd command writes it.
std::string zstd(std::string_view text) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), 0);
  out.resize(ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size()));
  return out;
}

// More than one piece of output, not only repetition.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 1'000'000; ++i) text += "{\"id\": " + std::to_string(i * 7919) + "}\n";
  return text;
}

std::string error_of(std::string_view bytes, uint64_t max_bytes = kMaxUncompressedBytes) {
  try {
    (void)uncompressed_text(bytes, "f.jsonl.gz", max_bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CompressedText, IsReadBackFromGzipAndZstd) {
  for (const std::string& text : {std::string(), std::string("{}\n"), long_text()}) {
    EXPECT_EQ(uncompressed_text(gzip(text), "f"), text);
    EXPECT_EQ(uncompressed_text(zstd(text), "f"), text);
  }
}

TEST(CompressedText, PartsBehindEachOtherAreOneText) {
  EXPECT_EQ(uncompressed_text(gzip("a\n") + gzip(long_text()) + gzip("b\n"), "f"),
            "a\n" + long_text() + "b\n");
  EXPECT_EQ(uncompressed_text(zstd("a\n") + zstd(long_text()) + zstd("b\n"), "f"),
            "a\n" + long_text() + "b\n");
}

TEST(CompressedText, OrdinaryTextIsNone) {
  for (const char* text : {"", "{}", "\xEF\xBB\xBF{}", "PAR1", "\x1F"})
    EXPECT_EQ(uncompressed_text(text, "f"), std::nullopt);
}

TEST(CompressedText, TornAndDamagedDataAreNamed) {
  for (const std::string& whole : {gzip(long_text()), zstd(long_text())}) {
    for (const size_t bytes : {size_t{5}, whole.size() / 2, whole.size() - 1})
      EXPECT_THAT(error_of(std::string_view(whole).substr(0, bytes)), HasSubstr("f.jsonl.gz: the ")) << bytes;
    std::string other = whole;
    for (size_t i = other.size() / 2; i < other.size() / 2 + 8; ++i) other[i] = static_cast<char>(~other[i]);
    EXPECT_NE(error_of(other), "");
  }
  EXPECT_THAT(error_of(gzip("{}") + "rest"), HasSubstr("damaged gzip"));
}

TEST(CompressedText, AFewBytesThatClaimManyAreRefused) {
  const std::string zeros(10'000'000, '0');
  for (const std::string& bytes : {gzip(zeros), zstd(zeros)}) {
    EXPECT_THAT(error_of(bytes, 1'000'000), HasSubstr("more than 1000000 bytes when uncompressed"));
    EXPECT_EQ(error_of(bytes, zeros.size()), "");
  }
}

}  // namespace
}  // namespace ropd::io
