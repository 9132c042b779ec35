#include "io/parquet_thrift.h"

#include <limits>
#include <utility>

#include "base/error.h"

namespace ropd::io {

ThriftReader::ThriftReader(std::span<const std::byte> bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {}

void ThriftReader::broken(std::string_view what) const {
  fail(where_, ": ", what, " at metadata byte ", position_, " (damaged file?)");
}

uint8_t ThriftReader::next_byte() {
  if (position_ >= bytes_.size()) broken("metadata ends too early");
  return uint8_t(bytes_[position_++]);
}

uint64_t ThriftReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint64_t byte = next_byte();
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  broken("number with more than 64 bits");
}

void ThriftReader::expect(ThriftType actual, ThriftType expected) const {
  if (actual != expected)
    broken("field of type " + std::to_string(int(actual)) + ", expected type " +
           std::to_string(int(expected)));
}

void ThriftReader::begin_structure() {
  if (depth_ >= kMaxDepth) broken("structures nested too deep");
  last_field_[++depth_] = 0;
}

ThriftReader::Field ThriftReader::next_field() {
  const uint8_t header = next_byte();
  const auto type = ThriftType(header & 0x0F);
  if (type == ThriftType::stop) {
    --depth_;
    return {};
  }
  if (type > ThriftType::structure) broken("unknown field type " + std::to_string(int(type)));
  const int delta = header >> 4;
  const int64_t id = delta ? last_field_[depth_] + delta : read_zigzag();
  if (id < 0 || id > std::numeric_limits<int16_t>::max()) broken("field number out of range");
  last_field_[depth_] = int16_t(id);
  return {type, int16_t(id)};
}

int32_t ThriftReader::element_i32() {
  const int64_t value = read_zigzag();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    broken("32-bit number out of range");
  return int32_t(value);
}

int32_t ThriftReader::read_i32(Field field) {
  expect(field.type, ThriftType::i32);
  return element_i32();
}

int64_t ThriftReader::read_i64(Field field) {
  expect(field.type, ThriftType::i64);
  return read_zigzag();
}

bool ThriftReader::read_bool(Field field) {
  if (field.type != ThriftType::boolean_false) expect(field.type, ThriftType::boolean_true);
  return field.type == ThriftType::boolean_true;
}

std::string_view ThriftReader::element_binary() {
  const uint64_t length = read_varint();
  if (length > bytes_.size() - position_) broken("text longer than the metadata");
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + position_;
  position_ += length;
  return {begin, length};
}

std::string_view ThriftReader::read_binary(Field field) {
  expect(field.type, ThriftType::binary);
  return element_binary();
}

ThriftReader::List ThriftReader::list_header() {
  const uint8_t header = next_byte();
  const auto type = ThriftType(header & 0x0F);
  uint64_t count = header >> 4;
  if (count == 15) count = read_varint();
  // Every element takes at least one byte (booleans in lists too).
  if (count > bytes_.size() - position_) broken("list longer than the metadata");
  return {type, uint32_t(count)};
}

ThriftReader::List ThriftReader::read_list(Field field, ThriftType element) {
  expect(field.type, ThriftType::list);
  const List list = list_header();
  if (list.count > 0) expect(list.type, element);
  return list;
}

void ThriftReader::skip(ThriftType type) { skip_value(type, depth_); }

void ThriftReader::skip_value(ThriftType type, int depth) {
  if (depth > kMaxDepth) broken("structures nested too deep");
  switch (type) {
    case ThriftType::boolean_true:
    case ThriftType::boolean_false:
      return;  // the value is the type
    case ThriftType::byte:
      next_byte();
      return;
    case ThriftType::i16:
    case ThriftType::i32:
    case ThriftType::i64:
      read_varint();
      return;
    case ThriftType::float64:
      if (bytes_.size() - position_ < 8) broken("metadata ends too early");
      position_ += 8;
      return;
    case ThriftType::binary:
      element_binary();
      return;
    case ThriftType::list:
    case ThriftType::set: {
      const List list = list_header();
      for (uint32_t i = 0; i < list.count; ++i) {
        if (list.type == ThriftType::boolean_true || list.type == ThriftType::boolean_false)
          next_byte();
        else
          skip_value(list.type, depth + 1);
      }
      return;
    }
    case ThriftType::map: {
      const uint64_t count = read_varint();
      if (count == 0) return;
      if (count > bytes_.size() - position_) broken("map longer than the metadata");
      const uint8_t types = next_byte();
      for (uint64_t i = 0; i < count; ++i) {
        const size_t before = position_;
        skip_value(ThriftType(types >> 4), depth + 1);
        skip_value(ThriftType(types & 0x0F), depth + 1);
        if (position_ == before) broken("map of empty entries");
      }
      return;
    }
    case ThriftType::structure: {
      begin_structure();
      for (Field field = next_field(); field.type != ThriftType::stop; field = next_field())
        skip_value(field.type, depth + 1);
      return;
    }
    case ThriftType::stop:
      break;
  }
  broken("unknown type " + std::to_string(int(type)));
}

}  // namespace ropd::io
