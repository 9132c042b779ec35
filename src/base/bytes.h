// Values as bytes for a peer of the same program on the same kind of machine, and back. Numbers as they lie in
// memory, texts and lists behind their length. Not a file format: nothing of it outlives the processes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace ropd {

template <class Value>
concept PlainValue = std::is_arithmetic_v<Value> || std::is_enum_v<Value>;  // std::byte is an enum

class ByteWriter {
 public:
  template <PlainValue Value>
  ByteWriter& put(Value value) {
    append(&value, sizeof value);
    return *this;
  }
  ByteWriter& put(const std::string& text) { return put_list(text.data(), text.size()); }
  template <PlainValue Value>
  ByteWriter& put(const std::vector<Value>& values) {
    return put_list(values.data(), values.size());
  }
  template <PlainValue Value>
  ByteWriter& put(std::span<const Value> values) {
    return put_list(values.data(), values.size());
  }
  template <class Value>
  ByteWriter& put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
    return *this;
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;

  void append(const void* data, size_t size) {
    if (size == 0) return;
    const size_t end = bytes_.size();
    bytes_.resize(end + size);  // not insert(): GCC 12 warns of an overflow that is none
    std::memcpy(bytes_.data() + end, data, size);
  }
  template <class Value>
  ByteWriter& put_list(const Value* values, size_t count) {
    put(uint64_t{count});
    append(values, count * sizeof *values);
    return *this;
  }
};

// Reads what a ByteWriter wrote, in the same order. Fails where the bytes end too early. The bytes must outlive
// it.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <PlainValue Value>
  void get(Value& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  void get(std::string& text) { get_list(text); }
  template <PlainValue Value>
  void get(std::vector<Value>& values) {
    get_list(values);
  }
  template <class Value>
  void get(std::optional<Value>& value) {
    value.reset();
    if (get<bool>()) get(value.emplace());
  }
  template <class Value>
  Value get() {
    Value value{};
    get(value);
    return value;
  }
  bool is_at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;

  std::span<const std::byte> take(size_t size) {
    if (size > left_.size())
      fail("a message of a peer ends ", size - left_.size(),
           " bytes early (another version of the program?)");
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  template <class List>
  void get_list(List& list) {
    const auto count = get<uint64_t>();
    if (count > left_.size() / sizeof list[0])
      fail("a message of a peer promises ", count, " values and holds ", left_.size(), " bytes");
    list.resize(count);
    if (count > 0) std::memcpy(list.data(), take(count * sizeof list[0]).data(), count * sizeof list[0]);
  }
};

}  // namespace ropd
