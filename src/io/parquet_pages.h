// Decoding of one parquet column chunk: pages (v1 and v2), compression, levels, values.
// Encodings: plain, dictionary (both names), RLE / bit-packed hybrid. Codecs: none, snappy, gzip, zstd.
// Others are refused by name. What a file can make us hold is bounded by a DecodeBudget that counts
// decompressed pages and, for every value, its text again: a dictionary entry that a million values refer to
// counts a million times, because the rows will hold it as often.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/parquet_schema.h"

namespace ropd::io {

struct DecodeBudget {
  uint64_t left_bytes = uint64_t{8} << 30;
  // Fails when the file asks for more than is left.
  void take(uint64_t bytes, const std::string& where);
};

// Values of one physical type; exactly one vector is in use.
struct ColumnValues {
  std::vector<std::string_view> texts;  // byte arrays; point into ColumnData::buffers or the file
  std::vector<int64_t> integers;        // boolean, int32, int64 (unsigned bits kept)
  std::vector<double> reals;            // float32, float64
};

// One column of one row group.
struct ColumnData {
  uint64_t num_entries = 0;                      // values and nulls
  std::vector<uint8_t> definition_levels;        // [num_entries]; empty when the leaf is always present
  std::vector<uint8_t> repetition_levels;        // [num_entries]; empty when nothing repeats
  ColumnValues values;                           // [entries that are present]
  std::vector<std::unique_ptr<char[]>> buffers;  // decompressed pages the texts point into
};

// `where` ("file.parquet column prompt.content") begins every error text. Texts are checked to be UTF-8.
ColumnData decode_column(std::span<const std::byte> file, const ColumnChunk& chunk, const SchemaNode& leaf,
                         DecodeBudget& budget, const std::string& where);

}  // namespace ropd::io
