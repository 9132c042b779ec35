#include "io/parquet_pages.h"

#include <simdjson.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <bit>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "io/parquet_thrift.h"

namespace ropd::io {

void DecodeBudget::take(uint64_t bytes, const std::string& where) {
  if (bytes > left_bytes)
    fail(where, ": decoding needs more than the limit allows (", bytes, " bytes asked, ", left_bytes,
         " left; a damaged file, or one too large to hold)");
  left_bytes -= bytes;
}

namespace {

using Field = ThriftReader::Field;
using Bytes = std::span<const std::byte>;

constexpr uint64_t kMaxPageBytes = uint64_t{512} << 20;
enum Codec : int32_t { uncompressed = 0, snappy_codec = 1, gzip_codec = 2, zstd_codec = 6 };
enum Encoding : int32_t { plain = 0, plain_dictionary = 2, rle = 3, rle_dictionary = 8 };
enum PageType : int32_t { data_page = 0, index_page = 1, dictionary_page = 2, data_page_v2 = 3 };

std::string encoding_name(int32_t encoding) {
  static constexpr const char* kNames[] = {
      "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
      "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
      "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};
  return encoding >= 0 && encoding < 10 ? kNames[encoding] : "number " + std::to_string(encoding);
}

std::string codec_name(int32_t codec) {
  static constexpr const char* kNames[] = {"none",   "snappy", "gzip", "LZO",
                                           "brotli", "LZ4",    "zstd", "LZ4_RAW"};
  return codec >= 0 && codec < 8 ? kNames[codec] : "number " + std::to_string(codec);
}

struct PageHeader {
  int32_t type = -1;
  int32_t uncompressed_bytes = -1;
  int32_t compressed_bytes = -1;
  int32_t num_values = -1;
  int32_t encoding = -1;
  int32_t definition_encoding = rle;
  int32_t repetition_encoding = rle;
  int32_t definition_bytes = 0;  // v2
  int32_t repetition_bytes = 0;  // v2
  bool is_compressed = true;     // v2
  uint64_t header_bytes = 0;
};

// The part of a header that depends on the page: its field numbers differ between the three kinds.
void read_page_details(ThriftReader& reader, PageHeader& page, PageType kind) {
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    const bool is_v1 = kind == data_page, is_v2 = kind == data_page_v2;
    if (field.id == 1)
      page.num_values = reader.read_i32(field);
    else if (field.id == (is_v2 ? 4 : 2))
      page.encoding = reader.read_i32(field);
    else if (is_v1 && field.id == 3)
      page.definition_encoding = reader.read_i32(field);
    else if (is_v1 && field.id == 4)
      page.repetition_encoding = reader.read_i32(field);
    else if (is_v2 && field.id == 5)
      page.definition_bytes = reader.read_i32(field);
    else if (is_v2 && field.id == 6)
      page.repetition_bytes = reader.read_i32(field);
    else if (is_v2 && field.id == 7)
      page.is_compressed = reader.read_bool(field);
    else
      reader.skip(field.type);
  }
}

PageHeader read_page_header(Bytes bytes, const std::string& where) {
  ThriftReader reader(bytes, where);
  PageHeader page;
  reader.begin_structure();
  for (Field field = reader.next_field(); field.type != ThriftType::stop; field = reader.next_field()) {
    const bool is_structure = field.type == ThriftType::structure;
    if (field.id == 1)
      page.type = reader.read_i32(field);
    else if (field.id == 2)
      page.uncompressed_bytes = reader.read_i32(field);
    else if (field.id == 3)
      page.compressed_bytes = reader.read_i32(field);
    else if (field.id == 5 && is_structure)
      read_page_details(reader, page, data_page);
    else if (field.id == 7 && is_structure)
      read_page_details(reader, page, dictionary_page);
    else if (field.id == 8 && is_structure)
      read_page_details(reader, page, data_page_v2);
    else
      reader.skip(field.type);
  }
  page.header_bytes = reader.position();
  if (page.uncompressed_bytes < 0 || page.compressed_bytes < 0 || page.definition_bytes < 0 ||
      page.repetition_bytes < 0)
    fail(where, ": page with a negative size (damaged file?)");
  if (page.type != index_page && page.num_values < 0)
    fail(where, ": page without a number of values (damaged file?)");
  if (uint64_t(page.uncompressed_bytes) > kMaxPageBytes)
    fail(where, ": page of ", page.uncompressed_bytes, " bytes, at most ", kMaxPageBytes, " are read");
  return page;
}

void inflate_gzip(char* out, uint64_t out_bytes, Bytes in, const std::string& where) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) fail(where, ": cannot start zlib");
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
  stream.avail_in = uInt(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = uInt(out_bytes);
  const int status = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (status != Z_STREAM_END || stream.avail_out != 0)
    fail(where, ": gzip page does not give the ", out_bytes, " bytes it claims (damaged file?)");
}

// A page's claim is checked against what its codec can give from so few bytes before memory is taken for it.
void check_expansion(Bytes in, uint64_t claimed, int32_t codec, const std::string& where) {
  uint64_t possible = claimed;
  if (codec == snappy_codec) {
    size_t length = 0;
    if (!snappy::GetUncompressedLength(reinterpret_cast<const char*>(in.data()), in.size(), &length))
      length = 0;
    possible = std::min<uint64_t>(length, in.size() * 64);
    if (length != claimed) possible = 0;
  } else if (codec == gzip_codec) {
    possible = in.size() * 1040;
  } else if (codec == zstd_codec) {
    const auto size = ZSTD_getFrameContentSize(in.data(), in.size());
    if (size == ZSTD_CONTENTSIZE_ERROR || (size != ZSTD_CONTENTSIZE_UNKNOWN && size != claimed)) possible = 0;
  }
  if (claimed > possible)
    fail(where, ": ", codec_name(codec), " page of ", in.size(), " bytes claims ", claimed,
         " (damaged file?)");
}

// The page's bytes uncompressed, in a buffer that the column keeps.
Bytes decompress(Bytes in, uint64_t out_bytes, int32_t codec, ColumnData& column, DecodeBudget& budget,
                 const std::string& where) {
  if (codec == uncompressed) {
    if (in.size() != out_bytes)
      fail(where, ": uncompressed page of ", in.size(), " bytes claims ", out_bytes);
    return in;
  }
  if (codec != snappy_codec && codec != gzip_codec && codec != zstd_codec)
    fail(where, ": compression ", codec_name(codec), " is not supported (none, snappy, gzip or zstd are)");
  if (out_bytes == 0) return {};
  check_expansion(in, out_bytes, codec, where);
  budget.take(out_bytes, where);
  column.buffers.push_back(std::make_unique_for_overwrite<char[]>(out_bytes));
  char* out = column.buffers.back().get();
  const auto* compressed = reinterpret_cast<const char*>(in.data());
  if (codec == gzip_codec) {
    inflate_gzip(out, out_bytes, in, where);
  } else {
    const bool is_whole = codec == snappy_codec
                              ? snappy::RawUncompress(compressed, in.size(), out)
                              : ZSTD_decompress(out, out_bytes, compressed, in.size()) == out_bytes;
    if (!is_whole) fail(where, ": ", codec_name(codec), " page cannot be decompressed (damaged file?)");
  }
  return {reinterpret_cast<const std::byte*>(out), out_bytes};
}

// Calls use(value, count) for the runs of the RLE / bit-packed hybrid until `count` values are given.
// Consumes from `bytes`.
template <class Use>
void read_hybrid(Bytes bytes, uint32_t bit_width, uint64_t count, const std::string& where, Use&& use) {
  size_t at = 0;
  const auto need = [&](uint64_t wanted) {
    if (wanted > bytes.size() - at) fail(where, ": encoded levels or indices end too early (damaged file?)");
  };
  while (count > 0) {
    uint64_t header = 0;
    for (int shift = 0;; shift += 7) {
      if (shift > 28) fail(where, ": run length with more than 32 bits (damaged file?)");
      need(1);
      const auto byte = uint64_t(bytes[at++]);
      header |= (byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    if (header & 1) {
      const uint64_t packed_bytes = (header >> 1) * bit_width;
      const uint64_t values = std::min(count, (header >> 1) * 8);
      need(std::min(packed_bytes, (values * bit_width + 7) / 8));  // the last group may be cut short
      const uint64_t mask = (uint64_t{1} << bit_width) - 1;
      uint64_t window = 0;
      uint32_t filled = 0;
      size_t from = at;
      for (uint64_t i = 0; i < values; ++i) {
        while (filled < bit_width) {
          window |= uint64_t(bytes[from++]) << filled;
          filled += 8;
        }
        use(uint32_t(window & mask), 1);
        window >>= bit_width;
        filled -= bit_width;
      }
      at = std::min<size_t>(bytes.size(), at + packed_bytes);
      count -= values;
    } else {
      const uint32_t value_bytes = (bit_width + 7) / 8;
      need(value_bytes);
      uint32_t value = 0;
      for (uint32_t i = 0; i < value_bytes; ++i) value |= uint32_t(bytes[at++]) << (8 * i);
      const uint64_t run = std::min(count, header >> 1);
      if (run > 0) use(value, run);
      count -= run;
    }
  }
}

class ColumnDecoder {
 public:
  ColumnDecoder(const SchemaNode& leaf, DecodeBudget& budget, const std::string& where)
      : leaf_(leaf), budget_(budget), where_(where) {}

  ColumnData decode(Bytes file, const ColumnChunk& chunk) {
    uint64_t at = chunk.begin;
    while (column_.num_entries < chunk.num_entries) {
      if (at >= chunk.end)
        fail(where_, ": pages hold ", column_.num_entries, " values, the footer claims ", chunk.num_entries);
      const PageHeader page = read_page_header(file.subspan(at, chunk.end - at), where_);
      at += page.header_bytes;
      if (uint64_t(page.compressed_bytes) > chunk.end - at)
        fail(where_, ": page claims ", page.compressed_bytes, " bytes, ", chunk.end - at,
             " are left (damaged file?)");
      const Bytes body = file.subspan(at, size_t(page.compressed_bytes));
      at += body.size();
      if (page.type == dictionary_page)
        read_dictionary(page, body, chunk.codec);
      else if (page.type == data_page)
        read_data(page, body, chunk.codec);
      else if (page.type == data_page_v2)
        read_data_v2(page, body, chunk.codec);
      else if (page.type != index_page)
        fail(where_, ": unknown page type ", page.type);
      if (column_.num_entries > chunk.num_entries)
        fail(where_, ": pages hold more values than the ", chunk.num_entries,
             " of the footer (damaged file?)");
    }
    return std::move(column_);
  }

 private:
  const SchemaNode& leaf_;
  DecodeBudget& budget_;
  const std::string& where_;
  ColumnData column_;
  std::optional<ColumnValues> dictionary_;

  void read_dictionary(const PageHeader& page, Bytes body, int32_t codec) {
    if (page.encoding != plain && page.encoding != plain_dictionary)
      fail(where_, ": dictionary in encoding ", encoding_name(page.encoding), ", expected PLAIN");
    const Bytes bytes = decompress(body, uint64_t(page.uncompressed_bytes), codec, column_, budget_, where_);
    dictionary_.emplace();
    read_plain(*dictionary_, bytes, uint64_t(page.num_values));
  }

  void read_data(const PageHeader& page, Bytes body, int32_t codec) {
    Bytes bytes = decompress(body, uint64_t(page.uncompressed_bytes), codec, column_, budget_, where_);
    const auto take_levels = [&](uint8_t max_level, int32_t encoding) -> Bytes {
      if (max_level == 0) return {};
      if (encoding != rle)
        fail(where_, ": levels in encoding ", encoding_name(encoding), ", only RLE is supported");
      uint32_t length = 0;
      if (bytes.size() < 4) fail(where_, ": page ends inside its levels (damaged file?)");
      std::memcpy(&length, bytes.data(), 4);
      if (length > bytes.size() - 4)
        fail(where_, ": levels claim ", length, " bytes, the page has ", bytes.size() - 4);
      const Bytes levels = bytes.subspan(4, length);
      bytes = bytes.subspan(4 + size_t(length));
      return levels;
    };
    const Bytes repetition = take_levels(leaf_.max_repetition, page.repetition_encoding);
    const Bytes definition = take_levels(leaf_.max_definition, page.definition_encoding);
    const uint64_t present = read_levels(repetition, definition, uint64_t(page.num_values));
    read_values(page.encoding, bytes, present);
  }

  void read_data_v2(const PageHeader& page, Bytes body, int32_t codec) {
    const uint64_t level_bytes = uint64_t(page.repetition_bytes) + uint64_t(page.definition_bytes);
    if (level_bytes > body.size() || level_bytes > uint64_t(page.uncompressed_bytes))
      fail(where_, ": levels claim ", level_bytes, " bytes, the page has ", body.size(), " (damaged file?)");
    const Bytes repetition = body.first(size_t(page.repetition_bytes));
    const Bytes definition = body.subspan(size_t(page.repetition_bytes), size_t(page.definition_bytes));
    const Bytes values =
        decompress(body.subspan(level_bytes), uint64_t(page.uncompressed_bytes) - level_bytes,
                   page.is_compressed ? codec : int32_t(uncompressed), column_, budget_, where_);
    const uint64_t present = read_levels(repetition, definition, uint64_t(page.num_values));
    read_values(page.encoding, values, present);
  }

  // Appends the levels of one page; returns how many values are present (not null).
  uint64_t read_levels(Bytes repetition, Bytes definition, uint64_t count) {
    budget_.take(count * 16, where_);  // levels and what a row holds for an entry, even a null
    append_levels(column_.repetition_levels, repetition, leaf_.max_repetition, count);
    const size_t before = column_.definition_levels.size();
    append_levels(column_.definition_levels, definition, leaf_.max_definition, count);
    column_.num_entries += count;
    if (leaf_.max_definition == 0) return count;
    uint64_t present = 0;
    for (size_t i = before; i < column_.definition_levels.size(); ++i)
      present += column_.definition_levels[i] == leaf_.max_definition;
    return present;
  }

  void append_levels(std::vector<uint8_t>& levels, Bytes bytes, uint8_t max_level, uint64_t count) {
    if (max_level == 0) return;
    read_hybrid(bytes, uint32_t(std::bit_width(max_level)), count, where_, [&](uint32_t value, uint64_t run) {
      if (value > max_level)
        fail(where_, ": level ", value, ", at most ", int(max_level), " is possible (damaged file?)");
      levels.insert(levels.end(), run, uint8_t(value));
    });
  }

  void read_values(int32_t encoding, Bytes bytes, uint64_t count) {
    if (encoding == plain) {
      read_plain(column_.values, bytes, count);
    } else if (encoding == plain_dictionary || encoding == rle_dictionary) {
      read_indices(bytes, count);
    } else if (encoding == rle && leaf_.type == ParquetType::boolean) {
      // 4-byte length, then runs of width 1.
      if (bytes.size() < 4) fail(where_, ": page ends inside its values (damaged file?)");
      read_hybrid(bytes.subspan(4), 1, count, where_, [&](uint32_t value, uint64_t run) {
        column_.values.integers.insert(column_.values.integers.end(), run, int64_t(value & 1));
      });
    } else {
      fail(where_, ": encoding ", encoding_name(encoding),
           " is not supported (plain, dictionary and RLE are; ",
           "write the file again without delta encodings)");
    }
  }

  void read_indices(Bytes bytes, uint64_t count) {
    if (count == 0) return;
    if (!dictionary_) fail(where_, ": dictionary-encoded page without a dictionary (damaged file?)");
    if (bytes.empty()) fail(where_, ": page ends before its indices (damaged file?)");
    const auto bit_width = uint32_t(bytes[0]);
    if (bit_width > 32) fail(where_, ": dictionary indices of ", bit_width, " bits, at most 32 are possible");
    read_hybrid(bytes.subspan(1), bit_width, count, where_, [&](uint32_t index, uint64_t run) {
      const auto append = [&](auto& values, const auto& entries) {
        if (index >= entries.size())
          fail(where_, ": dictionary index ", index, ", the dictionary has ", entries.size(),
               " entries (damaged file?)");
        if constexpr (std::is_same_v<std::decay_t<decltype(entries[0])>, std::string_view>)
          budget_.take(run * entries[index].size(), where_);
        values.insert(values.end(), run, entries[index]);
      };
      if (is_text())
        append(column_.values.texts, dictionary_->texts);
      else if (is_real())
        append(column_.values.reals, dictionary_->reals);
      else
        append(column_.values.integers, dictionary_->integers);
    });
  }

  bool is_text() const {
    return leaf_.type == ParquetType::byte_array || leaf_.type == ParquetType::fixed_byte_array;
  }
  bool is_real() const { return leaf_.type == ParquetType::float32 || leaf_.type == ParquetType::float64; }

  void read_plain(ColumnValues& out, Bytes bytes, uint64_t count) {
    switch (leaf_.type) {
      case ParquetType::boolean:
        return read_booleans(out, bytes, count);
      case ParquetType::int32:
        return leaf_.is_unsigned ? read_numbers<uint32_t>(out.integers, bytes, count)
                                 : read_numbers<int32_t>(out.integers, bytes, count);
      case ParquetType::int64:
        return read_numbers<int64_t>(out.integers, bytes, count);
      case ParquetType::float32:
        return read_numbers<float>(out.reals, bytes, count);
      case ParquetType::float64:
        return read_numbers<double>(out.reals, bytes, count);
      case ParquetType::byte_array:
      case ParquetType::fixed_byte_array:
        return read_texts(out.texts, bytes, count);
      case ParquetType::int96:
        break;
    }
    fail(where_, ": type INT96 is not supported (write the time stamps as INT64)");
  }

  void read_booleans(ColumnValues& out, Bytes bytes, uint64_t count) {
    if (count > bytes.size() * 8)
      fail(where_, ": ", count, " booleans in ", bytes.size(), " bytes (damaged file?)");
    for (uint64_t i = 0; i < count; ++i) out.integers.push_back((int(bytes[i / 8]) >> (i % 8)) & 1);
  }

  template <class Stored, class Out>
  void read_numbers(std::vector<Out>& out, Bytes bytes, uint64_t count) {
    if (count > bytes.size() / sizeof(Stored))
      fail(where_, ": ", count, " values of ", sizeof(Stored), " bytes in ", bytes.size(),
           " bytes (damaged file?)");
    for (uint64_t i = 0; i < count; ++i) {
      Stored value;
      std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
      out.push_back(Out(value));
    }
  }

  void read_texts(std::vector<std::string_view>& out, Bytes bytes, uint64_t count) {
    const bool is_fixed = leaf_.type == ParquetType::fixed_byte_array;
    size_t at = 0;
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t length = uint32_t(leaf_.type_length);
      if (!is_fixed) {
        if (bytes.size() - at < 4) fail(where_, ": page ends inside its values (damaged file?)");
        std::memcpy(&length, bytes.data() + at, 4);
        at += 4;
      }
      if (length > bytes.size() - at)
        fail(where_, ": text of ", length, " bytes, the page has ", bytes.size() - at,
             " left (damaged file?)");
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + at, length);
      if (!simdjson::validate_utf8(text.data(), text.size()))
        fail(where_, ": value ", out.size() + 1, " is not valid UTF-8 (a binary column?)");
      budget_.take(16 + length, where_);
      out.push_back(text);
      at += length;
    }
  }
};

}  // namespace

ColumnData decode_column(Bytes file, const ColumnChunk& chunk, const SchemaNode& leaf, DecodeBudget& budget,
                         const std::string& where) {
  return ColumnDecoder(leaf, budget, where).decode(file, chunk);
}

}  // namespace ropd::io
