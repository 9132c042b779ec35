// Small parquet files made by hand for tests and fuzz seeds: the writer knows no more than the tests need,
// and every claim in the file (sizes, counts, levels, encodings) can be made false on purpose.
#pragma once
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ropd::test {

// Thrift compact protocol, fields in ascending order.
class ThriftWriter {
 public:
  ThriftWriter& i32(int id, int64_t value) { return number(id, 5, value); }
  ThriftWriter& i64(int id, int64_t value) { return number(id, 6, value); }
  ThriftWriter& boolean(int id, bool value) {
    header(id, value ? 1 : 2);
    return *this;
  }
  ThriftWriter& text(int id, std::string_view value) {
    header(id, 8);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  // `value` is a finished structure.
  ThriftWriter& structure(int id, const std::string& value) {
    header(id, 12);
    bytes_ += value;
    return *this;
  }
  ThriftWriter& structures(int id, const std::vector<std::string>& values) {
    header(id, 9);
    bytes_ += char(0xF0 | 12);
    varint(values.size());
    for (const auto& value : values) bytes_ += value;
    return *this;
  }
  std::string finish() const { return bytes_ + '\0'; }

 private:
  std::string bytes_;
  int last_ = 0;
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += char(value | 0x80);
    bytes_ += char(value);
  }
  void header(int id, int type) {
    bytes_ += char(((id - last_) << 4) | type);
    last_ = id;
  }
  ThriftWriter& number(int id, int type, int64_t value) {
    header(id, type);
    varint((uint64_t(value) << 1) ^ uint64_t(value >> 63));
    return *this;
  }
};

inline std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += char(value >> (8 * i));
  return out;
}

inline std::string plain_texts(const std::vector<std::string>& values) {
  std::string out;
  for (const auto& value : values) out += little_endian(value.size(), 4) + value;
  return out;
}

// RLE / bit-packed hybrid with runs of one value each, the simplest valid form (values below 256).
inline std::string hybrid_runs(const std::vector<int>& values, int bit_width) {
  std::string out;
  for (const int value : values) {
    out += char(1 << 1);
    if (bit_width > 0) out += char(value);
  }
  return out;
}

// One bit-packed run of up to 504 values.
inline std::string hybrid_packed(std::vector<int> values, int bit_width) {
  while (values.size() % 8) values.push_back(0);
  std::string out(1, char(((values.size() / 8) << 1) | 1));
  std::string packed(values.size() / 8 * size_t(bit_width), '\0');
  for (size_t i = 0; i < values.size(); ++i)
    for (int bit = 0; bit < bit_width; ++bit)
      if (values[i] >> bit & 1)
        packed[(i * size_t(bit_width) + size_t(bit)) / 8] |=
            char(1 << ((i * size_t(bit_width) + size_t(bit)) % 8));
  return out + packed;
}

// Levels of a v1 page: length, then runs.
inline std::string levels_v1(const std::vector<int>& levels) {
  const std::string runs = hybrid_runs(levels, 8);
  return little_endian(runs.size(), 4) + runs;
}

enum ParquetCodec { kNone = 0, kSnappy = 1, kGzip = 2, kZstd = 6 };

inline std::string compress(const std::string& in, int codec) {
  std::string out;
  if (codec == kNone) return in;
  if (codec == kSnappy) {
    snappy::Compress(in.data(), in.size(), &out);
  } else if (codec == kZstd) {
    out.resize(ZSTD_compressBound(in.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), in.data(), in.size(), 1));
  } else {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    out.resize(deflateBound(&stream, in.size()) + 32);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream.avail_in = uInt(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = uInt(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
  }
  return out;
}

// Encodings: 0 plain, 2 plain dictionary, 3 RLE, 5 delta, 8 RLE dictionary.
inline std::string data_page_v1(const std::string& body, int num_values, int encoding, int codec = kNone) {
  const std::string stored = compress(body, codec);
  const std::string details = ThriftWriter().i32(1, num_values).i32(2, encoding).i32(3, 3).i32(4, 3).finish();
  return ThriftWriter()
             .i32(1, 0)
             .i32(2, int64_t(body.size()))
             .i32(3, int64_t(stored.size()))
             .structure(5, details)
             .finish() +
         stored;
}

inline std::string data_page_v2(const std::string& repetition, const std::string& definition,
                                const std::string& values, int num_values, int encoding, int codec = kNone) {
  const std::string stored = compress(values, codec);
  const auto level_bytes = int64_t(repetition.size() + definition.size());
  const std::string details = ThriftWriter()
                                  .i32(1, num_values)
                                  .i32(2, 0)
                                  .i32(3, num_values)
                                  .i32(4, encoding)
                                  .i32(5, int64_t(definition.size()))
                                  .i32(6, int64_t(repetition.size()))
                                  .boolean(7, codec != kNone)
                                  .finish();
  return ThriftWriter()
             .i32(1, 3)
             .i32(2, level_bytes + int64_t(values.size()))
             .i32(3, level_bytes + int64_t(stored.size()))
             .structure(8, details)
             .finish() +
         repetition + definition + stored;
}

inline std::string dictionary_page(const std::string& body, int num_values, int codec = kNone) {
  const std::string stored = compress(body, codec);
  const std::string details = ThriftWriter().i32(1, num_values).i32(2, 0).boolean(3, false).finish();
  return ThriftWriter()
             .i32(1, 2)
             .i32(2, int64_t(body.size()))
             .i32(3, int64_t(stored.size()))
             .structure(7, details)
             .finish() +
         stored;
}

// Physical types: 0 boolean, 1 int32, 2 int64, 3 int96, 4 float, 5 double, 6 byte array, 7 fixed. Repetition:
// 0 required, 1 optional, 2 repeated.
inline std::string schema_leaf(const std::string& name, int type, int repetition, int type_length = 0) {
  return ThriftWriter().i32(1, type).i32(2, type_length).i32(3, repetition).text(4, name).finish();
}
inline std::string schema_group(const std::string& name, int repetition, int num_children,
                                bool is_list = false) {
  ThriftWriter writer;
  writer.i32(3, repetition).text(4, name).i32(5, num_children);
  if (is_list) writer.i32(6, 3);
  return writer.finish();
}

struct ParquetColumn {
  int type = 6;
  int64_t num_values = 0;
  std::string pages;
  int codec = kNone;
  bool has_dictionary = false;
};

// A file of one row group. `schema` holds the elements below the root; num_top says how many of them are
// top-level.
inline std::string parquet_file(const std::vector<std::string>& schema, int num_top,
                                const std::vector<ParquetColumn>& columns, int64_t num_rows) {
  std::string file = "PAR1";
  std::vector<std::string> chunks;
  for (const auto& column : columns) {
    ThriftWriter metadata;
    metadata.i32(1, column.type).i32(4, column.codec).i64(5, column.num_values).i64(6, 0);
    metadata.i64(7, int64_t(column.pages.size()))
        .i64(9, int64_t(file.size()) + (column.has_dictionary ? 1 : 0));
    if (column.has_dictionary) metadata.i64(11, int64_t(file.size()));
    chunks.push_back(ThriftWriter().i64(2, 0).structure(3, metadata.finish()).finish());
    file += column.pages;
  }
  std::vector<std::string> elements = {schema_group("schema", 0, num_top)};
  elements.insert(elements.end(), schema.begin(), schema.end());
  const std::string group = ThriftWriter().structures(1, chunks).i64(2, 0).i64(3, num_rows).finish();
  const std::string footer =
      ThriftWriter().i32(1, 1).structures(2, elements).i64(3, num_rows).structures(4, {group}).finish();
  return file + footer + little_endian(footer.size(), 4) + "PAR1";
}

}  // namespace ropd::test
