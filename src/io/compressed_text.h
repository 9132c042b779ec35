// Text of a file that may be compressed: gzip (.jsonl.gz) and zstd (.jsonl.zst), recognised by their first
// bytes, whatever the file is called. Several members or frames behind each other are one text, as the tools
// write them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ropd::io {

// What a compressed file may become: a few kilobytes can claim any size.
inline constexpr uint64_t kMaxUncompressedBytes = uint64_t{16} << 30;

// The text of compressed bytes, or nothing where they are not compressed. Fails, beginning with `where`, on
// damaged or torn data and on more than max_bytes.
[[nodiscard]] std::optional<std::string> uncompressed_text(std::string_view bytes, std::string_view where,
                                                           uint64_t max_bytes = kMaxUncompressedBytes);

}  // namespace ropd::io
