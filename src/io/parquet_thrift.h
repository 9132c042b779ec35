// Reader of Thrift's compact protocol, as far as parquet's metadata uses it.
// Every read is checked against the bytes that are there; nesting, list lengths and string lengths are
// bounded by what the remaining bytes could hold, so no claim in a file can cause an allocation or a loop
// larger than the file.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ropd::io {

enum class ThriftType : uint8_t {
  stop = 0,
  boolean_true = 1,
  boolean_false = 2,
  byte = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  float64 = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
};

class ThriftReader {
 public:
  // `where` begins every error text; the bytes are the caller's.
  ThriftReader(std::span<const std::byte> bytes, std::string where);

  struct Field {
    ThriftType type = ThriftType::stop;
    int16_t id = 0;
  };
  struct List {
    ThriftType type = ThriftType::stop;
    uint32_t count = 0;
  };

  // A structure is read as: begin_structure(); while ((field = next_field()).type != stop) {read or skip}.
  // next_field closes the structure when it returns `stop`.
  void begin_structure();
  Field next_field();
  void skip(ThriftType type);

  int32_t read_i32(Field field);
  int64_t read_i64(Field field);
  bool read_bool(Field field);
  std::string_view read_binary(Field field);
  List read_list(Field field, ThriftType element);
  // Elements of a list.
  int32_t element_i32();
  std::string_view element_binary();

  size_t position() const { return position_; }
  [[noreturn]] void broken(std::string_view what) const;

 private:
  static constexpr int kMaxDepth = 16;

  std::span<const std::byte> bytes_;
  std::string where_;
  size_t position_ = 0;
  int depth_ = 0;
  int16_t last_field_[kMaxDepth + 1] = {};

  uint8_t next_byte();
  uint64_t read_varint();
  int64_t read_zigzag() {
    const uint64_t value = read_varint();
    return int64_t(value >> 1) ^ -int64_t(value & 1);
  }
  void expect(ThriftType actual, ThriftType expected) const;
  List list_header();
  void skip_value(ThriftType type, int depth);
};

}  // namespace ropd::io
